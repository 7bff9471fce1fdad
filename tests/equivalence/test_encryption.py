"""Encrypted rounds against clear ones, real ciphertexts against their costs, and both against whole numbers by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

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
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Declared, LocalSteps
from crosshatch.privacy.operations import OperationSeconds
from crosshatch.task.task import Task
from tests.equivalence.courses import course, furthest

SILOS = (SiloSettings("a", span=(0, 5)), SiloSettings("b", span=(5, 12)), SiloSettings("bureau", span=(12, 30)))
SECONDS = OperationSeconds(encrypt=0.01, multiply=0.001, pack=0.02, mask=0.3, decrypt=0.04)
COSTS = PrivacySettings(encryption="paillier", key_bits=2048, seconds=SECONDS, accept_leakage=True)
REAL = PrivacySettings(encryption="paillier", key_bits=2048, ciphertexts="real", accept_leakage=True)
ROUNDS = 4
ALGORITHMS: dict[str, Any] = {
    "fedsgd": FedSGD(0.1, 150, draw="anew"),
    "fedbcd": FedBCD(5, 0.1, 150, draw="anew"),
    "all samples": FedBCD(3, 0.1),
    "proximal": FedBCD(5, 0.1, 150, proximal=0.5, draw="anew"),
    "in turn": FedBCD(3, 0.1, 150, order="sequential", draw="anew"),
}


def case(data: str = "breast_cancer", silos: Any = SILOS, **task: Any) -> tuple[FederatedData, Task]:
    found = federate(load_dataset(data), FederationSettings(silos=silos, labels=silos[-1].name), seed=0)
    return found, replace(build_task(found, ModelSettings(), seed=0), **task)


@pytest.mark.parametrize("bits", [16, 24, 40])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_encrypted_is_clear_to_the_precision_of_fixed_point(name: str, bits: int) -> None:
    data, task = case()
    algorithm = ALGORITHMS[name]
    _, clear = course(data, task, algorithm, ROUNDS)
    settings = replace(COSTS, fraction_bits=bits, whole_bits=12)
    _, encrypted = course(data, task, algorithm, ROUNDS, privacy=settings)
    # A gradient is off by half a step of each factor times the other factor at most, and every step adds to that.
    largest = max(float(silo.train.abs().max()) for silo in data.silos) + 1
    step = 0.1 * algorithm.local_steps * 2.0 ** -(bits + 1) * largest
    for r, distance in enumerate(furthest(encrypted, clear), start=1):
        assert distance <= r * step
    if bits == 16:
        assert furthest(encrypted, clear)[-1] > 1e-9  # the fixed point is really gone through


@pytest.mark.parametrize("name", ALGORITHMS)
def test_real_ciphertexts_and_costs_are_the_same_bit_for_bit(name: str) -> None:
    data, task = case()
    costs, by_costs = course(data, task, ALGORITHMS[name], ROUNDS, privacy=COSTS)
    real, by_ciphertexts = course(data, task, ALGORITHMS[name], ROUNDS, privacy=REAL)
    assert all(
        torch.equal(a, b) for x, y in zip(by_costs, by_ciphertexts, strict=True) for a, b in zip(x, y, strict=True)
    )
    assert costs.meter.snapshot() == real.meter.snapshot()
    assert real.computing_seconds is not None
    assert 0 < real.computing_seconds < real.seconds


@pytest.mark.parametrize("ciphertexts", ["costs", "real"])
def test_classes(ciphertexts: Any) -> None:
    data, task = case("wine", (SiloSettings("a", span=(0, 4)), SiloSettings("bureau", span=(4, 13))))
    settings = replace(COSTS, ciphertexts=ciphertexts, seconds=SECONDS if ciphertexts == "costs" else None)
    algorithm = FedBCD(4, 0.05)
    _, clear = course(data, task, algorithm, ROUNDS)
    _, encrypted = course(data, task, algorithm, ROUNDS, privacy=settings)
    assert encrypted[-1][0].shape == (15,)
    assert max(furthest(encrypted, clear)) < 1e-6
    assert float((clear[-1][0] - clear[0][0]).abs().max()) > 1e-3


@pytest.mark.parametrize(
    "changes",
    [
        {"regulariser": Regulariser(l2=0.1)},
        {"regulariser": Regulariser(l2=0.1, penalise_bias=False)},
        {"regulariser": Regulariser(l1=0.01)},
        {"optimiser": Momentum()},
        {"optimiser": Adam(state="reset")},
    ],
)
def test_what_silos_add_to_their_gradients_themselves(changes: Any) -> None:
    data, task = case(**changes)
    _, clear = course(data, task, FedBCD(3, 0.01, 150, draw="anew"), ROUNDS)
    _, encrypted = course(
        data, task, FedBCD(3, 0.01, 150, draw="anew"), ROUNDS, privacy=replace(COSTS, fraction_bits=40, whole_bits=12)
    )
    assert max(furthest(encrypted, clear)) < 1e-9


def test_a_round_by_hand() -> None:
    """One round of two silos in whole numbers of Python and plain torch, from the definition."""
    data, task = case(silos=(SiloSettings("a", span=(0, 5)), SiloSettings("bureau", span=(5, 30))))
    simulator = Simulator(data, task, FedBCD(2, 0.2, proximal=0.5), precision=torch.float64, privacy=REAL)
    first = [weights.clone() for weights in simulator.weights]
    simulator.run_round()
    x, other = (silo.train.double() for silo in data.silos)
    scores = x @ first[0][:-1] + first[0][-1] + other @ first[1][:-1] + first[1][-1]
    derivative = torch.sigmoid(scores) - data.y_train
    whole = [round(float(d) * 2**24) for d in derivative]
    columns = [*x.T, torch.ones(len(x))]
    sums = [sum(d * round(float(v) * 2**24) for d, v in zip(whole, column, strict=True)) for column in columns]
    gradient = torch.tensor([total / (len(x) * 2**48) for total in sums], dtype=torch.float64)
    one = first[0] - 0.2 * gradient
    two = one - 0.2 * (gradient + 0.5 * (one - first[0]))
    assert torch.allclose(simulator.weights[0], two, rtol=0, atol=1e-15)


def test_seconds_of_computing_and_of_messages() -> None:
    """Two half round trips more than in clear, and operations one after the other; silos work at the same time."""
    data, task = case()
    network = ConstantNetwork(t_comm=10.0, t_comp=1.0, slow={"b": 2.0})
    simulator, _ = course(
        data, task, FedBCD(5, 0.1, 150, draw="anew"), ROUNDS, privacy=COSTS, network=network, threads=1
    )
    assert simulator.computing_seconds is not None
    each = simulator.computing_seconds / ROUNDS
    # what is left: four legs of half a round trip, on the line of 'b' twice as long
    assert simulator.seconds - simulator.computing_seconds == pytest.approx(ROUNDS * 4 * 10.0, abs=1e-6)
    # 150 encryptions, the product of the silo with most columns, two answers read, and Q steps of the slower silo
    fixed = 150 * SECONDS.encrypt + 2 * SECONDS.decrypt + 5 * 2.0 + 7 * SECONDS.pack + SECONDS.mask
    rest = (each - fixed) / SECONDS.multiply
    assert 150 * 8 < rest < 150 * (8 + 8 * 7)


def test_a_run_goes_on_from_a_snapshot() -> None:
    data, task = case()
    whole, weights = course(data, task, FedBCD(5, 0.1, 150, draw="anew"), ROUNDS, privacy=COSTS)
    options: Any = {"seed": 3, "threads": 2, "precision": torch.float64, "privacy": COSTS}
    first = Simulator(data, task, FedBCD(5, 0.1, 150, draw="anew"), **options)
    first.run_round()
    second = Simulator(data, task, FedBCD(5, 0.1, 150, draw="anew"), **options)
    second.restore(*first.snapshot())
    for _ in range(ROUNDS - 1):
        second.run_round()
    assert all(torch.equal(a, b) for a, b in zip(second.weights, weights[-1], strict=True))
    assert (second.seconds, second.computing_seconds) == (whole.seconds, whole.computing_seconds)


def test_older_snapshots_tell_the_seconds_of_computing() -> None:
    """They had the clocks of computing, and those of hubs when these were last looked at."""
    data, task = case()
    options: Any = {"seed": 3, "threads": 2, "precision": torch.float64, "privacy": COSTS}
    first = Simulator(data, task, FedBCD(5, 0.1, 150, draw="anew"), **options)
    first.run_round()
    tensors, plain = first.snapshot()
    then = tensors["hubs.0"] - 0.25
    tensors["computing.0"] = torch.stack([tensors.pop("hubs.0.1") - 0.25, then])
    second = Simulator(data, task, FedBCD(5, 0.1, 150, draw="anew"), **options)
    second.restore(tensors, plain)
    assert second.computing_seconds == pytest.approx(first.computing_seconds)
    assert second.seconds == first.seconds


def test_a_holder_with_labels_alone() -> None:
    data, task = case(silos=(SiloSettings("a", span=(0, 5)), SiloSettings("b", span=(5, 12)), SiloSettings("court")))
    _, clear = course(data, task, FedBCD(3, 0.1, 150, draw="anew"), ROUNDS)
    _, encrypted = course(data, task, FedBCD(3, 0.1, 150, draw="anew"), ROUNDS, privacy=COSTS)
    assert max(furthest(encrypted, clear)) < 1e-6


def test_the_holder_may_have_any_block() -> None:
    data, _ = case()
    settings = ModelSettings(blocks={"bureau": {"block": "mlp", "hidden": (4,)}})
    task = build_task(data, settings, seed=0)
    _, clear = course(data, task, FedBCD(3, 0.1, 150, draw="anew"), ROUNDS)
    _, encrypted = course(data, task, FedBCD(3, 0.1, 150, draw="anew"), ROUNDS, privacy=COSTS)
    assert max(furthest(encrypted, clear)) < 1e-6


def test_strategies_are_recorded() -> None:
    data, task = case()
    simulator, _ = course(data, task, FedBCD(3, 0.1, 150, draw="anew"), ROUNDS, privacy=COSTS)
    assert {simulator.strategies[name] for name in ("a", "b")} == {"given"}
    assert simulator.strategies["bureau"] in ("stacked", "gram")


@dataclass(frozen=True)
class Claims(Declared):
    """Says that its derivatives may be encrypted, and wants more of them than a gradient tells."""

    parts: int = 1
    anticipation: float = 1.0
    step_size: float = 0.1
    local_steps: ClassVar[int] = 2
    encrypts = True
    topology = FedBCD(2).topology

    def run_round(self, fed: Any, blocks: Any, r: int) -> Any:
        batch = fed.draw_batch(150, round=r, parts=self.parts)
        frozen = fed.share_derivatives(fed.embed(blocks, batch), batch)
        return fed.descend(blocks, batch, frozen, LocalSteps(2, 0.1, anticipation=self.anticipation))


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (Claims(parts=2), "for rounds of one batch"),
        (Claims(anticipation=2.0), "encrypted is that of one batch and stays"),
    ],
)
def test_algorithms_that_want_more(algorithm: Any, words: str) -> None:
    data, task = case()
    with pytest.raises(ConfigError, match=words):
        course(data, task, algorithm, ROUNDS, privacy=COSTS)


@pytest.mark.parametrize(("rows", "low", "high"), [(16, 1.0, 1.0), (64, 0.65, 0.9), (256, 0.5, 0.68)])
def test_what_a_gradient_tells_about_labels(rows: int, low: float, high: float) -> None:
    """The reason for large batches: the least derivatives that explain X^T d, as guesses of the labels."""
    areas = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        x = np.concatenate([random.normal(size=(rows, 15)), np.ones((rows, 1))], axis=1)
        y = random.integers(0, 2, rows)
        y[:2] = 0, 1
        derivative = 1 / (1 + np.exp(-random.normal(size=rows))) - y
        guess = np.linalg.pinv(x.T) @ (x.T @ derivative)
        pairs = guess[y == 0][:, None] - guess[y == 1]
        areas.append(float(np.mean(pairs > 0) + 0.5 * np.mean(pairs == 0)))
    assert low - 1e-9 <= np.mean(areas) <= high + 1e-9
