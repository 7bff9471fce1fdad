"""ABCD's theorem: with s = K the objective never rises, whatever Q is; with s = 1 it does. Closed forms by numpy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from crosshatch.algorithms.abcd import ABCD
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.errors import ConfigError
from crosshatch.seeds import generator
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.theory.anticipation import Anticipation, block_curvature

Array = npt.NDArray[np.float64]
ROUNDING = 1e-12
SILOS = (2, 4, 8, 16)
STEPS = (1, 2, 5, 20, 200)
ROUNDS = 5
LOSSES: dict[str, Loss] = {"ridge": Squared(), "logistic": Logistic()}


def abcd(steps: int, step_size: float, anticipation: float | str = "silos") -> ABCD:
    """With one exchange per round, as the theorem has it."""
    return ABCD(steps, step_size, anticipation=anticipation, window=1)


class Regression:
    """Silos `xs` (n, d_k) with labels y (n,), without biases; all weights start at `start`."""

    def __init__(self, xs: list[Array], y: Array, loss: Loss, regulariser: Regulariser) -> None:
        self.xs, self.y, self.loss, self.regulariser = xs, y, loss, regulariser

    @property
    def l2(self) -> float:
        return self.regulariser.l2

    @property
    def curvatures(self) -> list[float]:
        """L_k, by all eigenvalues."""
        bound = 0.25 if isinstance(self.loss, Logistic) else 1.0
        return [bound * float(np.linalg.eigvalsh(x.T @ x / len(x))[-1]) for x in self.xs]

    def limit(self, factor: float) -> float:
        return 1 / (factor * max(self.curvatures) + self.l2)

    def scores(self, thetas: list[Array]) -> Array:
        return np.asarray(np.sum([x @ theta for x, theta in zip(self.xs, thetas, strict=True)], axis=0))

    def objective(self, thetas: list[Array]) -> float:
        z = self.scores(thetas)
        losses = np.logaddexp(0, z) - self.y * z if isinstance(self.loss, Logistic) else 0.5 * (z - self.y) ** 2
        norms = [(float(theta @ theta), float(np.abs(theta).sum())) for theta in thetas]
        return float(losses.mean()) + sum(self.l2 / 2 * two + self.regulariser.l1 * one for two, one in norms)

    def gradient_squared(self, thetas: list[Array]) -> float:
        z = self.scores(thetas)
        derivative = ((1 / (1 + np.exp(-z)) if isinstance(self.loss, Logistic) else z) - self.y) / len(z)
        slopes = [x.T @ derivative + self.l2 * theta for x, theta in zip(self.xs, thetas, strict=True)]
        return float(sum(slope @ slope for slope in slopes))

    def proximal_squared(self, thetas: list[Array], eta: float) -> float:
        """The squared length of a proximal gradient step, over eta."""
        z = self.scores(thetas)
        derivative = ((1 / (1 + np.exp(-z)) if isinstance(self.loss, Logistic) else z) - self.y) / len(z)
        total = 0.0
        for x, theta in zip(self.xs, thetas, strict=True):
            ahead = theta - eta * (x.T @ derivative + self.l2 * theta)
            ahead = np.sign(ahead) * np.maximum(np.abs(ahead) - eta * self.regulariser.l1, 0)
            total += float(((theta - ahead) ** 2).sum()) / eta**2
        return total

    def simulator(self, algorithm: ABCD, blocks: Sequence[nn.Module], *, held: bool = False) -> Simulator:
        owners = np.zeros(len(self.y), dtype=np.int64)
        columns = [(torch.from_numpy(x), tuple(map(str, range(x.shape[1])))) for x in self.xs]
        silos = tuple(SiloData(f"s{k}", x, x, names, owners, 1) for k, (x, names) in enumerate(columns))
        y = torch.from_numpy(self.y)
        held_by = "s0" if held else None
        if isinstance(self.loss, Logistic):
            data = FederatedData(silos, y, y, "binary", 2, held_by)
        else:
            data = FederatedData(silos, y, y, "regression", 1, held_by)
        task = Task(tuple(blocks), Sum(), self.loss, self.regulariser)
        return Simulator(data, task, algorithm, precision=torch.float64, threads=1)

    def path(self, algorithm: ABCD, rounds: int, *, start: float = 0.0, held: bool = False) -> list[list[Array]]:
        """The weights at the start and after each round."""
        blocks = [nn.Linear(x.shape[1], 1, bias=False) for x in self.xs]
        for block in blocks:
            nn.init.constant_(block.weight, start)
        simulator = self.simulator(algorithm, blocks, held=held)
        found = [[theta.numpy().copy() for theta in simulator.weights]]
        for _ in range(rounds):
            simulator.run_round()
            found.append([theta.numpy().copy() for theta in simulator.weights])
        return found

    def values(self, algorithm: ABCD, rounds: int = ROUNDS, *, start: float = 0.0, held: bool = False) -> list[float]:
        """The objective at the start and after each round."""
        return [self.objective(thetas) for thetas in self.path(algorithm, rounds, start=start, held=held)]


@cache
def correlated(silos: int, loss: str, l2: float = 0.01, l1: float = 0.0) -> Regression:
    """Three columns per silo that mostly share a factor; labels are mostly noise, so that weights stay small."""
    rng = generator(silos, "correlated")
    factors = rng.normal(size=(60, 1))
    xs = [factors + 0.2 * rng.normal(size=(60, 3)) for _ in range(silos)]
    signal = xs[0][:, 0] / 4 + rng.normal(size=60)
    y = (signal > 0).astype(np.float64) if loss == "logistic" else np.asarray(signal)
    return Regression(xs, y, LOSSES[loss], Regulariser(l2=l2, l1=l1))


def rises(values: list[float]) -> bool:
    return any(not after <= before + ROUNDING * abs(before) for before, after in pairwise(values))


@pytest.mark.parametrize("share", [2.0, 1.0, 0.5, 0.1])
@pytest.mark.parametrize("silos", SILOS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_never_rises(loss: str, silos: int, share: float) -> None:
    """Up to 1 / M as the theorem says, and up to 2 / M as its proof does."""
    problem = correlated(silos, loss)
    for steps in STEPS:
        values = problem.values(abcd(steps, share * problem.limit(silos)))
        assert not rises(values), steps
        assert values[-1] < values[0] or share == 2.0


@pytest.mark.parametrize("silos", SILOS[1:])
@pytest.mark.parametrize("loss", LOSSES)
def test_without_anticipation_it_rises(loss: str, silos: int) -> None:
    """At the step size that is safe for a silo alone, and with many local steps at the theorem's as well."""
    problem = correlated(silos, loss)
    for steps in STEPS[1:]:
        assert rises(problem.values(abcd(steps, problem.limit(1), anticipation=1.0))), steps
    assert rises(problem.values(abcd(200, problem.limit(silos), anticipation=1.0)))


