"""What workers gain, and what fixed pieces cost: rounds of the heavy models and of a small one, on two cores.

Contestants compute one after another, since each Ray cluster has the machine for itself; all of it `TURNS` times, and a
ratio is the median of the turns'. What `plan --cluster` would say of the workers stands below what they took.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor

from benchmarks.cases import CASES, Case
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.blocks.built_in import Linear
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Logistic
from crosshatch.task.task import Task
from crosshatch.workers.crew import PIECES, Crew, InlineWorkers, Spent
from crosshatch.workers.employ import employ
from crosshatch.workers.ray_crew import RayWorkers
from crosshatch.workers.requests import Embed
from crosshatch.workers.trial import TrialCrew

ROUNDS = {"cnn-50": 2, "lstm": 5, "logistic": 100}
TURNS = 3
MESSAGES = 40
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
WITH_RAY = {"one worker": 1, "two workers": 2}
PARTS = ("computing", "moving", "driver")


def table() -> str:
    """Seconds per round of each contestant, and how many times as fast as one thread it is; and what was estimated."""
    with_ray = find_spec("ray") is not None
    names = [name for name in CONTESTANTS if name not in WITH_RAY or with_ray]
    cases = [case for case in CASES if case.name in ROUNDS]
    times: dict[tuple[str, str], list[float]] = {}  # by case and contestant the median round of each turn
    spent: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for _ in range(TURNS):
        for name in names:
            threads, hire = CONTESTANTS[name]
            with hire() as crew:
                for case in cases:
                    times.setdefault((case.name, name), []).append(statistics.median(_rounds(case, threads, crew)))
                    if name in WITH_RAY and crew is not None:
                        spent.setdefault((case.name, name), []).append(crew.spent.described())

    def against(case: Case, name: str, other: str) -> float:
        """How many times as fast as the other one."""
        pairs = zip(times[case.name, other], times[case.name, name], strict=True)
        return statistics.median(theirs / own for theirs, own in pairs)

    last = ["two workers / two threads"] if with_ray else []
    lines = [f"| Q = {Q} | {' | '.join([*names, *last])} |", "|---|" + "---:|" * len([*names, *last])]
    for case in cases:
        cells = [
            f"{1000 * statistics.median(times[case.name, name]):.4g} ms ({against(case, name, 'one thread'):.2f})"
            for name in names
        ]
        cells += [f"{against(case, 'two workers', 'two threads'):.2f}" for _ in last]
        lines.append(f"| {case.name}, {case.silos} x {case.clients} | {' | '.join(cells)} |")
    if not with_ray:
        lines += ["", "Workers of Ray did not race: it is not installed (pip install -e '.[ray]')."]
    return "\n".join([*lines, "", *_estimates(cases, spent)])


def _rounds(case: Case, threads: int, crew: Crew | None) -> list[float]:
    """Seconds of some rounds, one after the other."""
    simulator = Simulator(case.data(), case.task(), case.method(Q), seed=1, threads=threads)
    if crew is not None:
        employ(simulator, crew)
    simulator.run_round()  # the first one allocates
    if crew is not None:
        crew.spent = Spent()
    times = []
    for _ in range(ROUNDS[case.name]):
        start = time.perf_counter()
        simulator.run_round()
        times.append(time.perf_counter() - start)
    return times


def _estimates(cases: list[Case], spent: Mapping[tuple[str, str], list[Mapping[str, float]]]) -> Iterator[str]:
    """Milliseconds of a round on workers as they were, the mean of all turns, and as a trial estimates them."""
    if not spent:
        return
    yield f"| ms a round | workers | questions | MB | {' | '.join(PARTS)} | a round, estimated | {' | '.join(PARTS)} |"
    yield "|---|" + "---:|" * (4 + 2 * len(PARTS))
    for case in cases:
        simulator, crew = Simulator(case.data(), case.task(), case.method(Q), seed=1, threads=1), TrialCrew()
        employ(simulator, crew)
        simulator.run_round()
        crew.forget()
        began, rounds = time.process_time(), ROUNDS[case.name]
        for _ in range(rounds):
            simulator.run_round()
        seconds = time.process_time() - began
        for name, workers in WITH_RAY.items():
            found = crew.on(workers, 1, rounds=rounds, seconds=seconds)
            questions, sent = crew.traffic(workers)
            seen = [1000 * statistics.mean(one[part] for one in spent[case.name, name]) / rounds for part in PARTS]
            guessed = [1000 * getattr(found, part) for part in PARTS]
            cells = [*(f"{one:.4g}" for one in seen), f"{1000 * found.seconds:.4g}", *(f"{one:.4g}" for one in guessed)]
            yield (
                f"| {case.name} | {workers} | {questions / rounds:.4g} | {sent / rounds / 1e6:.4g} | "
                f"{' | '.join(cells)} |"
            )


def _of_pieces(held: Mapping[tuple[int, int], Tensor], pieces: Collection[int]) -> dict[tuple[int, int], Tensor]:
    return {key: rows for key, rows in held.items() if key[1] in pieces}


def messages() -> Iterator[str]:
    """What questions to workers take beside their computing, by the bytes that are sent and come back."""
    yield "| workers | block, MB | answer of each, MB | ms | MB a second beyond the least |"
    yield "|---:|---:|---:|---:|---:|"
    for count in WITH_RAY.values():
        least = 0.0
        with RayWorkers(count) as crew:
            for width, outputs, rows in ((8, 64, 4), (8, 64, 4096), (8, 64, 32_768), (4096, 64, 4), (4096, 1024, 4)):
                task = Task((Linear((width,), outputs),), Sum(), Logistic())
                held = {(0, piece): torch.zeros(rows, width) for piece in (0, PIECES - 1)}
                crew.begin(task, partial(_of_pieces, held), {})
                seen, block = [], task.initial()[0]
                for turn in range(MESSAGES):
                    crew.spent, own = Spent(), block.clone()
                    asked = [
                        Embed(0, piece, torch.arange(rows), own, np.zeros(1, int), np.array([rows]), (0, turn, 0))
                        for piece in (0, PIECES - 1)[:count]
                    ]
                    crew.ask(asked)
                    seen.append(crew.spent.moving)
                found = statistics.median(seen[3:])
                least, answer = least or found, rows * outputs * 4 / 1e6
                sent = count * (answer + block.nbytes / 1e6 + rows * 8 / 1e6)
                speed = f"{sent / (found - least):.0f}" if found > least else ""
                yield f"| {count} | {block.nbytes / 1e6:.3g} | {answer:.3g} | {1000 * found:.3g} | {speed} |"


if __name__ == "__main__":
    print(table())
    if find_spec("ray") is not None:
        print("", *messages(), sep="\n")
