"""Visits at linear agents: every quick way against one step after the other, and features stored by column."""

from __future__ import annotations

import pytest
import torch

from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.errors import TrainingError
from crosshatch.graphs import Graph
from crosshatch.local.visits import linear_visits
from crosshatch.local.visits.linear_visits import FromGram, StepByStep, Visits
from crosshatch.task.losses import Logistic
from crosshatch.task.regulariser import Regulariser
from tests.simulator.agents_case import make, tokens_of

PENALTIES = [Regulariser(), Regulariser(l2=3.0), Regulariser(l1=0.4), Regulariser(l2=2.0, l1=0.4)]


@pytest.mark.parametrize("largest", [0, 512], ids=["step by step", "at once"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("of_limit", [0.1, 0.5, 0.95])
def test_the_gram_matrix_gives_the_same_steps(
    penalty: Regulariser, of_limit: float, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step sizes up to the limit that change from visit to visit, and two columns that are almost the same."""
    monkeypatch.setattr(linear_visits, "_EIGEN", largest)
    random = torch.Generator().manual_seed(4)
    x = torch.randn(30, 6, dtype=torch.float64, generator=random)
    x[:, 5] = x[:, 4] + 1e-6 * x[:, 5]
    y = torch.randn(30, dtype=torch.float64, generator=random)
    limit = 2 / float(torch.linalg.matrix_norm(x, 2)) ** 2
    ways: tuple[Visits, ...] = FromGram(x, y, penalty), StepByStep(x, y, penalty, logistic=False)
    states = [(torch.zeros(6, dtype=torch.float64), torch.zeros(30, dtype=torch.float64)) for _ in ways]
    for visit in range(6):
        for way, (theta, z) in zip(ways, states, strict=True):
            way(theta, z, 1 + 7 * visit, of_limit * limit / (1 + visit // 2))
        (theta, z), (expected, scores) = states
        torch.testing.assert_close(theta, expected, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(z, scores, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(z, x @ theta, rtol=1e-9, atol=1e-9)


def test_features_are_stored_by_column() -> None:
    simulator = make(STCD(graph=Graph("ring")), samples=12, columns=3)
    for silo in simulator.data.silos:
        assert tuple(silo.train.shape) == (12, 3)
        assert silo.train.stride() == (1, 12)


@pytest.mark.parametrize("tokens", [1, 3])
def test_one_weight_that_is_not_finite_is_noticed_in_its_next_visit(tokens: int) -> None:
    simulator = make(MTCD(tokens, 2, hops_between_averages=0, graph=Graph("ring")), loss=Logistic())
    simulator.run_round()
    last = tokens_of(simulator)
    agent = int(last.at[tokens - 1])
    last.models[tokens - 1, 3 * agent + 1] = float("nan")
    with pytest.raises(TrainingError, match="a token is no longer finite"):
        simulator.run_round()
