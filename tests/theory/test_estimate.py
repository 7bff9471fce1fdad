"""Estimates against the exact constants of quadratics, and curvature against dense matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.errors import ConfigError
from crosshatch.seeds import generator
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import Logistic
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.theory.central_loss import CentralLoss
from crosshatch.theory.curvature import block_norm, symmetric_norm
from crosshatch.theory.estimate import Effort, Sampling, estimate, gradient_squared
from tests.theory.quadratics import Quadratic, random_quadratic

WITHIN = 0.1


@pytest.mark.parametrize("seed", range(5))
def test_rho_and_delta_of_groups(seed: int) -> None:
    """HSGD's setting: the noise does not depend on the weights, all constants are known exactly."""
    quadratic = random_quadratic(seed, dims=(3, 4), clients=3, draws=8)
    selected = 1 + seed
    found = estimate(quadratic.grouped(), quadratic.task(), Sampling(fraction=selected / 8), seed=seed)
    exact = quadratic.grouped_constants(selected)
    average = np.square(quadratic.pushes[..., quadratic.slices[1]]).sum(-1).mean()  # over groups, not the worst one
    assert found.lipschitz == pytest.approx(exact.lipschitz, rel=WITHIN)
    assert found.rho == pytest.approx(exact.rho, rel=WITHIN)
    assert found.block_lipschitz == pytest.approx(exact.block_lipschitz, rel=WITHIN)
    assert found.local_lipschitz == pytest.approx(exact.local_lipschitz, rel=WITHIN)
    assert np.sqrt(found.client_noise[1]) == pytest.approx(np.sqrt(average), rel=WITHIN)


@pytest.mark.parametrize("seed", range(5))
def test_rho_and_delta_of_mini_batches(seed: int) -> None:
    """One client a silo: the variance of a batch drawn without replacement is known from the single samples'."""
    quadratic = random_quadratic(seed, dims=(3, 2, 4), draws=10)
    quadratic = replace(quadratic, start=quadratic.start + 5)  # far from the optimum, where the noise is largest
    samples, size = 10 * len(quadratic.y), 16
    found = estimate(quadratic.data(), quadratic.task(), Sampling(batch_size=size), seed=seed)
    gradients = single_gradients(quadratic)
    apart = np.square(gradients - gradients.mean(0))
    exact = [apart[:, block].sum(1).mean() / size * (samples - size) / (samples - 1) for block in quadratic.slices]
    assert np.sqrt(found.batch_noise) == pytest.approx(np.sqrt(exact), rel=WITHIN)
    assert found.client_noise == found.batch_noise
    assert found.lipschitz == pytest.approx(quadratic.constants().lipschitz, rel=WITHIN)
    spread = np.square(quadratic.noise).mean() / 2  # the draws' noise is centred: it only adds a constant to the loss
    assert found.gap == pytest.approx(loss(quadratic) + spread, rel=1e-9)


def single_gradients(quadratic: Quadratic) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Gradient of every sample's loss at the start, (samples, d)."""
    x = np.tile(quadratic.x, (quadratic.draws, 1))
    residuals = x @ quadratic.start - (quadratic.y + quadratic.noise[0]).reshape(-1)
    gradients: np.ndarray[tuple[int, int], np.dtype[np.float64]] = x * residuals[:, None]
    return gradients


def loss(quadratic: Quadratic) -> float:
    """Mean loss at the start, labels without noise."""
    return float(np.square(quadratic.x @ quadratic.start - quadratic.y).mean() / 2)


def test_noise_of_clients_shares() -> None:
    """Several clients a silo: against a plain loop over many batches."""
    quadratic = random_quadratic(3, dims=(3, 3), clients=4, draws=5)
    quadratic = replace(quadratic, start=quadratic.start + 5)
    data, size = quadratic.data(), 12
    x = np.tile(quadratic.x, (20, 1))
    gradients = x * (x @ quadratic.start - data.y_train.numpy())[:, None]
    rng = np.random.default_rng(0)
    apart = []
    for _ in range(1500):
        rows = rng.choice(len(x), size, replace=False)
        held = [rows[data.silos[0].owners[rows] == client] for client in range(4)]
        distances = [np.square(gradients[own].mean(0) - gradients.mean(0)) for own in held if len(own)]
        apart.append(np.mean(distances, axis=0))
    expected = [np.mean(apart, axis=0)[block].sum() for block in quadratic.slices]
    found = estimate(data, quadratic.task(), Sampling(batch_size=size), seed=1, effort=Effort(gradients=600))
    assert np.sqrt(found.client_noise) == pytest.approx(np.sqrt(expected), rel=WITHIN)
    assert max(found.batch_noise) < min(found.client_noise)


def test_the_gap_is_above_the_lower_bound() -> None:
    quadratic = random_quadratic(2, dims=(2, 3))
    least = loss(quadratic) + float(np.square(quadratic.noise).mean()) / 2 - quadratic.gap
    given = (quadratic.data(), quadratic.task(), Sampling())
    found = estimate(*given, seed=0, lower_bound=least, effort=Effort(gradients=1))
    assert found.gap == pytest.approx(quadratic.gap)
    with pytest.raises(ConfigError, match="lower bound"):
        estimate(*given, seed=0, lower_bound=1e9, effort=Effort(gradients=1))


def test_all_samples_have_no_noise() -> None:
    quadratic = random_quadratic(2, dims=(2, 3))
    found = estimate(quadratic.data(), quadratic.task(), Sampling(), seed=0)
    assert max(found.batch_noise) < 1e-20


