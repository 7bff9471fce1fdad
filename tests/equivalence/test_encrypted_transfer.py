"""An encrypted transfer task against the clear one, real ciphertexts against their costs, a round in whole numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from crosshatch import (
    Adam,
    ConstantNetwork,
    FedBCD,
    FederationSettings,
    FedSGD,
    ModelSettings,
    Momentum,
    PrivacySettings,
    Regulariser,
    SiloSettings,
    Simulator,
    build_task,
    federate,
    load_dataset,
)
from crosshatch.data.federated import FederatedData
from crosshatch.privacy.operations import OperationSeconds
from crosshatch.simulator.listening import Heard
from crosshatch.task.task import Task
from crosshatch.transfer.objective import Transfer
from tests.equivalence.courses import course, furthest

SILOS = (SiloSettings("a", span=(0, 3)), SiloSettings("b", span=(3, 6)))
SECONDS = OperationSeconds(encrypt=0.01, multiply=0.001, pack=0.02, mask=0.3, decrypt=0.04)
COSTS = PrivacySettings(encryption="paillier", key_bits=2048, seconds=SECONDS, accept_leakage=True)
REAL = PrivacySettings(encryption="paillier", key_bits=2048, ciphertexts="real", accept_leakage=True)
WIDTH, ROUNDS, ETA = 2, 3, 0.2
ALGORITHMS: dict[str, Any] = {
    "fedsgd": FedSGD(ETA, 110, draw="anew"),
    "fedbcd": FedBCD(5, ETA, 110, draw="anew"),
    "all samples, proximal": FedBCD(3, ETA, proximal=0.5),
    "in turn": FedBCD(2, ETA, 110, order="sequential", draw="anew"),
}


def case(
    layers: int = 2, alignment: Any = "distance", holder: str = "a", weight: float = 0.1, **changes: Any
) -> tuple[FederatedData, Task]:
    """Blocks with one or two layers, none of them zero."""
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=SILOS, labels=holder, common=120), seed=0)
    settings = ModelSettings(
        "mlp", hidden=(2,), activation="tanh", outputs=WIDTH, fusion="transfer", loss="taylor_logistic",
        alignment=alignment, alignment_weight=weight, l2=0.01,
    )  # fmt: skip
    task = build_task(data, settings, seed=1)
    if layers == 1:
        with torch.random.fork_rng():
            torch.manual_seed(3)
            task = replace(task, blocks=tuple(nn.Linear(3, WIDTH) for _ in SILOS))
    return data, replace(task, **changes)


@pytest.mark.parametrize("bits", [16, 24, 32])
@pytest.mark.parametrize("alignment", ["product", "distance"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_encrypted_is_clear_to_the_precision_of_fixed_point(name: str, layers: int, alignment: str, bits: int) -> None:
    data, task = case(layers, alignment)
    algorithm = ALGORITHMS[name]
    _, clear = course(data, task, algorithm, ROUNDS)
    _, encrypted = course(data, task, algorithm, ROUNDS, privacy=replace(COSTS, fraction_bits=bits, whole_bits=12))
    # As the page has it: at most d^2 products of four factors, each off by half a step.
    features = max(float(silo.train.abs().max()) for silo in data.silos)
    largest = max(1.0, features, *(float(block.abs().max()) for round in clear for block in round))
    step = ETA * algorithm.local_steps * 6 * WIDTH**2 * largest**3 * 2.0 ** -(bits + 1)
    found = furthest(encrypted, clear)
    for r, distance in enumerate(found, start=1):
        assert distance <= r * step
        assert distance <= 2.0 ** -(bits - 1)  # what it comes to here
    assert furthest(clear, [clear[0]] * ROUNDS)[-1] > 1e-3
    if bits == 16:
        assert found[-1] > 1e-9  # the fixed point is really gone through


@pytest.mark.parametrize("alignment", ["product", "distance"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_real_ciphertexts_and_costs_are_the_same_bit_for_bit(name: str, layers: int, alignment: str) -> None:
    data, task = case(layers, alignment)
    costs, by_costs = course(data, task, ALGORITHMS[name], 2, privacy=COSTS)
    real, by_ciphertexts = course(data, task, ALGORITHMS[name], 2, privacy=REAL)
    assert all(
        torch.equal(a, b) for x, y in zip(by_costs, by_ciphertexts, strict=True) for a, b in zip(x, y, strict=True)
    )
    assert costs.meter.snapshot() == real.meter.snapshot()
    assert real.computing_seconds is not None
    assert 0 < real.computing_seconds < real.seconds


@pytest.mark.parametrize(
    "changes",
    [
        {"regulariser": Regulariser(l1=0.01)},
        {"optimiser": Momentum()},
        {"optimiser": Adam(state="reset")},
        {"transfer": Transfer("product", 0.1, mean_samples=50)},
        {"transfer": Transfer("product", 0.0)},
        {"transfer": Transfer("distance", 0.0)},
        {"holder": "b"},
    ],
)
def test_whatever_else_there_is(changes: Any) -> None:
    data, task = case(**changes)
    algorithm = FedBCD(3, 0.05, 110, draw="anew")
    _, clear = course(data, task, algorithm, ROUNDS)
    _, encrypted = course(data, task, algorithm, ROUNDS, privacy=replace(COSTS, fraction_bits=40, whole_bits=12))
    assert max(furthest(encrypted, clear)) < 1e-9


def test_a_round_by_hand() -> None:
    """One step of the silo without labels in whole numbers of Python, from the definition."""
    data, task = case(1, "product")
    simulator = Simulator(data, task, FedSGD(ETA), precision=torch.float64, privacy=REAL, threads=1)
    first_a, first_b = (weights.clone() for weights in simulator.weights)
    simulator.run_round()
    x_a, x_b = (silo.train.double() for silo in data.silos)
    blocks = [flat[: 4 * WIDTH] for flat in (first_a, first_b)]
    u_a, u_b = (
        x @ flat[: 3 * WIDTH].view(WIDTH, 3).T + flat[3 * WIDTH :] for x, flat in zip((x_a, x_b), blocks, strict=True)
    )
    phi, signs = first_a[4 * WIDTH :], 2 * data.y_train.double() - 1

    def whole(value: Any) -> int:
        return round(float(value) * 2**24)

    rows = len(x_b)
    gradient = torch.zeros(WIDTH, 4, dtype=torch.float64)
    for c in range(WIDTH):
        for k in range(4):
            total = 0
            for i in range(rows):
                hidden = whole(-signs[i] * phi[c] - 2 * 0.1 * u_a[i, c]) << 24
                hidden += sum(whole(phi[c] * phi[e]) * whole(u_b[i, e] / 2) for e in range(WIDTH))
                total += hidden * whole(x_b[i, k] if k < 3 else 1.0)
            gradient[c, k] = total / (2 * rows * 2**72)
    flat = torch.cat([gradient[:, :3].reshape(-1), gradient[:, 3]])
    assert torch.allclose(simulator.weights[1], first_b - ETA * (flat + 0.01 * first_b), rtol=0, atol=1e-14)


def test_seconds_of_messages() -> None:
    """Components once per round, and a way there and back in every local step; both sides at the same time."""
    data, task = case()
    network, free = ConstantNetwork(t_comm=10.0, t_comp=1.0), replace(COSTS, seconds=OperationSeconds())
    simulator, _ = course(data, task, FedBCD(5, 0.1, 110, draw="anew"), ROUNDS, privacy=free, network=network)
    assert simulator.computing_seconds == pytest.approx(ROUNDS * 5 * 1.0)
    assert simulator.seconds == pytest.approx(ROUNDS * (5 * 1.0 + (1 + 2 * 5) * 5.0))  # half a round trip each
    in_turn, _ = course(
        data, task, FedBCD(5, 0.1, 110, order="sequential", draw="anew"), ROUNDS, privacy=free, network=network
    )
    assert in_turn.seconds == pytest.approx(2 * simulator.seconds)


def test_seconds_of_computing() -> None:
    data, task = case()
    network = ConstantNetwork(t_comm=0.0, t_comp=0.0)

    def seconds(**of: float) -> float | None:
        settings = replace(COSTS, seconds=OperationSeconds(**of))
        options: Any = {"privacy": settings, "threads": 1, "network": network}
        return course(data, task, FedBCD(5, 0.1, 110, draw="anew"), 1, **options)[0].computing_seconds

    # 110 x 2 embeddings and the half of a 2 x 2 matrix; in 5 steps two ciphertexts masked, and as many read
    assert seconds(encrypt=1.0) == pytest.approx(223.0)
    assert seconds(mask=1.0) == pytest.approx(10.0)
    assert seconds(decrypt=1.0) == pytest.approx(10.0)


def test_a_run_goes_on_from_a_snapshot() -> None:
    data, task = case()
    algorithm = FedBCD(5, 0.1, 110, draw="anew")
    whole, weights = course(data, task, algorithm, ROUNDS, privacy=COSTS)
    options: Any = {"seed": 3, "threads": 2, "precision": torch.float64, "privacy": COSTS}
    first = Simulator(data, task, algorithm, **options)
    first.run_round()
    second = Simulator(data, task, algorithm, **options)
    second.restore(*first.snapshot())
    for _ in range(ROUNDS - 1):
        second.run_round()
    assert all(torch.equal(a, b) for a, b in zip(second.weights, weights[-1], strict=True))
    assert (second.seconds, second.computing_seconds) == (whole.seconds, whole.computing_seconds)


def test_who_listens_hears_what_the_side_without_labels_reads_and_nothing_else() -> None:
    data, task = case()
    simulator = Simulator(data, task, FedBCD(2, 0.1), privacy=COSTS)
    heard: list[Heard] = []
    simulator.listen(heard.append)
    before = simulator.weights[1]
    simulator.run_round()
    assert [(one.exchange, one.sender, one.receivers, one.use) for one in heard] == [
        ("gradients", 0, (1,), 0), ("gradients", 0, (1,), 1),
    ]  # fmt: skip
    assert torch.equal(heard[0].values[1], before)
    assert heard[0].values.shape == (2, len(before))


def ridge(known: Any, told: Any) -> Any:
    """The mean of labels of variance 1 given sums over them with noise, of which the sums say themselves how much."""
    left, sizes, right = np.linalg.svd(known, full_matrices=False)
    turned = left.T @ told

    def unlikely(noise: float) -> float:
        variance = sizes**2 + noise
        return float((turned**2 / variance + np.log(variance)).sum())

    noise = min(np.logspace(-8, 2, 60) * (sizes**2).mean(), key=unlikely)
    return right.T @ (turned * sizes / (sizes**2 + noise))


def label_auc(rows: int, hidden: int, columns: int, weight: float, seed: int) -> float:
    """How well labels fitted to B's gradient of one step rank the true ones, for a B that knows Phi."""
    random = np.random.default_rng(seed)
    x = np.concatenate([random.normal(size=(rows, columns)), np.ones((rows, 1))], axis=1)
    y = random.choice([-1.0, 1.0], rows)
    y[:2] = -1, 1
    u_a = random.normal(size=(rows, hidden or 8))
    phi: Any = random.normal(size=u_a.shape[1]) * 0.5
    v = -y[:, None] * phi - 2 * weight * u_a
    if hidden:
        below = np.tanh(x @ random.normal(size=(columns + 1, hidden)) / np.sqrt(columns))
        taken = np.concatenate([below, np.ones((rows, 1))], axis=1)
        w = random.normal(size=(hidden, hidden)) / np.sqrt(hidden)
        slopes = 1 - below**2
        first = np.einsum("ih,ix->hxi", slopes, x)
        known = np.concatenate([
            np.einsum("h,hxi->hxi", phi @ w, first).reshape(-1, rows), (taken.T * (phi @ phi)),
        ])  # fmt: skip
        told = np.concatenate([
            np.einsum("ih,hxi->hx", v @ w, first).ravel(), taken.T @ v @ phi,
        ])  # fmt: skip
    else:
        known, told = x.T * (phi @ phi), x.T @ v @ phi
    guess = ridge(known, -told)
    pairs = guess[y > 0][:, None] - guess[y < 0]
    return float(np.mean(pairs > 0) + 0.5 * np.mean(pairs == 0))


@pytest.mark.parametrize(
    ("rows", "hidden", "low", "high"),
    [
        (16, 0, 0.9, 1.0),
        (64, 0, 0.65, 0.9),
        (256, 0, 0.5, 0.68),
        (64, 8, 0.95, 1.0),
        (138, 8, 0.95, 1.0),
        (1100, 8, 0.55, 0.8),
    ],
)
def test_what_gradients_tell_about_labels(rows: int, hidden: int, low: float, high: float) -> None:
    """The reason for large batches; 137 sums through 8 hidden units, 16 without."""
    assert low <= np.mean([label_auc(rows, hidden, 15, 0.01, seed) for seed in range(5)]) <= high
