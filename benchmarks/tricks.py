"""What each speed trick of the simulator gains: `python -m benchmarks.tricks [--only TRICK] [--setting "mlp 10"]`.

Two simulators take turns, one as it is and one with something plainer in the trick's place; a setting is a case and Q.
The gain is the median over turns of the time without the trick over that with it: processor time, one thread.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import hospitals
from benchmarks.cases import BATCH, CASES, Case
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.local import solve
from crosshatch.local.one_step import shared
from crosshatch.local.stacked import stack
from crosshatch.simulator import simulator
from crosshatch.simulator.vertical import federation
from crosshatch.simulator.vertical.embedding import Embedder
from crosshatch.task.blocks.built_in import CNN

Switch = tuple[Any, str, Any]
"""A module or class, a name in it, and what stands there instead."""

_CROWD = replace(CASES[0], name="crowd", clients=100_000, samples=200_000)
_FEW_IMAGES = Case("cnn-400", 2, 400, (1, 28, 14), lambda: CNN((1, 28, 14), 10, channels=16), 10)
_FEW_ROWS = replace(CASES[-1], name="lstm-400", clients=400)
_CASES = {case.name: case for case in (*CASES, _CROWD, _FEW_IMAGES, _FEW_ROWS)}
_ONE = ("logistic 1", "logistic-17 1", "mlp 1")
_TEN = ("logistic 10", "logistic-17 10", "mlp 10", "crowd 10")
_ROUNDS, _TURNS, _SECONDS = 8, 7, 6.0  # per turn of small models; turns at least; time for all turns
_ALLOCATOR = "allocator"


TRICKS: Mapping[str, tuple[Sequence[str], Sequence[Switch]]] = {
    "piles": ((*_ONE, *_TEN), [(Embedder, "_together", lambda self, _, weights, batch: {
        j: self._silo(one, batch, j) for j, one in weights.items()})]),
    "piles, way back": (_ONE, [(shared, "solve_together", lambda *_: False)]),
    "gram": (("mlp 10", "crowd 10"), [(solve, "_gram_pays", lambda *_: False)]),
    "gram, growing": (("hsgd-cnn 10",), [(solve, "_growing_pays", lambda *_: False)]),
    "convolved": (("cnn-400 2", "hsgd-cnn 10"), [(solve, "as_convolved", lambda *_: None)]),
    "recurrent": (("lstm 10", "lstm-400 2"), [(solve, "as_recurrent", lambda _: None)]),
    "one pass": ((*_ONE, "cnn 1", "lstm 1", "crowd 1", "hsgd-cnn 1"), [
        (solve, "served_by_one_pass", lambda *_: []),
        (federation, "Embedder", lambda *of: replace(Embedder(*of), keep_passes=False))]),
    "first step": ((*_TEN, "logistic 3", "logistic-17 3"), [(stack, "first_chain_passes", lambda *_: [])]),
    "buckets": ((*_TEN, "lstm 10"), [(stack, "buckets", lambda rows, _: [np.flatnonzero(rows)])]),
    _ALLOCATOR: (("logistic 10", "mlp 10", "cnn 1", "lstm 1"), [(simulator, "keep_freed_memory", lambda: False)]),
}  # fmt: skip


@contextmanager
def _without(switches: Sequence[Switch]) -> Iterator[None]:
    before = [(where, name, vars(where)[name]) for where, name, _ in switches]
    for where, name, instead in switches:
        setattr(where, name, instead)
    yield
    for where, name, original in before:
        setattr(where, name, original)


def _runner(setting: str, switches: Sequence[Switch]) -> Callable[[int], float]:
    """Who runs so many rounds and says how long each took."""
    name, steps = setting.split()[0], int(setting.split()[1])
    case: Any = hospitals if name == hospitals.NAME else _CASES[name]
    algorithm = HSGD(steps, steps, fraction=hospitals.FRACTION) if case is hospitals else TDCD(steps, batch_size=BATCH)
    with _without(switches):
        ours = simulator.Simulator(case.data(), case.task(), algorithm, seed=1, threads=1)

    def run(rounds: int) -> float:
        with _without(switches):
            begin = time.process_time()
            for _ in range(rounds):
                ours.run_round()
            return (time.process_time() - begin) / rounds

    return run


def _gains(trick: str, setting: str) -> list[float]:
    """Time without the trick over that with it, turn by turn; the allocator, never switched back, gets processes."""
    if trick == _ALLOCATOR:
        command = [sys.executable, "-m", "benchmarks.tricks", "--setting", setting, "--once"]
        pairs = [[subprocess.check_output([*command, state]) for state in ("off", "on")] for _ in range(_TURNS)]
        return [float(off) / float(on) for off, on in pairs]
    on, off = _runner(setting, ()), _runner(setting, TRICKS[trick][1])
    off(2)
    rounds = _ROUNDS if (on(1) + on(1)) / 2 < 0.1 else 1
    turns = int(min(200, max(_TURNS, _SECONDS / (rounds * on(rounds)))))
    first = ((off, on) if turn % 2 else (on, off) for turn in range(turns))
    times = [{run: run(rounds) for run in order} for order in first]
    return [one[off] / one[on] for one in times]


def main() -> None:
    """Print a line for each trick and setting."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tricks", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(TRICKS), help="only this one; may be repeated")
    parser.add_argument("--setting", action="append", help="in these settings; may be repeated")
    parser.add_argument("--once", choices=("on", "off"), help="one process of those that measure the allocator")
    options = parser.parse_args()
    if options.once:
        run = _runner(options.setting[0], TRICKS[_ALLOCATOR][1] if options.once == "off" else ())
        print(statistics.median([run(1) for _ in range(8)][2:]))
        return
    print("| trick | setting | gain | middle half of the turns |\n|---|---|---:|---:|", flush=True)
    for trick in options.only or TRICKS:
        for setting in options.setting or TRICKS[trick][0]:
            low, median, high = statistics.quantiles(_gains(trick, setting), n=4)
            print(f"| {trick} | {setting} | {median:.2f} | {low:.2f}-{high:.2f} |", flush=True)


if __name__ == "__main__":
    main()
