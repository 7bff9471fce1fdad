"""How much communication do local steps save? Rounds and bytes to a fixed target for FedSGD, FedBCD and TDCD.

    python -m benchmarks.communication --data DIR [--set credit_mlp] [--quick] [--target T] [--batch-size B] [--out F]

Every (method, Q) has its own constant step size: of the grid, the one that reaches the target on the validation rows in
the fewest rounds, summed over the seeds. Reported are the rounds until the test rows reach it. Simulated time follows
the constant model, t_comm = 10 and t_comp = 1, in which a TDCD round must take 3 t_comm + Q t_comp exactly.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from benchmarks.settings import CREDIT_LOGISTIC, CREDIT_MLP, MNIST, Held, Setting, data_folder, hold_out, measure
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.federated import merge_clients
from crosshatch.errors import CrosshatchError, TrainingError
from crosshatch.network import ConstantNetwork
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import build_task

Method = Literal["fedsgd", "fedbcd", "tdcd"]
NETWORK = ConstantNetwork(t_comm=10.0, t_comp=1.0)
CONTESTANTS: tuple[tuple[Method, int], ...] = (
    ("fedsgd", 1),
    ("fedbcd", 5),
    ("fedbcd", 10),
    ("fedbcd", 50),
    ("tdcd", 5),
    ("tdcd", 10),
    ("tdcd", 50),
    ("tdcd", 1),
)


@dataclass(frozen=True)
class Race:
    """A target for one set, with limits: `rounds` for all Q, and `local_steps`.

    Step sizes are tried in the order given, so promising ones (or those which diverge at once) come first.
    """

    setting: Setting
    target: float
    step_sizes: tuple[float, ...]
    rounds: int = 400
    local_steps: int = 4000
    seeds: int = 3
    every: int = 1  # rounds between evaluations at Q = 1; every round otherwise
    validation: int | None = None  # rows of it looked at, None for all
    near: float = 1.0  # test rows are looked at once the validation metric is this near the target

    def limit(self, q: int) -> int:
        """Rounds after which a run is given up."""
        return min(self.rounds, max(1, self.local_steps // q))


RACES = (
    Race(CREDIT_LOGISTIC, 0.715, (10.0, 3.0, 1.0, 0.3, 0.1, 0.03)),
    Race(CREDIT_MLP, 0.765, (10.0, 3.0, 1.0, 0.3, 0.1, 0.03)),
    Race(
        replace(MNIST, batch_size=2000),
        0.95,
        (0.3, 0.2, 0.1, 0.05),
        rounds=300,
        local_steps=500,
        seeds=1,
        every=5,
        validation=1000,
        near=0.01,
    ),
)


@dataclass(frozen=True)
class Hit:
    """When a run reached the target on the validation rows and on the test rows (None: not within the limit)."""

    validation: int | None
    test: int | None = None
    bytes: int = 0
    sim_seconds: float = 0.0


def run(
    race: Race, held: Held, method: Method, q: int, step_size: float, *, seed: int, limit: int, threads: int
) -> Hit:
    """Train until both parts reached the target, or the limit, or `limit` rounds without the validation rows."""
    setting = race.setting
    data = held.data if method == "tdcd" else merge_clients(held.data)
    algorithm: FedSGD | FedBCD | TDCD
    match method:
        case "fedsgd":
            algorithm = FedSGD(step_size, setting.batch_size)
        case "fedbcd":
            algorithm = FedBCD(q, step_size, setting.batch_size)
        case "tdcd":
            algorithm = TDCD(q, step_size, setting.batch_size)
    task = build_task(data, setting.model, seed=seed)
    simulator = Simulator(data, task, algorithm, seed=seed, network=NETWORK, threads=threads)
    every = race.every if q == 1 else 1
    hit = Hit(None)
    while hit.validation is None or hit.test is None:
        if simulator.round >= (limit if hit.validation is None else race.limit(q)):
            break
        try:
            simulator.run_round()
        except TrainingError:
            break
        if simulator.round % every:
            continue
        seen = measure(simulator, held, setting.metric, "validation", limit=race.validation)
        if hit.validation is None and seen >= race.target:
            hit = replace(hit, validation=simulator.round)
        close = hit.test is None and seen >= race.target - race.near
        if close and measure(simulator, held, setting.metric, "test") >= race.target:
            hit = replace(hit, test=simulator.round, bytes=simulator.meter.bytes, sim_seconds=simulator.seconds)
    check_time(simulator, method, q)
    return hit


def check_time(simulator: Simulator, method: Method, q: int) -> None:
    """A TDCD round takes `3 t_comm + Q t_comp`, exactly."""
    if method == "tdcd":
        expected = simulator.round * (3 * NETWORK.t_comm + q * NETWORK.t_comp)
        assert simulator.seconds == expected, f"{simulator.seconds} s in {simulator.round} rounds, not {expected}"


@dataclass(frozen=True)
class Result:
    """The chosen step size of a contestant, and its runs."""

    method: Method
    q: int
    step_size: float | None
    hits: tuple[Hit, ...]

    @property
    def rounds(self) -> float | None:
        """Mean rounds to the target on the test rows, None where a seed did not reach it."""
        found = [hit.test for hit in self.hits if hit.test is not None]
        return statistics.fmean(found) if found and len(found) == len(self.hits) else None


def tune(race: Race, held: Sequence[Held], method: Method, q: int, *, threads: int) -> Result:
    """The step size with the fewest validation rounds over all seeds; a run behind the best so far is given up."""
    best, least = Result(method, q, None, ()), race.limit(q) * len(held) + 1
    for step_size in race.step_sizes:
        start, total, hits = time.perf_counter(), 0, []
        for seed, one in enumerate(held):
            limit = min(race.limit(q), least - total - 1)
            hit = run(race, one, method, q, step_size, seed=seed, limit=limit, threads=threads)
            hits.append(hit)
            if hit.validation is None:
                break
            total += hit.validation
        seen = [(hit.validation, hit.test) for hit in hits]
        print(
            f"{race.setting.name} {method} Q {q} step size {step_size:g}: (validation, test) rounds {seen}, "
            f"{time.perf_counter() - start:.0f} s",
            file=sys.stderr,
            flush=True,
        )
        if hits[-1].validation is not None and total < least:
            best, least = Result(method, q, step_size, tuple(hits)), total
    return best


HEAD = (
    "set | target | algorithm | Q | clients per silo | step size | rounds (seeds) | mean | of FedSGD's "
    "| MB | simulated time"
)


def run_race(race: Race, folder: Path | None, *, threads: int) -> list[str]:
    """Rows of the table for one set."""
    held = [hold_out(race.setting, folder, seed=seed) for seed in range(race.seeds)]
    results = [tune(race, held, method, q, threads=threads) for method, q in CONTESTANTS]
    base = results[0].rounds
    return [row(race, result, base) for result in results]


def row(race: Race, result: Result, base: float | None) -> str:
    """One line of the table."""
    setting = race.setting
    clients = setting.federation.clients if result.method == "tdcd" else 1
    cells: list[object] = [setting.name, f"{setting.metric} {race.target:g}", result.method, result.q, clients]
    if result.rounds is None or result.step_size is None:
        return (
            "| " + " | ".join(map(str, [*cells, "-", f"not within {race.limit(result.q)}", "-", "-", "-", "-"])) + " |"
        )
    megabytes = statistics.fmean(hit.bytes for hit in result.hits) / 1e6
    seconds = statistics.fmean(hit.sim_seconds for hit in result.hits)
    each = "/".join(str(hit.test) for hit in result.hits)
    ratio = "-" if base is None else f"{result.rounds / base:.2f}"
    cells += [f"{result.step_size:g}", each, f"{result.rounds:.1f}", ratio, f"{megabytes:.3g}", f"{seconds:.0f}"]
    return "| " + " | ".join(map(str, cells)) + " |"


def describe(race: Race) -> str:
    """What was held fixed for one set."""
    rows = "all" if race.validation is None else f"{race.validation}"
    grid = ", ".join(f"{size:g}" for size in sorted(race.step_sizes))
    return (
        f"- {race.setting.name}: batch {race.setting.batch_size}, constant step sizes {grid}, "
        f"seeds 0 to {race.seeds - 1}, at most {race.rounds} rounds and {race.local_steps} local steps, "
        f"evaluated every round (every {race.every} at Q = 1), {rows} validation rows"
    )


def shorten(race: Race) -> Race:
    """A few rounds, one seed, one step size: to see that it runs."""
    return replace(race, rounds=10, local_steps=50, seeds=1, step_sizes=race.step_sizes[2:3])


def main() -> int:
    """Run the chosen races and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [race.setting.name for race in RACES]
    parser.add_argument("--set", dest="sets", action="append", choices=names, help="only this set (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="a few rounds, to see that it runs")
    parser.add_argument("--batch-size", type=int, help="another batch size for all methods")
    parser.add_argument("--target", type=float, help="another target")
    parser.add_argument("--data", type=Path, help="data folder (default: CROSSHATCH_DATA)")
    parser.add_argument("--out", type=Path, help="write the table to this file too")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    races = [race for race in RACES if not given.sets or race.setting.name in given.sets]
    races = [shorten(race) for race in races] if given.quick else races
    if given.batch_size is not None:
        races = [replace(race, setting=replace(race.setting, batch_size=given.batch_size)) for race in races]
    if given.target is not None:
        races = [replace(race, target=given.target) for race in races]
    lines = [f"| {HEAD} |", "|---" * 11 + "|"]
    try:
        for race in races:
            lines += run_race(race, data_folder(given.data), threads=given.threads)
    except CrosshatchError as error:
        print(error, file=sys.stderr)
        return 2
    text = "\n".join([*lines, "", *map(describe, races)]) + "\n"
    print(text)
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
