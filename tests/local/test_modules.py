"""What a module is taken for, and which strategy that leads to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.errors import ConfigError
from crosshatch.local.forward import forward
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.problem import LossInputs, Part, Problem
from crosshatch.local.read_chain import as_chain, draws_random_numbers
from crosshatch.local.solve import Strategy, choose, solve
from crosshatch.local.stacked.stack import buckets
from crosshatch.task.blocks.built_in import CNN, LSTM, MLP, Linear
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from tests.local.problems import Gated, draw_problem, naive_blocks


class Layers(nn.Module):
    """A user's module that has layers, and does something else with them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Twice what a chain would answer."""
        out: Tensor = 2 * self.layers(x)
        return out


def hooked() -> nn.Module:
    module = nn.Linear(4, 1)
    module.register_forward_hook(lambda _module, _inputs, output: output * 2)
    return module


def partly_frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    module[0].requires_grad_(False)
    return module


def tied() -> nn.Module:
    twice = nn.Linear(4, 4)
    return nn.Sequential(twice, nn.Tanh(), twice, nn.Tanh(), nn.Linear(4, 1))


def dropout() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1))


@pytest.mark.parametrize(
    ("module", "shapes"),
    [
        (nn.Linear(4, 2), [(4, 2, True, "none")]),
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False)), [(4, 2, False, "none")]),
        (nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1)), [(4, 3, True, "relu"), (3, 1, True, "none")]),
        (
            nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1), nn.Sigmoid()),
            [(4, 3, True, "none"), (3, 1, True, "sigmoid")],
        ),
        (Linear((2, 2), 1), [(4, 1, True, "none")]),
        (MLP((4,), 1, hidden=(3,), activation="tanh"), [(4, 3, True, "tanh"), (3, 1, True, "none")]),
    ],
)
def test_chains_are_found(module: nn.Module, shapes: list[tuple[int, int, bool, str]]) -> None:
    chain = as_chain(module)
    assert chain is not None
    assert [(layer.inputs, layer.outputs, layer.bias, layer.activation) for layer in chain] == shapes


@pytest.mark.parametrize(
    "module",
    [
        hooked(), partly_frozen(), tied(), dropout(), Layers(), Gated(1), LSTM((2, 4), 1), CNN((1, 8, 8), 1),
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 1)), nn.Sequential(nn.Linear(4, 1), nn.Softplus()),
    ],
)  # fmt: skip
def test_others_are_no_chains(module: nn.Module) -> None:
    assert as_chain(module) is None


@pytest.mark.parametrize("make", [hooked, partly_frozen, tied, Layers])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_others_are_computed_right(make: Callable[[], nn.Module], steps: int, l2: float) -> None:
    problem = problem_of(make().double(), steps=steps, l2=l2)
    wanted = naive_blocks(problem)
    (found,) = solve([problem], [torch.ones(3)], keep=True, strategy="auto", threads=1)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    _, kept = forward(problem.task, 0, problem.start, problem.parts[0].x, keep=True, threads=1, seed=(0,))
    if steps == 1:
        shares = torch.tensor([0.2, 0.3, 0.4], dtype=torch.float64)
        (total,) = solve([problem], [shares], keep=False, strategy="auto", threads=1, passes=[kept])
        torch.testing.assert_close(total, shares @ wanted, rtol=1e-10, atol=1e-10)


def problem_of(
    module: nn.Module, *, steps: int = 3, l2: float = 0.0, counts: tuple[int, ...] = (3, 0, 4), l1: float = 0.0
) -> Problem:
    """A problem with this block."""
    torch.manual_seed(0)
    rows = sum(counts)
    parameter = next(module.parameters())
    task = Task((module,), Sum(), Squared(), Regulariser(l2, l1))
    x = torch.randn(rows, 4).to(parameter.dtype)
    known = LossInputs(y=torch.randn(rows).to(parameter.dtype), rest=torch.randn(rows, 1).to(parameter.dtype))
    part = Part(x, known, np.array(counts))
    return Problem(task, 0, (part,), task.initial()[0], None, (0, 1), LocalSteps(steps, 0.1))


@pytest.mark.parametrize(
    ("module", "rows", "steps", "l1", "chosen"),
    [
        (nn.Linear(400, 1), 200, 10, 0.0, "stacked"),  # few outputs: the products of the rows cost more than the steps
        (nn.Linear(400, 1), 10, 10, 0.0, "gram"),
        (nn.Linear(400, 64), 40, 10, 0.0, "gram"),
        (nn.Linear(400, 64), 40, 1, 0.0, "stacked"),
        (nn.Linear(400, 64), 40, 10, 0.1, "stacked"),
        (nn.Linear(400, 64), 2000, 10, 0.0, "stacked"),
        (MLP((400,), 1), 40, 10, 0.0, "gram"),
        (LSTM((2, 2), 1), 64, 10, 0.0, "stacked"),
        (LSTM((2, 2), 1, hidden=8), 256, 10, 0.0, "stacked"),
        (LSTM((2, 2), 1), 65, 10, 0.0, "loop"),  # the library's kernel is good at these
        (LSTM((2, 2), 1), 1000, 10, 0.0, "loop"),
        (LSTM((2, 2), 1, hidden=64), 100, 10, 0.0, "loop"),
        (Gated(1), 4, 10, 0.0, "loop"),
        (dropout(), 4, 10, 0.0, "loop"),
    ],
)
def test_the_rule(module: nn.Module, rows: int, steps: int, l1: float, chosen: str) -> None:
    problem = problem_of(module, steps=steps, counts=(rows, rows), l1=l1)
    assert choose(problem) == chosen


