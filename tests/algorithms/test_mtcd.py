"""STCD and MTCD against the paper's loop, over random graphs and walks; tokens are always their models' scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.errors import ConfigError
from crosshatch.graphs import Graph
from crosshatch.simulator.graph.simulated_tokens import SimulatedTokens
from crosshatch.task.losses import Logistic, Squared
from crosshatch.task.regulariser import Regulariser
from tests.simulator.agents_case import Naive, features, make, tokens_of

GRAPHS = st.one_of(
    st.sampled_from([Graph("path"), Graph("ring"), Graph("star"), Graph("complete")]),
    st.builds(
        lambda ratio, seed: Graph("connectivity", ratio=ratio, seed=seed), st.floats(0.7, 1.0), st.integers(0, 9)
    ),
)
PENALTIES = st.builds(Regulariser, l2=st.sampled_from([0.0, 0.5]), l1=st.sampled_from([0.0, 0.3]))


@settings(max_examples=40)
@given(
    GRAPHS,
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 3),
    PENALTIES,
    st.sampled_from([Squared(), Logistic()]),
    st.sampled_from(["pass", "average"]),
    st.booleans(),
    st.sampled_from([3, 20]),
    st.integers(0, 99),
)
def test_is_the_papers_loop(
    graph: Graph, tokens: int, steps: int, every: int, penalty: Regulariser, loss: Any, meeting: Any, stay: bool,
    columns: int, seed: int,
) -> None:  # fmt: skip
    """20 columns are more than the 12 samples: another way to compute the same."""
    algorithm = MTCD(tokens, steps, 0.01, every, graph, stay=stay, meeting=meeting)
    simulator = make(algorithm, loss=loss, regulariser=penalty, columns=columns, seed=seed)
    naive, x = Naive(simulator, tokens), np.concatenate(features(simulator), axis=1)
    assert isinstance(simulator.federation, SimulatedTokens)
    edges = simulator.federation.graph
    for hop in range(7):
        at = tokens_of(simulator).at.tolist()
        for g, k in enumerate(at):
            naive.visit(g, k, steps, 0.01)
        if meeting == "average":
            for k in set(at):
                naive.average([g for g in range(tokens) if at[g] == k])
        if every and (hop + 1) % every == 0:
            naive.average(list(range(tokens)))
        simulator.run_round()
        now = tokens_of(simulator)
        for g in range(tokens):
            theta = np.concatenate(naive.theta[g])
            np.testing.assert_allclose(now.models[g].numpy(), theta, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(now.scores[g, :, 0].numpy(), x @ now.models[g].numpy(), rtol=1e-9, atol=1e-9)
            assert edges.has_edge(at[g], now.at[g]) or (stay and at[g] == now.at[g])
    mean = np.mean([np.concatenate(model) for model in naive.theta], axis=0)
    np.testing.assert_allclose(np.concatenate([w.numpy() for w in simulator.weights]), mean, rtol=1e-9, atol=1e-12)


def test_the_objective_is_a_sum() -> None:
    simulator = make(STCD(), regulariser=Regulariser(l2=2.0))
    for _ in range(5):
        simulator.run_round()
    theta = np.concatenate([w.numpy() for w in simulator.weights])
    residual = np.concatenate(features(simulator), axis=1) @ theta - simulator.data.y_train.numpy()
    assert simulator.objective() == pytest.approx(0.5 * residual @ residual + theta @ theta, rel=1e-12)


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
@pytest.mark.parametrize("penalty", [Regulariser(l2=1.0), Regulariser(l1=0.5), Regulariser(l2=0.5, l1=0.5)])
def test_one_token_goes_to_the_optimum(loss: Any, penalty: Regulariser) -> None:
    simulator = make(STCD(20, graph=Graph("ring")), loss=loss, regulariser=penalty, samples=30)
    assert simulator.evaluate(["suboptimality"])["suboptimality"] == pytest.approx(1.0)
    for _ in range(600):
        simulator.run_round()
    assert simulator.evaluate(["suboptimality"])["suboptimality"] < 1e-8


def test_one_token_of_many_walks_as_if_alone() -> None:
    one, many = make(STCD(graph=Graph("ring"))), make(MTCD(4, graph=Graph("ring")))
    for _ in range(300):  # more hops than are drawn at once
        assert tokens_of(one).at[0] == tokens_of(many).at[0]
        one.run_round()
        many.run_round()


def test_neighbours_are_equally_likely() -> None:
    simulator = make(STCD(1, graph=Graph("star")), agents=5)
    for _ in range(4000):
        simulator.run_round()
    visits = tokens_of(simulator).visits
    assert abs(visits[0] - 2000) <= 1  # the centre every second time
    assert visits[1:].sum() + visits[0] == 4000
    assert np.abs(visits[1:] - 500).max() < 100  # about five standard deviations


def test_the_client_server_limit_has_no_walks() -> None:
    algorithm = MTCD(4, 3, 0.01, 1, Graph("empty"), start="each", stay=True)
    simulator = make(algorithm)
    naive = Naive(simulator, 4)
    for _ in range(6):
        for k in range(4):
            naive.visit(k, k, 3, 0.01)
        naive.average([0, 1, 2, 3])
        simulator.run_round()
        np.testing.assert_allclose(tokens_of(simulator).models[2].numpy(), np.concatenate(naive.theta[0]), rtol=1e-9)
    assert simulator.meter.links.keys() == {"agent-server up", "agent-server down"}


@pytest.mark.parametrize(
    ("kind", "given_", "complaint"),
    [
        (STCD, {"local_steps": 0}, "algorithm.local_steps = 0"),
        (STCD, {"step_size": -1.0}, "step size"),
        (STCD, {"step_size": "large"}, "algorithm.step_size = 'large'"),
        (STCD, {"start": "here"}, "algorithm.start = 'here'"),
        (MTCD, {"tokens": 0}, "algorithm.tokens = 0"),
        (MTCD, {"hops_between_averages": -1}, "algorithm.hops_between_averages = -1"),
        (MTCD, {"meeting": "talk"}, "algorithm.meeting = 'talk'"),
    ],
)
def test_settings_that_make_no_sense(kind: Any, given_: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        kind(**given_)
