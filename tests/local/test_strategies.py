"""Every strategy is the naive loop, to the last digits of double precision."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from crosshatch.local.forward import KeptPass, forward
from crosshatch.local.problem import Problem
from crosshatch.local.solve import Strategy, solve
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared
from crosshatch.task.regulariser import Regulariser
from tests.local.problems import draw_problem, naive_blocks

CHAINS = ("linear", "no bias", "mlp", "deep")
KINDS = (*CHAINS, "lstm", "cnn", "gated")
LOSSES: list[Loss] = [Squared(), Logistic(), CrossEntropy()]


def assert_naive(
    problems: list[Problem], strategy: Strategy, threads: int = 1, passes: Sequence[KeptPass | None] = ()
) -> None:
    """All blocks, and their weighted sums, are those of the naive loop."""
    weights = [torch.rand(p.clients, dtype=torch.float64) for p in problems]
    wanted = [naive_blocks(p) for p in problems]
    kept = solve(problems, weights, keep=True, strategy=strategy, threads=threads, passes=passes)
    sums = solve(problems, weights, keep=False, strategy=strategy, threads=threads, passes=passes)
    for blocks, total, right, shares in zip(kept, sums, wanted, weights, strict=True):
        assert_close(blocks, right)
        assert_close(total, shares @ right)


def assert_close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


@st.composite
def problems(
    draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, parts: int = 3, steps: int = 5, plain: bool = False
) -> Problem:
    """Any problem of these kinds of block."""
    fusion = draw(st.sampled_from(["sum", "held", "received"]))
    derivative = fusion != "held" and draw(st.booleans())
    return draw_problem(
        draw(st.integers(0, 10**6)),
        kind=draw(st.sampled_from(kinds)),
        fusion=fusion,
        loss=draw(st.sampled_from(LOSSES)),
        parts=draw(st.integers(1, parts)),
        clients=draw(st.integers(1, 9)),
        steps=draw(st.integers(1, steps)),
        derivative=derivative,
        distinct=draw(st.booleans()),
        regulariser=Regulariser(
            draw(st.sampled_from([0.0, 0.1])), 0.0 if plain else draw(st.sampled_from([0.0, 0.05]))
        ),
        proximal=0.0 if plain else draw(st.sampled_from([0.0, 0.2])),
        first=draw(st.integers(0, 4)),
    )


@settings(max_examples=60)
@given(problem=problems(), threads=st.sampled_from([1, 2]))
def test_loop(problem: Problem, threads: int) -> None:
    assert_naive([problem], "loop", threads)


@settings(max_examples=80)
@given(problem=problems((*CHAINS, "lstm", "cnn")), threads=st.sampled_from([1, 2]))
def test_stacked(problem: Problem, threads: int) -> None:
    assert_naive([problem], "stacked", threads)


@pytest.mark.parametrize("proximal", [0.0, 0.2])
def test_clients_that_rest_are_not_shrunk(proximal: float) -> None:
    weights = Regulariser(0.1, 0.05)
    problem = draw_problem(0, kind="mlp", parts=3, clients=9, steps=4, regulariser=weights, proximal=proximal)
    assert any(not part.counts.all() for part in problem.parts)
    assert_naive([problem], "stacked")


@settings(max_examples=60)
@given(problem=problems((*CHAINS, "cnn"), parts=1, plain=True))
def test_gram(problem: Problem) -> None:
    assert_naive([problem], "gram")


@settings(max_examples=60)
@given(problem=problems(parts=1, steps=1), threads=st.sampled_from([1, 2]))
def test_one_pass_for_all(problem: Problem, threads: int) -> None:
    assume(problem.start.dim() == 1)
    _, kept = forward(
        problem.task, problem.silo, problem.start, problem.parts[0].x, keep=True, threads=threads, seed=(0,)
    )
    weights = torch.rand(problem.clients, dtype=torch.float64)
    (found,) = solve([problem], [weights], keep=False, strategy="auto", threads=threads, passes=[kept])
    assert_close(found, weights @ naive_blocks(problem))


@pytest.mark.parametrize("strategy", ["auto", "loop", "stacked", "gram"])
@pytest.mark.parametrize("kind", CHAINS)
def test_silos_side_by_side(strategy: Strategy, kind: str) -> None:
    """Silos of the same shape are stacked together, others go on their own."""
    several = [draw_problem(seed, kind=kind, clients=2 + seed) for seed in range(4)]
    others = [draw_problem(9, kind="linear", loss=CrossEntropy())]
    assert_naive(several + others, strategy, threads=2)


def test_head_and_derivatives_side_by_side() -> None:
    """The label holder's silo has a head, the others have derivatives."""
    assert_naive([draw_problem(1, fusion="held"), draw_problem(2, fusion="received", derivative=True)], "auto")


@pytest.mark.parametrize("strategy", ["loop", "stacked", "gram"])
def test_many_sizes(strategy: Strategy) -> None:
    """Counts so uneven that there are several buckets."""
    problem = draw_problem(3, kind="deep", clients=60)
    assert_naive([problem], strategy)


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("fusion", ["sum", "held", "received"])
@pytest.mark.parametrize("strategy", ["stacked", "gram"])
def test_the_exchanges_forward_pass_is_the_first_steps(kind: str, fusion: str, strategy: Strategy) -> None:
    several, passes = [], []
    for seed in range(3):
        pull = 0.0 if strategy == "gram" else 0.2
        problem = draw_problem(seed, kind=kind, fusion=fusion, clients=20, regulariser=Regulariser(0.1), proximal=pull)
        x = problem.parts[0].x
        several.append(problem)
        passes.append(forward(problem.task, problem.silo, problem.start, x, keep=True, threads=1, seed=(0,))[1])
    assert_naive(several, strategy, passes=passes)


@pytest.mark.parametrize("strategy", ["loop", "stacked", "gram"])
@pytest.mark.parametrize("kind", ["mlp", "linear", "lstm"])
def test_equal_runs_are_equal_bit_for_bit(strategy: Strategy, kind: str) -> None:
    if kind == "lstm" and strategy == "gram":
        pytest.skip("no Gram form")
    problem = draw_problem(4, kind=kind, clients=30)
    weights = torch.rand(problem.clients, dtype=torch.float64)
    for threads in (1, 2):
        first, again = (
            solve([problem], [weights], keep=False, strategy=strategy, threads=threads)[0] for _ in range(2)
        )
        assert torch.equal(first, again)


@pytest.mark.parametrize("kind", ["gated", "lstm", "cnn"])
def test_the_loop_adds_up_in_the_same_order_for_any_number_of_threads(kind: str) -> None:
    several = [draw_problem(seed, kind=kind, clients=40) for seed in (1, 2)]
    weights = [torch.rand(problem.clients, dtype=torch.float64) for problem in several]
    one, *others = (solve(several, weights, keep=False, strategy="loop", threads=threads) for threads in (1, 2, 3))
    for other in others:
        assert all(map(torch.equal, one, other))


def test_starts_are_left_alone() -> None:
    strategies: tuple[Strategy, ...] = ("loop", "stacked", "gram")
    for strategy in strategies:
        for clients in (1, 3):
            problem = draw_problem(6, clients=clients)
            before = problem.start.clone()
            solve([problem], [torch.ones(clients)], keep=True, strategy=strategy, threads=1)
            assert torch.equal(problem.start, before)


def test_large_lstms_are_cut_to_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosshatch.local.stacked.bucket._MOST_BYTES", 2000)
    for threads in (1, 2):
        assert_naive([draw_problem(2, kind="lstm", clients=20), draw_problem(3, kind="lstm")], "stacked", threads)