@pytest.mark.parametrize("loss", LOSSES)
def test_more_than_all_silos_labels_held_and_l1(loss: str) -> None:
    """What the proof covers besides: s above K, derivatives that go on, and any penalty of each block's own."""
    problem = correlated(4, loss)
    for steps in STEPS:
        assert not rises(problem.values(abcd(steps, problem.limit(9), anticipation=9.0)))
        shared, held = (problem.values(abcd(steps, problem.limit(4)), held=held) for held in (False, True))
        assert not rises(held)
        assert held == pytest.approx(shared, abs=1e-10)
        assert not rises(correlated(4, loss, l1=0.05).values(abcd(steps, problem.limit(4))))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_strong_regulariser_belongs_into_the_limit(loss: str) -> None:
    """With l2 above K max L_k, 1 / (K max L_k) is too large a step."""
    problem = correlated(4, loss, l2=100.0)
    assert problem.l2 > 4 * max(problem.curvatures)
    assert not rises(problem.values(abcd(20, problem.limit(4))))
    assert rises(problem.values(abcd(20, 1 / (4 * max(problem.curvatures))), rounds=1))


@pytest.mark.parametrize("silos", SILOS)
@pytest.mark.parametrize("share", [0.5, 0.6, 0.8, 1.0])
def test_half_the_silos_are_enough_for_a_quadratic(silos: int, share: float) -> None:
    """Up to 2 s / K times 1 / M."""
    problem = correlated(silos, "ridge")
    factor = max(1.0, share * silos)
    for steps in STEPS:
        for part in (2 * factor / silos, 1.0, 0.3):
            eta = min(part, 2.0) * problem.limit(factor)
            assert not rises(problem.values(abcd(steps, eta, anticipation=factor))), (steps, part)