def test_the_same_seed_gives_the_same_constants() -> None:
    quadratic = random_quadratic(2, dims=(2, 3))
    first, again, other = (
        estimate(quadratic.data(), quadratic.task(), Sampling(batch_size=5), seed=seed, effort=Effort(gradients=5))
        for seed in (4, 4, 5)
    )
    assert first == again != other


def test_a_batch_larger_than_the_data_is_refused() -> None:
    quadratic = random_quadratic(2, dims=(2, 3))
    with pytest.raises(ConfigError, match="batch_size = 100000"):
        estimate(quadratic.data(), quadratic.task(), Sampling(batch_size=100_000), seed=0)


def test_squared_gradient_norm() -> None:
    quadratic = random_quadratic(5, dims=(2, 3))
    found = gradient_squared(quadratic.data(), quadratic.task(), tuple(quadratic.task().initial()))
    assert found == pytest.approx(np.square(quadratic.gradient(quadratic.start)).sum())


def curved() -> CentralLoss:
    """Two small networks under a head, logistic loss and an L2 term, in double precision."""
    rng = generator(0, "curved")
    owners = np.zeros(30, dtype=np.int64)
    silos = tuple(
        SiloData(name, x, x[:2], ("a", "b", "c"), owners, 1)
        for name in ("left", "right")
        for x in [torch.as_tensor(rng.standard_normal((30, 3)))]
    )
    y = torch.as_tensor(rng.integers(0, 2, 30).astype(float))
    torch.manual_seed(1)
    blocks = tuple(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double() for _ in silos)
    task = Task(blocks, Head(nn.Linear(4, 1).double(), 0), Logistic(), Regulariser(l2=0.1))
    return CentralLoss(FederatedData(silos, y, y[:2], "binary", 2), task)


def dense(central: CentralLoss) -> torch.Tensor:
    """The whole Hessian at the start, from torch's own function of the loss written anew."""
    data, task = central.data, central.task
    sizes = [len(weights) for weights in task.initial()]

    def value(theta: torch.Tensor) -> torch.Tensor:
        scores = task.scores(torch.split(theta, sizes), [silo.train for silo in data.silos])
        blocks = torch.cat([theta[:26], theta[-26:]])  # without the five numbers of the head
        return task.loss.value(scores, data.y_train).mean() + 0.05 * blocks.square().sum()

    hessian: torch.Tensor = torch.autograd.functional.hessian(value, central.start())  # type: ignore[no-untyped-call]
    return hessian


def test_curvature_of_networks() -> None:
    central = curved()
    theta, exact = central.start(), dense(central)
    direction = torch.randn(theta.shape, dtype=theta.dtype, generator=torch.Generator().manual_seed(2))
    hessian = central.curvature(theta, central.rows)
    torch.testing.assert_close(hessian(direction), exact @ direction)
    torch.testing.assert_close(
        central._differences(theta, central.rows, direction), exact @ direction, rtol=1e-6, atol=1e-8
    )
    assert float(central._differences(theta, central.rows, 0 * direction).norm()) == 0
    expected = float(torch.linalg.eigvalsh(exact).abs().max())
    assert symmetric_norm(hessian, direction, steps=15) == pytest.approx(expected, rel=0.01)
    for block in central.slices:
        expected = float(torch.linalg.matrix_norm(exact[block], 2))
        assert block_norm(hessian, block, direction, steps=15) == pytest.approx(expected, rel=0.01)


def test_recurrent_blocks() -> None:
    """An LSTM has no second derivative worth its time: differences, against torch's own."""
    rng = generator(0, "recurrent")
    x = torch.as_tensor(rng.standard_normal((12, 5, 2)))
    y = torch.as_tensor(rng.integers(0, 2, 12).astype(float))
    data = FederatedData(
        (SiloData("one", x, x[:2], ("a", "b"), np.zeros(12, dtype=np.int64), 1),), y, y[:2], "binary", 2
    )
    torch.manual_seed(3)
    central = CentralLoss(data, Task((Recurrent().double(),), Sum(), Logistic()))
    theta = central.start()
    direction = torch.ones_like(theta)
    exact = central._hessian_times(theta, central.rows, direction)
    torch.testing.assert_close(central.curvature(theta, central.rows)(direction), exact, rtol=1e-5, atol=1e-8)


class Recurrent(nn.Module):
    """The last state of a small LSTM, to one score."""

    def __init__(self) -> None:
        super().__init__()
        self.states = nn.LSTM(2, 3, batch_first=True)
        self.out = nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.out(self.states(x)[0][:, -1])
        return out


class OnceOnly(torch.autograd.Function):
    """Doubles its input; its derivative cannot be differentiated."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        return 2 * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        return 2 * gradient


class Doubling(nn.Module):
    """A layer around `OnceOnly`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = OnceOnly.apply(x)  # type: ignore[no-untyped-call]
        return out


def test_layers_differentiable_once_fall_back_on_differences() -> None:
    quadratic = random_quadratic(4, dims=(2, 3))
    plain = quadratic.task()
    blocks = tuple(nn.Sequential(block, Doubling()) for block in plain.blocks)
    central = CentralLoss(quadratic.data(), Task(blocks, Sum(), plain.loss))
    found = symmetric_norm(central.curvature(central.start(), central.rows), torch.ones(5).double(), steps=5)
    assert found == pytest.approx(4 * quadratic.constants().lipschitz, rel=1e-5)
