"""Contestants take turns, so that whatever else the machine does hits them all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks.cases import BATCH, Case
from benchmarks.central import Central
from benchmarks.naive import Naive
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.simulator.memory import keep_freed_memory
from crosshatch.simulator.simulator import Simulator

_TURN = 0.1  # seconds a turn lasts at least


@dataclass(frozen=True)
class Result:
    """Milliseconds a local step of everybody, for one model, Q and number of threads."""

    case: str
    local_steps: int
    threads: int
    strategy: str
    ours: float
    one_batch: float
    pieces: float
    naive: float
    against_central: float
    against_naive: float


def run_case(case: Case, local_steps: int, threads: int, *, turns: int, only: str | None = None) -> Result:
    """Race one model; `turns` timings of each contestant."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    data = case.data()
    algorithm = TDCD(local_steps=local_steps, batch_size=BATCH)
    simulator = Simulator(data, case.task(), algorithm, seed=1, threads=threads)
    images = (False, True) if len(case.shape) == 3 else (False,)
    contestants: dict[str, Callable[[], None]] = {"ours": simulator.run_round}
    for last in images:
        for piece in (None, *case.pieces):
            name = f"{'pieces' if piece else 'one_batch'} {piece} {'channels-last' if last else ''}"
            central = Central(data, case.task(), steps=local_steps, piece=piece, channels_last=last)
            contestants[name] = central.run_round
    contestants["naive"] = Naive(data, case.task(), steps=local_steps).run_round
    if only:
        contestants = {name: run for name, run in contestants.items() if name.startswith(tuple(only.split(",")))}
    # One thread never waits, so its processor time is its time, and neighbours do not count.
    times = take_turns(contestants, turns, time.process_time if threads == 1 else time.perf_counter)
    per_step = {name: [1000 * t / local_steps for t in seen] for name, seen in times.items()}
    best = {name: statistics.median(seen) for name, seen in per_step.items()}
    return _result(case, local_steps, threads, next(iter(simulator.strategies.values())), best)


def _result(case: Case, local_steps: int, threads: int, strategy: str, best: Mapping[str, float]) -> Result:
    def fastest(kind: str) -> float:
        return min((t for name, t in best.items() if name.startswith(kind)), default=float("nan"))

    ours, one_batch, pieces, naive = (fastest(kind) for kind in ("ours", "one_batch", "pieces", "naive"))
    return Result(
        case.name, local_steps, threads, strategy, ours, one_batch, pieces, naive,
        min(one_batch, pieces) / ours, naive / ours,
    )  # fmt: skip


def take_turns(
    contestants: Mapping[str, Callable[[], None]], turns: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Seconds a call of each contestant, once a turn: A B C, A B C, ..."""
    calls = {}
    for name, run in contestants.items():
        run()  # first calls allocate
        start = clock()
        run()
        calls[name] = max(1, round(_TURN / (clock() - start)))
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(turns):
        for name, run in contestants.items():
            start = clock()
            for _ in range(calls[name]):
                run()
            times[name].append((clock() - start) / calls[name])
    return times


def show(results: Sequence[Result]) -> str:
    """The results as a markdown table."""
    head = (
        "model | Q | threads | strategy | ours, ms | central, one batch | central, pieces | naive loop "
        "| central / ours | naive / ours"
    )
    lines = [f"| {head} |", "|---|" + "---:|" * 2 + "---|" + "---:|" * 6]
    lines += [
        f"| {r.case} | {r.local_steps} | {r.threads} | {r.strategy} | {r.ours:.2f} | {r.one_batch:.2f} "
        f"| {r.pieces:.2f} | {r.naive:.2f} | {r.against_central:.2f} | {r.against_naive:.1f} |"
        for r in results
    ]
    return "\n".join(lines)
