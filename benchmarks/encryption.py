"""What encryption costs: `python -m benchmarks.encryption [--key-bits 3072] [--rounds 10] [--data DIR]`.

Three tables. The masked gradient of 256 samples with 15 features, against the bare gmpy2 operations that it consists of
and against one power per number. Rounds with real ciphertexts against those with costs alone. With `--data`, training
on credit default by FedSGD and FedBCD: rounds, bytes, seconds of computing and of messages to each training loss.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
import torch

from crosshatch import (
    BandwidthNetwork,
    FedBCD,
    FederationSettings,
    FedSGD,
    InverseSqrt,
    Link,
    ModelSettings,
    PrivacySettings,
    SiloSettings,
    Simulator,
    build_task,
    federate,
    load_dataset,
)
from crosshatch.data.federated import FederatedData
from crosshatch.privacy.encrypted_matrix import EncryptedMatrix, Masked
from crosshatch.privacy.fixed_point import FixedPoint, Whole
from crosshatch.privacy.measure_operations import measure_operations
from crosshatch.privacy.packing import Slots
from crosshatch.privacy.paillier import PrivateKey, generate_keys
from crosshatch.privacy.powers import multiplications
from crosshatch.task.task import Task

ROWS, COLUMNS = 256, 15
TURNS = 7
LOSSES = (0.55, 0.51, 0.49)  # of the first 4,000 training samples; the best is 0.477
MOST_ROUNDS = 2000
# Between two machines of one city: 100 megabits per second, 10 milliseconds.
NETWORK = BandwidthNetwork(links={"hub-hub": Link(latency=0.01, up=100.0, down=100.0)}, step_seconds=1e-4)


def _times(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds, medians."""
    found = []
    for _ in range(TURNS):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - wall, time.process_time() - processor))
    return statistics.median(one for one, _ in found), statistics.median(one for _, one in found)


def _bare(key: PrivateKey, x: Whole, slots: Slots) -> None:
    """The operations of a masked gradient without anything around them."""
    square, n = key.public.square, key.public.n
    a = gmpy2.mpz(secrets.randbits(2 * key.public.bits)) % square
    for _ in range(multiplications(x, threads=1)):
        a = a * a % square
    for _ in range(x.shape[1]):
        a = a * gmpy2.invert(a, square) % square + 1
    for _ in range(x.shape[1] - slots.plaintexts(x.shape[1])):
        a = gmpy2.powmod(a, 1 << slots.bits, square) * a % square
    for _ in range(slots.plaintexts(x.shape[1])):
        a = gmpy2.powmod(a, n, square) * a % square * a % square


def masked_gradient(key_bits: int) -> str:
    """The first table."""
    key, point = generate_keys(key_bits), FixedPoint()
    draw = np.random.default_rng(0)
    x = point.encode(draw.standard_normal((ROWS, COLUMNS)))
    d = EncryptedMatrix.of(key, point.encode(draw.uniform(-1, 1, (ROWS, 1))), point.bound)
    cores = os.cpu_count() or 1

    def ours(threads: int) -> None:
        Masked.of(d.transposed_product(x, point.bound, threads=threads), threads=threads)

    def one_by_one() -> None:
        for row, value in zip(x.tolist(), d.values, strict=True):
            for number in row:
                gmpy2.powmod(value, number, key.public.square)

    slots = Slots(d.transposed_product(x[:, :1], point.bound).bound, key.public.bits)
    _, bare = _times(lambda: _bare(key, x, slots))
    lines = [
        "| what | seconds | processor | over bare |",
        "|---|---:|---:|---:|",
        f"| bare operations | | {bare:.3f} | |",
    ]
    for threads in sorted({1, cores}):
        wall, processor = _times(lambda threads=threads: ours(threads))  # type: ignore[misc]
        lines.append(f"| masked gradient, {threads} threads | {wall:.3f} | {processor:.3f} | {processor / bare:.2f} |")
    wall, processor = _times(one_by_one)
    lines.append(f"| {x.size} single powers | {wall:.3f} | {processor:.3f} | {processor / bare:.2f} |")
    return "\n".join(lines)


def _case(columns: int) -> tuple[Any, Any]:
    silos = (SiloSettings("a", span=(0, columns)), SiloSettings("b", span=(columns, 30)))
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=silos, labels="b"), seed=0)
    return data, build_task(data, ModelSettings(), seed=0)


