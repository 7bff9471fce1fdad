"""Table 2 of the FedBCD paper: `python -m benchmarks.encrypted_transfer --data DIR [--key-bits 3072] [--rounds 10]`.

Credit default as the paper divides it, A with payments, bills and labels (18 columns), B with profiles (15), in its
Taylor form and encrypted. First some rounds with real ciphertexts against those with costs alone, on a small network;
then FedSGD and FedBCD to three values of B's AUC with costs alone: rounds, bytes, seconds of computing and messages.

The step size is eta_0 / sqrt(t + 1), eta_0 chosen for each method on validation rows in clear, by the mean AUC of the
first 50 rounds; rounds are those of the test rows.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.encryption import NETWORK, agree
from benchmarks.settings import Held
from benchmarks.transfer import Credit
from crosshatch import FedBCD, FedSGD, InverseSqrt, ModelSettings, PrivacySettings, Simulator
from crosshatch.errors import TrainingError
from crosshatch.privacy.measure_operations import measure_operations
from crosshatch.task.build_task import build_task
from crosshatch.task.metrics import evaluate
from crosshatch.task.task import Task

TARGETS = (0.60, 0.61, 0.62)
LOCAL_STEPS = (1, 5, 10)
STEP_SIZES = (1.0, 2.0, 3.0, 5.0, 10.0)
ROUNDS_TO_CHOOSE, MOST_ROUNDS = 50, 300
COMMON, ROWS, UNITS = 2000, 1400, 8
SMALL_ROWS, SMALL_UNITS = 400, 4  # for real ciphertexts


def _case(folder: Path, units: int) -> tuple[Held, Task]:
    held = Credit(folder, 1, quick=False).held(COMMON, 0)
    model = ModelSettings(
        "mlp", hidden=(units,), outputs=units, fusion="transfer", loss="taylor_logistic", alignment="distance",
        alignment_weight=0.01, l2=0.001,
    )  # fmt: skip
    return held, build_task(held.data, model, seed=0)


def _algorithm(steps: int, step_size: float, rows: int) -> Any:
    schedule = InverseSqrt(step_size)
    return FedSGD(schedule, rows, draw="anew") if steps == 1 else FedBCD(steps, schedule, rows, draw="anew")


def _auc(simulator: Simulator, rows: slice) -> float:
    scores = simulator.scores([silo.test for silo in simulator.data.silos])[rows]
    return evaluate(["auc"], scores, simulator.data.y_test[rows], simulator.task.loss)["auc"]


def costs_and_ciphertexts(folder: Path, key_bits: int, rounds: int) -> str:
    """The first table."""
    held, task = _case(folder, SMALL_UNITS)
    threads = os.cpu_count() or 1
    lines = [
        "| Q | rounds | bytes real | bytes costs | seconds real | seconds costs | real / costs |",
        "|" + "---:|" * 7,
    ]
    for steps in LOCAL_STEPS[:2]:
        cells = agree(held.data, task, _algorithm(steps, 1.0, SMALL_ROWS), key_bits, rounds, threads)
        lines.append(f"| {steps} | {cells} |")
    return "\n".join(lines)


def _chosen(held: Held, task: Task, steps: int) -> float:
    """The step size with the highest AUC on validation rows, on average over the first rounds."""

    def course(step_size: float) -> float:
        simulator, total = Simulator(held.data, task, _algorithm(steps, step_size, ROWS), threads=1), 0.0
        try:
            for _ in range(ROUNDS_TO_CHOOSE):
                simulator.run_round()
                total += _auc(simulator, slice(held.validation))
        except TrainingError:
            return 0.0
        return total

    return max(STEP_SIZES, key=course)


def to_targets(folder: Path, key_bits: int) -> str:
    """The second table: costs alone, from beginning to end."""
    held, task = _case(folder, UNITS)
    privacy = PrivacySettings("paillier", key_bits, accept_leakage=True)
    privacy = replace(privacy, seconds=measure_operations(privacy, threads=os.cpu_count() or 1))
    rows: dict[float, list[str]] = {target: [] for target in TARGETS}
    for steps in LOCAL_STEPS:
        step_size = _chosen(held, task, steps)
        algorithm = _algorithm(steps, step_size, ROWS)
        simulator, left = Simulator(held.data, task, algorithm, privacy=privacy, network=NETWORK), list(TARGETS)
        while left and simulator.round < MOST_ROUNDS:
            simulator.run_round()
            found = _auc(simulator, slice(held.validation, None))
            while left and found >= left[0]:
                computing, total = simulator.computing_seconds or 0.0, simulator.seconds
                name, sent = "FedSGD" if steps == 1 else "FedBCD", simulator.meter.bytes / 1e6
                seconds = f"{computing:.0f} s | {total - computing:.0f} s | {total:.0f} s |"
                rows[left.pop(0)].append(
                    f"{name} | {steps} | {step_size:g} | {simulator.round} | {sent:.0f} | {seconds}"
                )
                print(f"{name} {steps}: {found:.4f} in round {simulator.round}", flush=True)
    head = "| AUC | method | Q | eta_0 | rounds | MB | computing | messages | total |"
    lines = [head, "|---:|---|" + "---:|" * 7]
    return "\n".join([*lines, *(f"| {target:.2f} | {row}" for target in TARGETS for row in rows[target])])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encrypted_transfer", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with credit_default")
    parser.add_argument("--key-bits", type=int, default=3072)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    print(f"{to_targets(options.data, options.key_bits)}\n", flush=True)
    print(costs_and_ciphertexts(options.data, options.key_bits, options.rounds))


if __name__ == "__main__":
    main()