def test_gram_needs_one_batch() -> None:
    assert choose(draw_problem(0, parts=1, clients=9, steps=9)) == "gram"
    assert choose(draw_problem(0, parts=2, clients=9, steps=9)) == "stacked"


def test_one_block_under_several_heads_is_read_for_each() -> None:
    linear, odd = nn.Linear(2, 1), nn.Sequential(nn.Linear(2, 1), nn.Softplus())
    block, chosen = nn.Linear(4, 2), {}
    for name, head in (("linear", linear), ("odd", odd)):
        task = Task((block,), Head(head, holder=0), Squared())
        part = Part(torch.randn(3, 4), LossInputs(y=torch.randn(3), rest=torch.randn(3, 2)), np.array([3]))
        problem = Problem(task, 0, (part,), task.initial()[0], None, (0, 2), LocalSteps(2, 0.1))
        sent = replace(part, loss_inputs=LossInputs(derivative=torch.randn(3, 2)))
        chosen[name] = choose(problem), choose(replace(problem, parts=(sent,)))
    assert chosen == {"linear": ("stacked", "stacked"), "odd": ("loop", "stacked")}  # who got derivatives needs no head


@pytest.mark.parametrize("strategy", ["stacked", "gram"])
def test_a_strategy_that_does_not_fit_is_refused(strategy: Strategy) -> None:
    with pytest.raises(ConfigError, match=f"run.strategy = '{strategy}': the block of silo 'silo1' is not a chain"):
        solve([problem_of(Gated(1))], [torch.ones(3)], keep=False, strategy=strategy, threads=1)


def test_gram_is_refused_where_it_is_wrong() -> None:
    with pytest.raises(ConfigError, match="silo 'silo1' has an LSTM"):
        solve([problem_of(LSTM((2, 2), 1))], [torch.ones(3)], keep=False, strategy="gram", threads=1)
    for problem in (draw_problem(0, parts=2), problem_of(nn.Linear(4, 1), l1=0.1)):
        with pytest.raises(ConfigError, match="one batch per round, no l1, plain steps"):
            solve([problem], [torch.ones(problem.clients)], keep=False, strategy="gram", threads=1)


def test_dropout_is_noticed() -> None:
    x = torch.zeros(1, 4)
    active, asleep, plain = dropout(), dropout().eval(), Gated(1)
    before = torch.get_rng_state()
    assert draws_random_numbers(active, x)
    assert not draws_random_numbers(asleep, x)
    assert not draws_random_numbers(plain, x)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("threads", [1, 2])
def test_dropout_repeats(threads: int) -> None:
    """The same masks for the same seed, round and client, whatever else draws random numbers; others for others."""
    problem = replace(problem_of(dropout(), counts=(5, 5, 5)), seed=(7, 3))

    def run(problem: Problem) -> Tensor:
        torch.rand(3)
        (found,) = solve([problem], [torch.ones(3)], keep=True, strategy="auto", threads=threads)
        return found

    first = run(problem)
    assert torch.equal(first, run(problem))
    assert not torch.equal(first, run(replace(problem, seed=(7, 4))))
    assert not torch.equal(first, run(replace(problem, seed=(8, 3))))


def test_dropout_in_the_exchange_repeats_and_sleeps_in_evaluation() -> None:
    block = dropout()
    task = Task((block,), Sum(), Squared())
    (weights,) = task.initial()
    x = torch.randn(50, 4)

    def run(seed: tuple[int, ...] | None) -> Tensor:
        torch.rand(3)
        return forward(task, 0, weights, x, keep=False, threads=2, seed=seed)[0]

    assert torch.equal(run((1, 0)), run((1, 0)))
    assert not torch.equal(run((1, 0)), run((1, 1)))
    torch.testing.assert_close(run(None), block.eval()(x).detach())
    assert not block.training


def test_evaluation_leaves_every_mode_as_it_was() -> None:
    block = dropout()
    block[1].eval()
    task = Task((block,), Sum(), Squared())
    forward(task, 0, task.initial()[0], torch.randn(3, 4), keep=False, threads=1)
    assert block.training
    assert not block[1].training


def test_passes_too_large_to_keep_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosshatch.local.forward._KEPT_BYTES", 1)
    monkeypatch.setattr("crosshatch.local.forward._PIECE_ROWS", 2)
    problem = problem_of(Gated(1).double(), steps=1)
    _, passes = forward(problem.task, 0, problem.start, problem.parts[0].x, keep=True, threads=2, seed=(0,))
    assert passes is not None
    assert [piece is None for _, piece in passes.pieces] == [False, True, True, True]
    shares = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    (found,) = solve([problem], [shares], keep=False, strategy="auto", threads=2, passes=[passes])
    torch.testing.assert_close(found, shares @ naive_blocks(problem), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        ([5, 5, 5], [[0, 1, 2]]),
        ([0, 5, 0], [[1]]),
        ([1, 50, 1, 49], [[0, 2], [1, 3]]),
        ([0, 0], []),
    ],
)
def test_buckets(rows: list[int], groups: list[list[int]]) -> None:
    assert [list(found) for found in buckets(np.array(rows))] == groups


def test_buckets_hold_everybody_once_and_save_padding() -> None:
    rows = np.random.default_rng(0).poisson(40, size=100)
    found = buckets(rows)
    assert sorted(np.concatenate(found)) == list(range(100))
    assert 1 < len(found) <= 4
    assert sum(len(one) * rows[one].max() for one in found) < 1.2 * rows.sum() < len(rows) * rows.max()