def costs_and_ciphertexts(key_bits: int, rounds: int) -> str:
    """The second table."""
    lines = ["| threads | rounds | bytes real | bytes costs | seconds real | seconds costs | real / costs |"]
    lines += ["|" + "---:|" * 7]
    return "\n".join([*lines, *(_agree(key_bits, rounds, threads) for threads in sorted({1, os.cpu_count() or 1}))])


def _agree(key_bits: int, rounds: int, threads: int) -> str:
    data, task = _case(COLUMNS)
    return f"| {threads} | {agree(data, task, FedBCD(10, 0.1, ROWS, draw='anew'), key_bits, rounds, threads)} |"


def agree(data: FederatedData, task: Task, algorithm: Any, key_bits: int, rounds: int, threads: int) -> str:
    """Cells of a table: rounds, bytes of both ways, median seconds per round of both, and their ratio.

    Both ways take turns, so that what else the machine does troubles both.
    """
    costs = PrivacySettings("paillier", key_bits, accept_leakage=True)

    def simulator(privacy: PrivacySettings) -> Simulator:
        return Simulator(data, task, algorithm, privacy=privacy, threads=threads, network=BandwidthNetwork())

    real, twin = simulator(replace(costs, ciphertexts="real")), simulator(costs)
    spent: list[tuple[float, float]] = []
    for _ in range(rounds):
        charged = simulator(replace(costs, seconds=measure_operations(costs.cipher, threads=threads)))
        charged.restore(*twin.snapshot())
        before = real.computing_seconds or 0.0, charged.computing_seconds or 0.0
        for one in (real, charged, twin):
            one.run_round()
        assert all(torch.equal(a, b) for a, b in zip(real.weights, charged.weights, strict=True))
        spent.append(((real.computing_seconds or 0.0) - before[0], (charged.computing_seconds or 0.0) - before[1]))
    by_hand, by_count = (statistics.median(turn[i] for turn in spent) for i in (0, 1))
    sent = f"{real.meter.bytes} | {twin.meter.bytes}"
    return f"{rounds} | {sent} | {by_hand:.3f} | {by_count:.3f} | {by_hand / by_count:.2f}"


def to_targets(folder: Path, key_bits: int) -> str:
    """The third table: costs alone, from beginning to end."""
    silos = (SiloSettings("profile", span=(0, 5)), SiloSettings("bank", span=(5, 23)))
    data = federate(load_dataset("credit_default", folder), FederationSettings(silos=silos, labels="bank"), seed=0)
    task = build_task(data, ModelSettings(), seed=0)
    privacy = PrivacySettings("paillier", key_bits, accept_leakage=True)
    privacy = replace(privacy, seconds=measure_operations(privacy.cipher, threads=os.cpu_count() or 1))
    lines = [
        "| loss | method | Q | rounds | MB | computing | messages | total |",
        "|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    rows: dict[float, list[str]] = {loss: [] for loss in LOSSES}
    for steps in (1, 5, 10):
        schedule = InverseSqrt(0.1)
        algorithm: Any = (
            FedBCD(steps, schedule, ROWS, draw="anew") if steps > 1 else FedSGD(schedule, ROWS, draw="anew")
        )
        simulator = Simulator(data, task, algorithm, privacy=privacy, network=NETWORK)
        left = list(LOSSES)
        while left and simulator.round < MOST_ROUNDS:
            simulator.run_round()
            found = simulator.objective(4000)
            while left and found <= left[0]:
                computing, total = simulator.computing_seconds or 0.0, simulator.seconds
                name, sent = "FedSGD" if steps == 1 else "FedBCD", simulator.meter.bytes / 1e6
                seconds = f"{computing:.1f} s | {total - computing:.1f} s | {total:.1f} s |"
                rows[left.pop(0)].append(f"{name} | {steps} | {simulator.round} | {sent:.1f} | {seconds}")
    return "\n".join([*lines, *(f"| {loss} | {row}" for loss in LOSSES for row in rows[loss])])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encryption", description=__doc__)
    parser.add_argument("--key-bits", type=int, default=3072)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--data", type=Path, help="the folder with credit_default")
    options = parser.parse_args()
    print(f"{masked_gradient(options.key_bits)}\n", flush=True)
    print(f"{costs_and_ciphertexts(options.key_bits, options.rounds)}\n", flush=True)
    if options.data is not None:
        print(to_targets(options.data, options.key_bits))


if __name__ == "__main__":
    main()
