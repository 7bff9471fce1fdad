"""Does training on divided data cost accuracy? Test metrics of FedBCD and TDCD beside those of central training.

    python -m benchmarks.accuracy --data DIR [--set credit_logistic] [--quick] [--batch-size B] [--out FILE]

Every method is tuned over the same step sizes; step size and stopping round are those with the best metric on the
validation rows, with the first seed. Further seeds (weights, batches, and who holds which sample) reuse the step size.
The yardstick takes as many gradient steps, each on a fresh batch, which favours it: the others use a batch Q times.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from benchmarks.settings import (
    CREDIT_LOGISTIC,
    CREDIT_MLP,
    MNIST,
    PHYSIONET,
    SUPERCONDUCTIVITY,
    VALIDATION,
    Held,
    Setting,
    data_folder,
    hold_out,
    measure,
)
from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.federated import merge_clients
from crosshatch.errors import CrosshatchError, TrainingError
from crosshatch.schedules import Constant, Halving, Schedule
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import build_task

Method = Literal["central", "fedbcd", "tdcd"]
METHODS: tuple[Method, ...] = ("central", "fedbcd", "tdcd")
PATIENCE = 1 / 2  # of the rounds without a better validation metric end a run


@dataclass(frozen=True)
class Plan:
    """How one set is trained: Q, rounds, the grid, and how often the step size is halved (0: never).

    `tuning` is the part of the rounds after which step sizes are compared, for sets that take long.
    """

    setting: Setting
    local_steps: int
    rounds: int
    step_sizes: tuple[float, ...]
    halvings: int = 3
    seeds: int = 3
    evaluations: int = 20
    tuning: float = 1.0
    batches: Literal["reused", "fresh"] = "reused"  # of TDCD: one per round (journal), or Q (ICASSP)
    choose_by: str | None = None  # metric on the validation rows; None: the set's own

    @property
    def chooser(self) -> Setting:
        """The setting as seen by the choice of step size and round."""
        return replace(self.setting, metric=self.choose_by or self.setting.metric)

    def schedule(self, step_size: float) -> Schedule:
        """Constant, or halved at equal distances over the rounds."""
        if not self.halvings:
            return Constant(step_size)
        return Halving(step_size, max(1, self.rounds // (self.halvings + 1)))


PLANS = (
    Plan(SUPERCONDUCTIVITY, 5, 3000, (0.005, 0.01, 0.02, 0.04), halvings=0),
    Plan(CREDIT_LOGISTIC, 10, 200, (0.1, 0.3, 1.0, 3.0)),
    Plan(CREDIT_MLP, 5, 600, (0.1, 0.3, 1.0, 3.0)),
    Plan(PHYSIONET, 5, 80, (0.3, 1.0), seeds=2, choose_by="loss"),  # 55 deaths: too few for an AUC
    Plan(MNIST, 5, 400, (0.1, 0.2, 0.4), seeds=1, tuning=0.25),
)


@dataclass(frozen=True)
class Outcome:
    """One run: the round that was best on the validation rows, and the metrics there."""

    step_size: float
    round: int
    validation: float
    test: float
    seconds: float


def run(
    plan: Plan, held: Held, method: Method, step_size: float, *, seed: int, threads: int, part: float = 1.0
) -> Outcome:
    """Train for `part` of the rounds and keep the metrics of the best one; NaN where it diverged before any."""
    setting, eta = plan.setting, plan.schedule(step_size)
    data = merge_clients(held.data) if method == "fedbcd" else held.data
    algorithm: Central | FedBCD | TDCD
    match method:
        case "central":
            algorithm = Central(plan.local_steps, eta, setting.batch_size, batches="fresh")
        case "fedbcd":
            algorithm = FedBCD(plan.local_steps, eta, setting.batch_size)
        case "tdcd":
            algorithm = TDCD(plan.local_steps, eta, setting.batch_size, plan.batches)
    simulator = Simulator(data, build_task(data, setting.model, seed=seed), algorithm, seed=seed, threads=threads)
    every = max(1, plan.rounds // plan.evaluations)
    best = Outcome(step_size, 0, math.nan, math.nan, 0.0)
    start = time.perf_counter()
    try:
        while simulator.round < part * plan.rounds and simulator.round - best.round <= PATIENCE * plan.rounds:
            simulator.run_round()
            if simulator.round % every == 0:
                validation = measure(simulator, held, plan.chooser.metric, "validation")
                if plan.chooser.better(validation, best.validation):
                    test = measure(simulator, held, setting.metric, "test")
                    best = Outcome(step_size, simulator.round, validation, test, 0.0)
    except TrainingError:
        pass
    return replace(best, seconds=time.perf_counter() - start)


def tune(plan: Plan, held: Held, method: Method, *, seed: int, threads: int) -> Outcome:
    """The run with the best validation metric over the grid; says on stderr how each step size did."""
    best: Outcome | None = None
    for step_size in plan.step_sizes:
        outcome = run(plan, held, method, step_size, seed=seed, threads=threads, part=plan.tuning)
        note(plan, method, seed, outcome)
        if best is None or plan.chooser.better(outcome.validation, best.validation):
            best = outcome
    assert best is not None
    if plan.tuning < 1:
        best = run(plan, held, method, best.step_size, seed=seed, threads=threads)
        note(plan, method, seed, best)
    return best


def note(plan: Plan, method: Method, seed: int, outcome: Outcome) -> None:
    """One line of progress."""
    print(
        f"{plan.setting.name} {method} seed {seed} step size {outcome.step_size:g}: validation "
        f"{outcome.validation:.4f} test {outcome.test:.4f} at round {outcome.round}, {outcome.seconds:.0f} s",
        file=sys.stderr,
        flush=True,
    )


def run_plan(plan: Plan, folder: Path | None, *, threads: int) -> list[str]:
    """Rows of the table for one set, the yardstick first."""
    outcomes: dict[Method, list[Outcome]] = {method: [] for method in METHODS}
    for seed in range(plan.seeds):
        held = hold_out(plan.setting, folder, seed=seed)
        for method in METHODS:
            if seed == 0:
                outcomes[method].append(tune(plan, held, method, seed=seed, threads=threads))
            else:
                chosen = outcomes[method][0].step_size
                outcomes[method].append(run(plan, held, method, chosen, seed=seed, threads=threads))
                note(plan, method, seed, outcomes[method][-1])
    return [row(plan, method, outcomes[method], outcomes["central"]) for method in METHODS]


def row(plan: Plan, method: Method, found: Sequence[Outcome], central: Sequence[Outcome]) -> str:
    """One line: means over the seeds, spreads behind a plus-minus, and whether the goal of the project is met."""
    setting = plan.setting
    mean = statistics.fmean(outcome.test for outcome in found)
    yardstick = statistics.fmean(outcome.test for outcome in central)
    worse = yardstick - mean if setting.higher else mean - yardstick
    loss = worse / yardstick if setting.metric == "rmse" else worse
    allowed = 0.01 if setting.metric == "rmse" else 0.005
    difference = f"{loss:+.2%}" if setting.metric == "rmse" else f"{loss:+.4f}"
    verdict = "yardstick" if method == "central" else f"{difference} ({'within' if loss <= allowed else 'beyond'})"
    rounds = "/".join(str(outcome.round) for outcome in found)
    clients = {"central": "-", "fedbcd": "1", "tdcd": str(setting.federation.clients)}[method]
    cells = (
        setting.name, setting.model.block, method, plan.local_steps, clients, f"{found[0].step_size:g}", rounds,
        f"{setting.metric} {spread(found)}", spread(central), verdict,
    )  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def spread(found: Sequence[Outcome]) -> str:
    """Mean and, of several seeds, the standard deviation of the test metric."""
    values = [outcome.test for outcome in found]
    mean = f"{statistics.fmean(values):.4f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.4f}"


HEAD = "set | model | algorithm | Q | clients per silo | step size | best rounds | test | central's test | loss"


def shorten(plan: Plan) -> Plan:
    """A tenth of the rounds, two step sizes, one seed: to see that it runs."""
    middle = len(plan.step_sizes) // 2
    return replace(
        plan,
        rounds=max(10, plan.rounds // 10),
        step_sizes=plan.step_sizes[middle - 1 : middle + 1],
        seeds=1,
        evaluations=5,
    )


def describe(plan: Plan) -> str:
    """What was held fixed for one set."""
    setting = plan.setting
    decay = f"halved {plan.halvings} times" if plan.halvings else "constant"
    grid = ", ".join(f"{size:g}" for size in plan.step_sizes)
    compared = "" if plan.tuning == 1 else f", compared after {plan.tuning * plan.rounds:g} rounds"
    return (
        f"- {setting.name}: batch {setting.batch_size}, at most {plan.rounds} rounds of Q = {plan.local_steps} steps, "
        f"TDCD's batches {plan.batches}, step sizes {grid} ({decay}{compared}), l2 {setting.model.l2:g}, "
        f"seeds {', '.join(str(s) for s in range(plan.seeds))}, chosen by validation {plan.chooser.metric}"
    )


def main() -> int:
    """Run the chosen sets and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [plan.setting.name for plan in PLANS]
    parser.add_argument("--set", dest="sets", action="append", choices=names, help="only this set (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that it runs")
    parser.add_argument("--batch-size", type=int, help="another batch size for all methods")
    parser.add_argument("--data", type=Path, help="data folder (default: CROSSHATCH_DATA)")
    parser.add_argument("--out", type=Path, help="write the table to this file too")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    plans = [plan for plan in PLANS if not given.sets or plan.setting.name in given.sets]
    plans = [shorten(plan) for plan in plans] if given.quick else plans
    if given.batch_size is not None:
        plans = [replace(plan, setting=replace(plan.setting, batch_size=given.batch_size)) for plan in plans]
    lines = [f"| {HEAD} |", "|---" * 10 + "|"]
    try:
        for plan in plans:
            lines += run_plan(plan, data_folder(given.data), threads=given.threads)
    except CrosshatchError as error:
        print(error, file=sys.stderr)
        return 2
    lines += ["", f"{VALIDATION:.0%} of the training rows chose step size and round.", *map(describe, plans)]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
