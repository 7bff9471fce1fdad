"""An encrypted transfer with real ciphertexts against its costs alone, round by round, on a small network.

    python -m benchmarks.encrypted_transfer --data DIR [--key-bits 3072] [--rounds 10]

Credit default as the FedBCD paper divides it, A with payments, bills and labels (18 columns), B with profiles (15), in
its Taylor form. Table 2 of that paper is a recipe: `crosshatch reproduce run fedbcd-table2`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from benchmarks.encryption import agree
from benchmarks.settings import Held
from benchmarks.transfer import Credit
from crosshatch import FedBCD, FedSGD, InverseSqrt, ModelSettings
from crosshatch.task.build_task import build_task
from crosshatch.task.task import Task

LOCAL_STEPS = (1, 5)
COMMON, ROWS, UNITS = 2000, 400, 4


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


def costs_and_ciphertexts(folder: Path, key_bits: int, rounds: int) -> str:
    """The table."""
    held, task = _case(folder, UNITS)
    threads = os.cpu_count() or 1
    lines = [
        "| Q | rounds | bytes real | bytes costs | seconds real | seconds costs | real / costs |",
        "|" + "---:|" * 7,
    ]
    for steps in LOCAL_STEPS:
        cells = agree(held.data, task, _algorithm(steps, 1.0, ROWS), key_bits, rounds, threads)
        lines.append(f"| {steps} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encrypted_transfer", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with credit_default")
    parser.add_argument("--key-bits", type=int, default=3072)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    print(costs_and_ciphertexts(options.data, options.key_bits, options.rounds))


if __name__ == "__main__":
    main()
