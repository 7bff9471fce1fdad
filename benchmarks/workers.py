"""What workers gain, and what fixed pieces cost: rounds of the heavy models and of a small one, on two cores.

Contestants compute one after another, since each Ray cluster has the machine for itself; all of it `TURNS` times.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from benchmarks.cases import CASES, Case
from crosshatch.simulator.simulator import Simulator
from crosshatch.workers.crew import Crew, InlineWorkers
from crosshatch.workers.employ import employ
from crosshatch.workers.ray_crew import RayWorkers

ROUNDS = {"cnn-50": 2, "lstm": 5, "logistic": 100}
TURNS = 2
Q = 10
# By name the threads of a simulation without workers, and who computes instead.
CONTESTANTS: Mapping[str, tuple[int, Callable[[], AbstractContextManager[Crew | None]]]] = {
    "one thread": (1, nullcontext),
    "two threads": (2, nullcontext),
    "pieces, one thread": (1, lambda: nullcontext(InlineWorkers(1))),
    "pieces, two threads": (1, lambda: nullcontext(InlineWorkers(2))),
    "one worker": (1, lambda: RayWorkers(1)),
    "two workers": (1, lambda: RayWorkers(2)),
}


def table() -> str:
    """Seconds per round of each contestant, and how many times as fast as one thread it is."""
    names = list(CONTESTANTS)
    lines = [f"| Q = {Q} | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for case in CASES:
        if case.name in ROUNDS:
            seconds = _race(case)
            first = seconds["one thread"]
            cells = (f"{1000 * seconds[name]:.4g} ms ({first / seconds[name]:.2f})" for name in names)
            lines.append(f"| {case.name}, {case.silos} x {case.clients} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _race(case: Case) -> dict[str, float]:
    """The median round of each contestant, over all turns."""
    data, task = case.data(), case.task()
    times: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(TURNS):
        for name, (threads, hire) in CONTESTANTS.items():
            with hire() as crew:
                simulator = Simulator(data, task, case.method(Q), seed=1, threads=threads)
                if crew is not None:
                    employ(simulator, crew)
                simulator.run_round()  # the first one allocates
                for _ in range(ROUNDS[case.name]):
                    start = time.perf_counter()
                    simulator.run_round()
                    times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seen) for name, seen in times.items()}


if __name__ == "__main__":
    print(table())
