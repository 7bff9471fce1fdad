"""Steps with momentum and Adam are those of torch.optim, client by client, in the loop and stacked."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from crosshatch.errors import ConfigError
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.problem import Problem
from crosshatch.local.solve import choose, solve
from crosshatch.task.losses import CrossEntropy, Logistic, Loss
from crosshatch.task.optimisers import Adam, Momentum, Optimiser, state_size
from crosshatch.task.regulariser import Regulariser
from tests.local.problems import draw_problem, naive_blocks, torch_optimiser

OPTIMISERS: list[Optimiser] = [
    Momentum(0.0), Momentum(), Momentum(0.7, nesterov=True), Adam(), Adam((0.5, 0.9), 1e-3), Adam((0.0, 0.99)),
]  # fmt: skip
LOSSES: list[Loss] = [Logistic(), CrossEntropy()]
CHAINS = ("linear", "no bias", "mlp", "deep", "lstm", "cnn")


def with_optimiser(problem: Problem, optimiser: Optimiser) -> Problem:
    """The same problem with a state of zero."""
    state = torch.zeros(problem.clients, state_size(optimiser, problem.start.shape[-1]), dtype=torch.float64)
    return replace(problem, task=replace(problem.task, optimiser=optimiser), state=state)


def rows_of(problem: Problem, strategy: Literal["loop", "stacked", "auto"]) -> Tensor:
    ones = torch.ones(problem.clients, dtype=torch.float64)
    return solve([problem], [ones], keep=True, strategy=strategy, threads=1)[0]


@settings(max_examples=40)
@given(data=st.data(), seed=st.integers(0, 10**6))
@pytest.mark.parametrize(("strategy", "kinds"), [("loop", (*CHAINS, "gated")), ("stacked", CHAINS)])
def test_blocks_are_those_of_torch(
    strategy: Literal["loop", "stacked"], kinds: tuple[str, ...], data: st.DataObject, seed: int
) -> None:
    fusion = data.draw(st.sampled_from(["sum", "held", "received"]))
    problem = draw_problem(
        seed,
        kind=data.draw(st.sampled_from(kinds)),
        fusion=fusion,
        loss=data.draw(st.sampled_from(LOSSES)),
        parts=data.draw(st.integers(1, 3)),
        steps=data.draw(st.integers(1, 6)),
        derivative=fusion != "held" and data.draw(st.booleans()),
        distinct=data.draw(st.booleans()),
        regulariser=Regulariser(data.draw(st.sampled_from([0.0, 0.1]))),
        proximal=data.draw(st.sampled_from([0.0, 0.2])),
        first=data.draw(st.integers(0, 3)),
    )
    slower = replace(problem, local=replace(problem.local, step_size=0.05))
    problem = with_optimiser(slower, data.draw(st.sampled_from(OPTIMISERS)))
    blocks = rows_of(problem, strategy)[:, : problem.start.shape[-1]]
    torch.testing.assert_close(blocks, naive_blocks(problem), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("strategy", ["loop", "stacked"])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("kind", ["mlp", "cnn", "lstm"])
def test_steps_go_on_from_a_state(kind: str, optimiser: Optimiser, strategy: Literal["loop", "stacked"]) -> None:
    problem = with_optimiser(draw_problem(3, kind=kind, fusion="held", parts=2, steps=5), optimiser)
    width = problem.start.shape[-1]
    half = rows_of(replace(problem, local=LocalSteps(2, 0.3)), strategy)
    start, state = half[:, :width].contiguous(), half[:, width:].contiguous()
    rest = replace(problem, local=LocalSteps(3, 0.3, first=2), start=start, state=state)
    torch.testing.assert_close(rows_of(rest, strategy), rows_of(problem, strategy), rtol=1e-10, atol=1e-12)


def test_a_client_without_rows_keeps_block_and_state() -> None:
    problem = with_optimiser(draw_problem(1, clients=9, steps=2), Adam())
    assert problem.state is not None
    problem = replace(problem, state=torch.rand_like(problem.state))
    assert problem.state is not None
    idle = problem.parts[0].counts == 0
    assert idle.any()
    for strategy in ("loop", "stacked"):
        rows = rows_of(problem, "loop" if strategy == "loop" else "stacked")
        assert torch.equal(rows[idle, problem.start.shape[-1] :], problem.state[idle])
        assert torch.equal(rows[idle, : problem.start.shape[-1]], problem.start.expand(problem.clients, -1)[idle])


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_single_precision_is_that_of_torch(optimiser: Optimiser) -> None:
    """One over one minus beta to the power of t, in single precision, where t is small."""
    torch.manual_seed(0)
    leaf = nn.Parameter(torch.randn(50))
    own, moments = leaf.detach().clone(), [torch.zeros(50)] * optimiser.moments
    reference = torch_optimiser(optimiser, [leaf], 0.01)
    assert reference is not None
    for t in range(30):
        gradient = torch.randn(50)
        leaf.grad = gradient.clone()
        reference.step()
        direction, moments = optimiser.step(gradient, moments, torch.tensor(t + 1.0))
        own -= 0.01 * direction
    torch.testing.assert_close(own, leaf.detach(), rtol=1e-5, atol=1e-6)


def test_gram_is_for_plain_steps() -> None:
    problem = draw_problem(0, kind="mlp", steps=50)
    assert choose(problem) == "gram"
    optimised = with_optimiser(problem, Adam())
    assert choose(optimised) == "stacked"
    with pytest.raises(ConfigError, match="'gram' takes one batch per round, no l1, plain steps"):
        solve([optimised], [torch.ones(optimised.clients)], keep=True, strategy="gram", threads=1)
    pulled = replace(problem, local=replace(problem.local, proximal=0.1))
    assert choose(pulled) == "stacked"
    with pytest.raises(ConfigError, match="without a pull to the start"):
        solve([pulled], [torch.ones(pulled.clients)], keep=True, strategy="gram", threads=1)