def test_half_the_silos_are_the_least_for_a_quadratic() -> None:
    """Silos with the same column: in a round of many steps the residual becomes 1 - K / s times what it was."""
    x = np.linspace(1, 2, 6)[:, None]
    problem = Regression([x] * 6, 3 * x[:, 0], Squared(), Regulariser())

    def left(factor: float) -> float:
        values = problem.values(abcd(2000, problem.limit(factor), anticipation=factor), rounds=1)
        return values[1] / values[0]

    assert left(6.0) == pytest.approx(0, abs=1e-12)
    assert left(4.0) == pytest.approx(0.25)
    assert left(3.0) == pytest.approx(1)
    assert left(2.9) == pytest.approx((1 - 6 / 2.9) ** 2)
    assert left(2.9) > 1.1


def test_all_silos_are_the_least_for_other_convex_losses() -> None:
    """A loss that is ten times as steep behind its minimum as before it: a little too far is worse than the start."""
    x = np.repeat([[1.0], [10.0]], 10, axis=0)
    problem = Regression([x] * 4, np.repeat([1.0, 0.0], 10), Logistic(), Regulariser())
    found = {
        factor: problem.values(abcd(5000, problem.limit(factor), anticipation=factor), rounds=1, start=-2.0)
        for factor in (4.0, 3.5)
    }
    assert not rises(found[4.0])
    assert rises(found[3.5])


@pytest.mark.parametrize("factor", [3.0, 5.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_surrogates_lie_above_the_objective_for_any_block(loss: str, factor: float) -> None:
    """A round is gradient descent on them, by autograd, and the objective ends below them even at a large step."""
    problem = correlated(3, loss)
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double() for _ in range(3)]
    found = problem.simulator(abcd(4, 0.5, factor), blocks)
    found.run_round()
    xs, y = [torch.from_numpy(x) for x in problem.xs], torch.from_numpy(problem.y)
    starts = [block(x).detach() for block, x in zip(blocks, xs, strict=True)]
    scores = torch.stack(starts).sum(0)
    total, ends = (1 - 3 / factor) * float(problem.loss.value(scores, y).mean()), []
    for block, x, start, weights in zip(blocks, xs, starts, found.weights, strict=True):

        def surrogate(block: nn.Module = block, x: torch.Tensor = x, start: torch.Tensor = start) -> torch.Tensor:
            ahead = problem.loss.value(scores + factor * (block(x) - start), y).mean() / factor
            return ahead + problem.l2 / 2 * sum(p.square().sum() for p in block.parameters())

        for _ in range(4):
            slopes = torch.autograd.grad(surrogate(), list(block.parameters()))
            with torch.no_grad():
                for parameter, slope in zip(block.parameters(), slopes, strict=True):
                    parameter.sub_(0.5 * slope)
        assert nn.utils.parameters_to_vector(block.parameters()).tolist() == pytest.approx(weights.tolist(), abs=1e-10)
        total += surrogate().item()
        ends.append(block(x).detach())
    penalty = problem.l2 / 2 * sum(float(weights @ weights) for weights in found.weights)
    assert float(problem.loss.value(torch.stack(ends).sum(0), y).mean()) + penalty < total


@pytest.mark.parametrize("share", [1.0, 0.3, 1.9])
@pytest.mark.parametrize(("loss", "factor"), [("ridge", 8.0), ("ridge", 5.0), ("logistic", 8.0), ("logistic", 11.0)])
def test_the_bound_holds(loss: str, factor: float, share: float) -> None:
    problem = correlated(8, loss)
    found = Anticipation(8, factor, tuple(problem.curvatures), problem.l2, quadratic=loss == "ridge")
    assert found.covered
    assert found.best == problem.limit(factor)
    assert found.limit.stated == pytest.approx(min(2.0, 2 * factor / 8) * problem.limit(factor))
    eta = min(share, 1.0 if factor < 8 else 2.0) * found.best
    for steps in STEPS:
        path = problem.path(abcd(steps, eta, anticipation=factor), rounds=10)
        gap = problem.objective(path[0]) - problem.objective(path[-1])
        norms = [problem.gradient_squared(thetas) for thetas in path[:-1]]
        bound = found.bound(gap, step_size=eta, iterations=10 * steps, local_steps=steps)
        assert (bound.noise, bound.drift, bound.theorem) == (0, 0, "ABCD, our theorem")
        assert np.mean(norms) <= bound.value


@pytest.mark.parametrize("share", [1.0, 1.9])
@pytest.mark.parametrize("loss", LOSSES)
def test_with_an_l1_term_the_bound_is_on_the_proximal_step(loss: str, share: float) -> None:
    problem = correlated(4, loss, l1=0.05)
    found = Anticipation(4, 4.0, tuple(problem.curvatures), problem.l2, quadratic=False)
    eta = share * found.best
    for steps in STEPS:
        path = problem.path(abcd(steps, eta), rounds=10, start=0.3)
        gap = problem.objective(path[0]) - problem.objective(path[-1])
        norms = [problem.proximal_squared(thetas, eta) for thetas in path[:-1]]
        assert np.mean(norms) <= found.bound(gap, step_size=eta, iterations=10 * steps, local_steps=steps).value


def test_at_the_limit_nothing_is_bounded() -> None:
    """The objective does not rise there; for a quadratic with s below K that is all that is known from 1 / M on."""
    found = Anticipation(4, 4.0, (1.0, 0.5), 0.0, quadratic=False)
    assert found.bound(1.0, step_size=found.limit.stated, iterations=10, local_steps=1).value == np.inf
    below = Anticipation(4, 3.0, (1.0, 0.5), 0.0, quadratic=True)
    assert below.limit.stated == pytest.approx(1.5 / 3)
    assert below.bound(1.0, step_size=1.01 * below.best, iterations=10, local_steps=1).value == np.inf
    assert below.bound(1.0, step_size=below.best, iterations=10, local_steps=1).value == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("factor", "quadratic", "covered"),
    [(4.0, False, True), (3.9, False, False), (7.0, False, True), (2.1, True, True), (2.0, True, False)],
)
def test_which_anticipation_it_speaks_of(factor: float, *, quadratic: bool, covered: bool) -> None:
    assert Anticipation(4, factor, (1.0,), 0.0, quadratic).covered is covered


