"""DCPA against a loop with a multiplier for every edge, and against the optimum it must reach."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from crosshatch.algorithms.dcpa import DCPA
from crosshatch.errors import ConfigError, ModelError
from crosshatch.graphs import Graph
from crosshatch.simulator.graph.simulated_duals import SimulatedDuals, logistic_proximal
from crosshatch.task.losses import CrossEntropy, Logistic, Squared
from crosshatch.task.regulariser import Regulariser
from tests.simulator.agents_case import features, make


def test_is_the_derived_loop() -> None:
    """The multipliers stand on edges here; the simulator keeps their sums at the agents."""
    simulator = make(DCPA(0.02, 0.05, 0.3, Graph("path")), regulariser=Regulariser(l2=0.5, l1=0.1))
    x, y, edges = features(simulator), simulator.data.y_train.numpy(), list(pairwise(range(4)))
    w = [np.zeros(3) for _ in x]
    dual = [np.zeros(12) for _ in x]
    multiplier = {edge: np.zeros(12) for edge in edges}
    for _ in range(15):
        moved = [w[k] - 0.02 * x[k].T @ dual[k] for k in range(4)]
        after = [np.sign(v) * np.maximum(np.abs(v) - 0.002, 0) / 1.01 for v in moved]
        turned = {(i, j): multiplier[i, j] - 0.3 * (dual[i] - dual[j]) for i, j in edges}
        for k in range(4):
            pull = sum((2 * turned[e] - multiplier[e]) * (1 if e[0] == k else -1) for e in edges if k in e)
            v = dual[k] + 0.05 * (x[k] @ (2 * after[k] - w[k]) + pull)
            dual[k] = (v - 0.05 / 4 * y) / (1 + 0.05 / 4)
        w, multiplier = after, turned
        simulator.run_round()
        np.testing.assert_allclose(
            np.concatenate([b.numpy() for b in simulator.weights]), np.concatenate(w), atol=1e-12
        )


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
@pytest.mark.parametrize("penalty", [Regulariser(l2=1.0), Regulariser(l1=0.5), Regulariser(l2=0.5, l1=0.5)])
@pytest.mark.parametrize("graph", [Graph("ring"), Graph("complete")])
def test_reaches_the_optimum(loss: Any, penalty: Regulariser, graph: Graph) -> None:
    simulator = make(DCPA(graph=graph), loss=loss, regulariser=penalty, samples=30)
    for _ in range(1500):
        simulator.run_round()
    assert abs(simulator.evaluate(["suboptimality"])["suboptimality"]) < 1e-8


def test_with_a_bias_it_reaches_the_optimum_too() -> None:
    simulator = make(
        DCPA(graph=Graph("ring")), regulariser=Regulariser(l2=1.0), samples=30, block=lambda d: torch.nn.Linear(d, 1)
    )
    for _ in range(1000):
        simulator.run_round()
    assert abs(simulator.evaluate(["suboptimality"])["suboptimality"]) < 1e-8


def test_an_iteration_is_two_communications_an_edge() -> None:
    simulator = make(DCPA(graph=Graph("connectivity", ratio=0.8, seed=1)), agents=5)
    assert isinstance(simulator.federation, SimulatedDuals)
    for _ in range(3):
        simulator.run_round()
    assert simulator.communications == 3 * 2 * simulator.federation.graph.number_of_edges() == 3 * 2 * 8
    assert simulator.meter.links["agent-agent across"][1] == 48


@given(
    st.floats(-3, 3, allow_subnormal=False), st.sampled_from([0.0, 1.0]), st.sampled_from([1e-6, 1e-3, 0.1, 1.0, 30.0])
)
def test_the_logistic_proximal_step_solves_its_equation(v: float, y: float, share: float) -> None:
    """u minimises `share * conjugate(u) + (u - v)^2 / 2`, with u + y = p between 0 and 1."""
    found = logistic_proximal(torch.tensor([v], dtype=torch.float64), torch.tensor([y], dtype=torch.float64), share)
    low, high = (v + y - 1) / share - 1, (v + y) / share + 1
    z = brentq(lambda z: expit(z) + share * z - v - y, low, high, xtol=1e-14)
    assert float(found) == pytest.approx(expit(z) - y, abs=1e-9)


@pytest.mark.parametrize(
    ("algorithm", "complaint"),
    [
        (DCPA(step_size=1.0, dual_step=1.0, graph=Graph("ring")), r"algorithm.dual_step = 1 is above"),
        (
            DCPA(0.01, 10.0, 0.1, Graph("ring")),
            r"algorithm.dual_step = 10 is above [\d.]+: at most 1 / \(step_size 0.01",
        ),
        (DCPA(graph=Graph("empty")), r"consensus needs a connected graph"),
    ],
)
def test_what_cannot_work_is_refused(algorithm: DCPA, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make(algorithm)


def test_other_models_are_refused() -> None:
    with pytest.raises(ModelError, match=r"linear blocks and the squared or logistic loss.*use mtcd"):
        make(DCPA(), loss=CrossEntropy())
    with pytest.raises(ModelError, match=r"linear blocks"):
        make(DCPA(), block=lambda d: torch.nn.Sequential(torch.nn.Linear(d, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)))


@pytest.mark.parametrize("name", ["step_size", "dual_step", "consensus_step"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), "big"])
def test_steps_are_positive_or_auto(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"algorithm.{name} = "):
        DCPA(**{name: value})
