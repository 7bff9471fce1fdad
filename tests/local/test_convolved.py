"""Convolutions of many clients at once: any image size, torch's own pooling rules, and what is left to the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakSet

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.problem import LossInputs, Part, Problem
from crosshatch.local.solve import Strategy, choose, solve
from crosshatch.local.stacked.bucket import Bucket
from crosshatch.local.stacked.convolved import as_convolved
from crosshatch.task.blocks.built_in import CNN
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from tests.local.problems import draw_problem, naive_blocks

BOTH: tuple[Strategy, ...] = ("stacked", "gram")


def problem(module: nn.Module, x: Tensor, counts: list[int], *, steps: int = 3) -> Problem:
    """Images x dealt to clients in order, for a network with one output."""
    task = Task((module.double(),), Sum(), Squared())
    n = len(x)
    known = LossInputs(y=torch.linspace(-1, 1, n, dtype=torch.float64), rest=torch.zeros(n, 1, dtype=torch.float64))
    part = Part(x.double(), known, np.array(counts))
    return Problem(task, 0, (part,), task.initial()[0], None, (0, 1), LocalSteps(steps, 0.1))


def assert_naive(one: Problem, strategy: Strategy) -> None:
    ones = [torch.ones(one.clients, dtype=torch.float64)]
    (found,) = solve([one], ones, keep=True, strategy=strategy, threads=1)
    torch.testing.assert_close(found, naive_blocks(one), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 7), (3, 5, 1), (2, 4, 4), (1, 9, 6)])
@pytest.mark.parametrize("strategy", BOTH)
def test_any_image(shape: tuple[int, int, int], strategy: Strategy) -> None:
    torch.manual_seed(1)
    assert_naive(problem(CNN(shape, 1, channels=3, dense=4), torch.randn(7, *shape), [1, 3, 2, 1]), strategy)


@pytest.mark.parametrize("strategy", BOTH)
def test_a_users_own_network_of_three_stages(strategy: Strategy) -> None:
    """Pooling that drops a last odd row, one, two and three convolutions, other widths."""
    torch.manual_seed(2)
    stages = [
        nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(3, 5, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
        nn.Conv2d(5, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 2)),
    ]  # fmt: skip
    for count, features in ((3, 3 * 4 * 5), (6, 5 * 2 * 3), (9, 2 * 1 * 1)):
        module = nn.Sequential(
            *stages[:count], nn.Flatten(), nn.Linear(features, 4, bias=False), nn.Tanh(), nn.Linear(4, 1)
        )
        assert as_convolved(module, (2, 9, 11)) is not None
        assert_naive(problem(module, torch.randn(6, 2, 9, 11), [2, 2, 2]), strategy)


@pytest.mark.parametrize("strategy", BOTH)
def test_blank_images_pool_like_torch(strategy: Strategy) -> None:
    """Where all pixels of a window are equal the first one gets the gradient."""
    torch.manual_seed(3)
    x = torch.zeros(4, 1, 8, 8)
    x[:, :, 2:5, 3:6] = torch.randn(4, 1, 3, 3)
    module = CNN((1, 8, 8), 1, channels=4, dense=5)
    with torch.no_grad():
        for layer in module.modules():
            if isinstance(layer, nn.Conv2d) and layer.bias is not None:
                layer.bias.fill_(0.3)
    assert_naive(problem(module, x, [1, 2, 1]), strategy)


def test_the_rule_goes_by_images_a_client_and_steps() -> None:
    torch.manual_seed(4)
    module = CNN((1, 8, 8), 1, channels=8, dense=64)  # 32 features
    few = problem(module, torch.randn(21, 1, 8, 8), [1] * 21, steps=2)
    assert choose(few) == "gram"
    assert choose(replace(few, local=LocalSteps(1000, 0.1))) == "stacked"
    large = problem(CNN((1, 8, 8), 1, channels=64, dense=1000), torch.randn(3, 1, 8, 8), [1] * 3, steps=1000)
    assert choose(large) == "loop"
    assert choose(problem(module, torch.randn(21, 1, 8, 8), [21])) == "loop"


CONVOLUTION = nn.Conv2d(1, 2, 3, padding=1)


@pytest.mark.parametrize(
    "stage",
    [
        (nn.Conv2d(1, 2, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        (nn.Conv2d(1, 2, 3, padding=1, stride=2), nn.ReLU(), nn.MaxPool2d(2)),
        (nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2)),
        (nn.Conv2d(1, 2, 3, padding=1, bias=False), nn.ReLU(), nn.MaxPool2d(2)),
        (nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), nn.ReLU(), nn.MaxPool2d(2)),
        (CONVOLUTION, nn.Tanh(), nn.MaxPool2d(2)),
        (CONVOLUTION, nn.ReLU(), nn.AvgPool2d(2)),
        (CONVOLUTION, nn.ReLU(), nn.MaxPool2d(3)),
        (CONVOLUTION, nn.ReLU(), nn.MaxPool2d(2, stride=1)),
        (CONVOLUTION, nn.ReLU()),
        (),
    ],
)
def test_other_layers_are_left_to_the_loop(stage: tuple[nn.Module, ...]) -> None:
    assert as_convolved(nn.Sequential(*stage, nn.Flatten(), nn.Linear(8, 1)), (1, 4, 4)) is None


def test_frozen_hooked_and_repeated_layers_are_left_to_the_loop() -> None:
    frozen, hooked = CNN((1, 4, 4), 1), CNN((1, 4, 4), 1)
    next(frozen.parameters()).requires_grad = False
    hooked.layers[0].register_forward_hook(lambda *_: None)
    same = nn.Conv2d(1, 1, 3, padding=1)
    twice = [same, nn.ReLU(), nn.MaxPool2d(2), same, nn.ReLU(), nn.MaxPool2d(2)]
    repeated = nn.Sequential(*twice, nn.Flatten(), nn.Linear(1, 1))
    for module in (frozen, hooked, repeated):
        assert as_convolved(module, (1, 4, 4)) is None


@pytest.mark.parametrize(("name", "room"), [("_CACHE_BYTES", 20_000), ("_MOST_BYTES", 1_000)])
def test_images_are_cut_to_fit_memory(monkeypatch: pytest.MonkeyPatch, name: str, room: int) -> None:
    monkeypatch.setattr(f"crosshatch.local.stacked.bucket.{name}", room)
    several = [draw_problem(seed, kind="cnn", clients=9) for seed in (5, 6)]
    weights = [torch.rand(9, dtype=torch.float64) for _ in several]
    for strategy in BOTH:
        for threads in (1, 2):
            sums = solve(several, weights, keep=False, strategy=strategy, threads=threads)
            for found, one, shares in zip(sums, several, weights, strict=True):
                torch.testing.assert_close(found, shares @ naive_blocks(one), rtol=1e-10, atol=1e-10)


def test_buckets_do_not_outlive_their_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosshatch.local.stacked.bucket._CACHE_BYTES", 20_000)
    alive: WeakSet[Bucket] = WeakSet()
    most = []
    run = Bucket.run

    def watched(self: Bucket, states: Sequence[Tensor]) -> None:
        alive.add(self)
        most.append(len(alive))
        run(self, states)

    monkeypatch.setattr(Bucket, "run", watched)
    one = draw_problem(5, kind="cnn", clients=20)
    for strategy in BOTH:
        solve([one], [torch.ones(20)], keep=False, strategy=strategy, threads=1)
    assert len(most) > 4
    assert max(most) == 1