def test_above_the_limit_there_is_no_bound() -> None:
    found = Anticipation(4, 4.0, (1.0, 0.5), 0.25, quadratic=False)
    with pytest.raises(ConfigError, match=r"outside \(0, 0.470588\], the limit of ABCD, our theorem"):
        found.bound(1.0, step_size=0.5, iterations=10, local_steps=1)


def test_a_flat_objective_is_refused() -> None:
    with pytest.raises(ConfigError, match="every column of every silo is zero"):
        Anticipation(2, 2.0, (0.0, 0.0), 0.0, quadratic=True)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("loss", "bound"), [(Squared(), 1), (Logistic(), 0.25), (CrossEntropy(), 0.5)])
def test_curvature_of_a_block(loss: Loss, bound: float, *, bias: bool) -> None:
    """Images are flattened; a bias is a column of ones."""
    x = generator(0, "images").normal(size=(50, 1, 3, 4)) + 0.5
    columns = np.hstack([x.reshape(50, -1), np.ones((50, int(bias)))])
    expected = bound * np.linalg.eigvalsh(columns.T @ columns / 50)[-1]
    assert block_curvature(torch.from_numpy(x), loss, bias=bias) == pytest.approx(expected, rel=1e-9)
    whole = torch.from_numpy((x * 10).astype(np.int64))
    assert block_curvature(whole, loss, bias=bias) == pytest.approx(
        block_curvature(whole.double(), loss, bias=bias), rel=1e-5
    )


@pytest.mark.parametrize("loss", [Squared(), Logistic(), CrossEntropy()], ids=lambda loss: loss.name)
def test_no_second_derivative_is_above_the_curvature(loss: Loss) -> None:
    """By autograd; the bound is met where two outcomes are equally likely."""
    width = 3 if isinstance(loss, CrossEntropy) else 1
    y = torch.zeros(1, dtype=torch.int64 if width > 1 else torch.float64)
    even = torch.tensor([0.0] * min(width, 2) + [-40.0] * (width > 2), dtype=torch.float64)
    drawn = torch.from_numpy(generator(1, "scores").normal(size=(200, width)) * 2)

    def largest(scores: torch.Tensor) -> float:
        leaf = scores.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss.value(leaf[None], y).sum(), leaf, create_graph=True)
        rows = [torch.autograd.grad(one, leaf, retain_graph=True)[0] for one in slope]
        return float(torch.linalg.eigvalsh(torch.stack(rows))[-1])

    assert max(map(largest, drawn)) <= loss.curvature + 1e-12
    assert largest(even) == pytest.approx(loss.curvature)
