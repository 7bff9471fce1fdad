"""Contestants take turns, so that whatever else the machine does hits them all alike."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks.cases import Case
from benchmarks.central import Central
from benchmarks.naive import Naive
from crosshatch.simulator.allocator import keep_freed_memory
from crosshatch.simulator.simulator import Simulator

_TURN = 0.1  # seconds a turn lasts at least


@dataclass(frozen=True)
class Result:
    """Milliseconds a local step of everybody, turn by turn, for one model, Q and number of threads."""

    case: str
    local_steps: int
    threads: int
    strategy: str
    times: Mapping[str, Sequence[float]]  # of "ours", "one batch", "pieces of ..." and "naive" where it raced

    def median(self, name: str) -> float:
        """The median turn of a contestant."""
        return statistics.median(self.times[name])

    @property
    def pieces(self) -> str:
        """The better one of those who take the batch in pieces."""
        return min((name for name in self.times if name.startswith("pieces")), key=self.median)

    @property
    def against_central(self) -> float:
        """How many times as fast as central training we are."""
        return self._against(min("one batch", self.pieces, key=self.median))

    @property
    def against_naive(self) -> float:
        """How many times as fast as the naive loop we are."""
        return self._against("naive") if "naive" in self.times else math.nan

    def _against(self, name: str) -> float:
        """The median over turns: a machine that slows down for a while slows both."""
        return statistics.median(
            theirs / ours for theirs, ours in zip(self.times[name], self.times["ours"], strict=True)
        )


def run_case(case: Case, local_steps: int, threads: int, *, turns: int) -> Result:
    """Race one model; `turns` timings of each contestant, of which the median counts."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    data = case.data()
    simulator = Simulator(data, case.task(), case.method(local_steps), seed=1, threads=threads)
    # A central step costs the same however many there are: of the heavy ones two are enough.
    steps = min(local_steps, 2) if case.heavy else local_steps
    contestants: dict[str, tuple[Callable[[], None], int]] = {"ours": (simulator.run_round, local_steps)}
    for piece in (None, *case.pieces):
        name = f"pieces of {piece}" if piece else "one batch"
        contestants[name] = (Central(data, case.task(), steps=steps, piece=piece).run_round, steps)
    if not (case.heavy and local_steps > 1):
        contestants["naive"] = (Naive(data, case.task(), steps=local_steps).run_round, local_steps)
    # One thread never waits, so its processor time is its time, and neighbours do not count.
    clock = time.process_time if threads == 1 else time.perf_counter
    times = take_turns({name: run for name, (run, _) in contestants.items()}, turns, clock)
    step = {name: [1000 * seconds / contestants[name][1] for seconds in seen] for name, seen in times.items()}
    strategy = "one pass" if local_steps == 1 else next(iter(simulator.strategies.values()))
    return Result(case.name, local_steps, threads, strategy, step)


def take_turns(
    contestants: Mapping[str, Callable[[], None]], turns: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Seconds a call of each contestant, once a turn: A B C, A B C, ..."""
    calls = {}
    for name, run in contestants.items():
        for _ in range(2):  # first calls allocate
            start = clock()
            run()
            calls[name] = max(1, round(_TURN / (clock() - start)))
            if clock() - start > 10 * _TURN:
                break
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(turns):
        for name, run in contestants.items():
            start = clock()
            for _ in range(calls[name]):
                run()
            times[name].append((clock() - start) / calls[name])
    return times


HEAD = (
    "| model | Q | threads | strategy | ours, ms | central, one batch | central, pieces | naive loop "
    "| central / ours | naive / ours |\n|---|---:|---:|---|---:|---:|---:|---:|---:|---:|"
)


def line(r: Result) -> str:
    """A result as a line of a markdown table."""
    raced = "naive" in r.times
    naive, against_naive = (f"{r.median('naive'):.2f}", f"{r.against_naive:.1f}") if raced else ("-", "-")
    return (
        f"| {r.case} | {r.local_steps} | {r.threads} | {r.strategy} | {r.median('ours'):.2f} "
        f"| {r.median('one batch'):.2f} | {r.median(r.pieces):.2f} | {naive} "
        f"| {r.against_central:.2f} | {against_naive} |"
    )


def table(results: Sequence[Result]) -> str:
    """All results as a markdown table."""
    return "\n".join([HEAD, *map(line, results)])
