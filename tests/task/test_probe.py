"""What a module does besides turning samples into rows: found on a few samples, and the module left as it was."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from crosshatch.errors import ModelError
from crosshatch.task.blocks import build_block
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import CrossEntropy
from crosshatch.task.model_settings import ModelSettings
from crosshatch.task.task import Task


class Around(nn.Module):
    """A linear layer behind what `before` makes of the samples."""

    def __init__(self, before: Callable[[Any, Tensor], Tensor], inputs: int = 4, **buffers: Tensor) -> None:
        super().__init__()
        self.before = before
        self.last = nn.Linear(inputs, 3)
        self.kept: Any = None
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.before(self, x))  # type: ignore[no-any-return]


def zeroed(block: Around) -> Around:
    """Weights at zero show nothing of the input."""
    for parameter in block.parameters():
        nn.init.zeros_(parameter)
    return block


def fit(block: nn.Module, x: Tensor | None = None, fusion: Fusion | None = None) -> tuple[int, ...]:
    task = Task((block,), fusion or Sum(), CrossEntropy(), silos=("bank",))
    return task.check_fit([samples() if x is None else x], 3)


def samples(rows: int = 64) -> Tensor:
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(3))


def running_mean(block: Any, x: Tensor) -> Tensor:
    if block.training:
        block.mean.mul_(0.9).add_(x.mean(0).detach(), alpha=0.1)
    return x.sub(block.mean)


def counting(block: Any, x: Tensor) -> Tensor:
    block.calls += 1
    return x


def remembering(block: Any, x: Tensor) -> Tensor:
    block.kept = x.mean(0) if block.kept is None else 0.9 * block.kept + 0.1 * x.mean(0)
    return x.sub(block.kept)


KEEPING: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "running average": (lambda: Around(running_mean, mean=torch.zeros(4)), "buffer 'mean'"),
    "counter": (lambda: Around(counting, calls=torch.zeros((), dtype=torch.int64)), "buffer 'calls'"),
    "spectral norm": (lambda: parametrizations.spectral_norm(nn.Linear(4, 3)), "buffer 'parametrizations.weight.0._u"),
    "spectral norm of one row": (
        lambda: nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 1)), nn.Tanh(), nn.Linear(1, 3)),
        "buffer '0.parametrizations.weight.0._v'",
    ),
    "spectral norm by hooks": (lambda: torch.nn.utils.spectral_norm(nn.Linear(4, 3)), "buffer 'weight_u'"),
    "instance norm": (
        lambda: nn.Sequential(
            nn.Unflatten(1, (2, 2)), nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten(), nn.Linear(4, 3)
        ),
        "buffer '1.running_mean'",
    ),
    "not even a buffer": (lambda: Around(remembering), "other outputs for the same samples"),
}


@pytest.mark.parametrize("name", KEEPING)
def test_what_is_kept_from_pass_to_pass_is_refused(name: str) -> None:
    make, reason = KEEPING[name]
    with pytest.raises(ModelError, match=f"block of silo 'bank' .*{reason}"):
        fit(make())


def test_a_head_that_keeps_something_is_refused_too() -> None:
    head = parametrizations.spectral_norm(nn.Linear(3, 3))
    with pytest.raises(ModelError, match=r"the head changes its buffer .*weight_norm"):
        fit(nn.Linear(4, 3), fusion=Head(head, 0))
    with pytest.raises(ModelError, match=r"the head lets samples look at each other"):
        fit(nn.Linear(4, 4), fusion=Head(Around(lambda _, x: x - x.mean(0)), 0))


def test_kept_numbers_that_stay_are_allowed() -> None:
    constant = Around(lambda block, x: (x - block.centre) * block.factor, centre=torch.ones(4), factor=torch.tensor(2))
    assert fit(constant) == (3,)
    unused = Around(lambda _, x: x, unused=torch.full((2,), float("nan")))
    assert fit(unused) == (3,)
    settled = parametrizations.spectral_norm(nn.Linear(4, 3)).eval()
    assert fit(settled) == (3,)
    assert fit(parametrizations.weight_norm(nn.Linear(4, 3))) == (3,)


MIXING: dict[str, Callable[[], nn.Module]] = {
    "mean": lambda: Around(lambda _, x: x - x.mean(0)),
    "mean before zeros": lambda: zeroed(Around(lambda _, x: x - x.mean(0))),
    "a little of the mean": lambda: Around(lambda _, x: x - 0.001 * x.mean(0)),
    "mean in training only": lambda: Around(lambda block, x: x - x.mean(0) if block.training else x),
    "mean of many only": lambda: Around(lambda _, x: x - x.mean(0) if len(x) > 20 else x),
    "mean of three only": lambda: Around(lambda _, x: x - x.mean(0) if len(x) == 3 else x),
    "running sum": lambda: Around(lambda _, x: x.cumsum(0)),
    "the row before": lambda: Around(lambda _, x: x + x.roll(1, 0)),
    "time across samples": lambda: Recurrent(batch_first=False),
    "softmax over samples": lambda: nn.Sequential(nn.Softmax(dim=0), nn.Linear(4, 3)),
    "mean and dropout": lambda: nn.Sequential(nn.Dropout(0.5), Around(lambda _, x: x - x.mean(0))),
    "number of samples": lambda: Around(lambda _, x: x / len(x)),
    "place in the batch": lambda: Around(lambda _, x: x + torch.arange(len(x)).to(x)[:, None]),
}


class Recurrent(nn.Module):
    """The samples' four numbers as two steps of two; only with `batch_first` do steps follow each other in time."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 3, batch_first=batch_first)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.lstm(x.view(-1, 2, 2))
        return states[:, -1]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", MIXING)
def test_samples_that_look_at_each_other_are_refused(name: str) -> None:
    with pytest.raises(ModelError, match=r"block of silo 'bank' .*(look at each other|alone than)"):
        fit(MIXING[name]())


class Indices(nn.Module):
    """The first number is that of a category: any other than the data's is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.table(x[:, 0].long())  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Looks from number to number within a sample, not from sample to sample."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(2, 1, batch_first=True)
        self.last = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        pairs = x.view(-1, 2, 2)
        return self.last(self.attention(pairs, pairs, pairs)[0].flatten(1))  # type: ignore[no-any-return]


HONEST: dict[str, Callable[[], nn.Module]] = {
    "dropout": lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3)),
    "dropout by function": lambda: Around(lambda block, x: nn.functional.dropout(x, 0.5, block.training)),
    "noise": lambda: Around(lambda block, x: x + torch.randn_like(x) * block.training),
    "noise that depends on the data": lambda: Around(
        lambda block, x: torch.poisson(x.abs()) + torch.poisson(x.abs()) if block.training else x
    ),
    "norms": lambda: nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.GroupNorm(2, 4), nn.Linear(4, 3)),
    "attention": Attention,
    "recurrent": lambda: Recurrent(batch_first=True),
    "steps": lambda: Around(lambda _, x: (x.sign() + x.round() + (x.argmax(1) == 0)[:, None]).float()),
    "in place, further in": lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 3)),
    "huge": lambda: Around(lambda _, x: 1e20 * x),
}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("rows", [1, 2, 64])
def test_honest_blocks_are_taken(name: str, rows: int) -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        assert fit(HONEST[name](), samples(rows)) == (3,)


@pytest.mark.parametrize("training", [True, False])
def test_random_numbers_in_evaluation_mode_are_refused(training: bool) -> None:
    """Two predictions of a sample would differ."""
    noisy = Around(lambda _, x: x + 0.1 * torch.randn_like(x)).train(training)
    with pytest.raises(ModelError, match=r"silo 'bank' draws random numbers in evaluation mode.*self.training"):
        fit(noisy, samples())


def test_samples_are_not_made_up_for_blocks_that_take_only_some() -> None:
    assert fit(Indices(), torch.arange(32).remainder(3).float()[:, None].expand(-1, 4)) == (3,)


def test_samples_that_are_all_alike_hide_nothing() -> None:
    with pytest.raises(ModelError, match="look at each other"):
        fit(Around(lambda _, x: x - x.mean(0)), torch.zeros(8, 4))


@pytest.mark.parametrize(
    "write",
    [
        lambda _, x: x.mul_(0.5),
        lambda _, x: x[:, :1].zero_() + x,
        lambda block, x: x.mul_(0.5) if block.training else x,
        lambda _, x: nn.functional.relu(x, inplace=True),
    ],
)
def test_writing_into_the_samples_is_refused(write: Callable[[Any, Tensor], Tensor]) -> None:
    x = samples()
    with pytest.raises(ModelError, match=r"silo 'bank' writes into its input"):
        fit(Around(write), x)
    assert torch.equal(x, samples())


@pytest.mark.parametrize("kind", ["cnn", "resnet18"])
def test_built_in_blocks_are_taken_whatever_they_look_like(kind: Any) -> None:
    block = build_block("bank", (1, 8, 8), 3, ModelSettings(kind), seed=0)
    assert fit(block, torch.randn(64, 1, 8, 8)) == (3,)


@pytest.mark.parametrize("training", [True, False])
def test_the_module_and_the_generator_stay_as_they_were(training: bool) -> None:
    block = nn.Sequential(
        nn.Dropout(0.5), parametrizations.spectral_norm(nn.Linear(4, 4)), Around(running_mean, mean=torch.zeros(4))
    ).train(training)
    block[0].train(not training)
    block(samples()).sum().backward()
    state = {name: value.clone() for name, value in block.state_dict().items()}
    gradients = [None if p.grad is None else p.grad.clone() for p in block.parameters()]
    modes = [inner.training for inner in block.modules()]
    generator, python = torch.get_rng_state(), random.getstate()
    if training:
        with pytest.raises(ModelError, match="changes its buffer"):
            fit(block)
    else:
        fit(block)
    assert all(torch.equal(value, state[name]) for name, value in block.state_dict().items())
    for parameter, gradient in zip(block.parameters(), gradients, strict=True):
        assert (parameter.grad is None) == (gradient is None)
        assert gradient is None or torch.equal(parameter.grad, gradient)  # type: ignore[arg-type]
    assert [inner.training for inner in block.modules()] == modes
    assert torch.equal(torch.get_rng_state(), generator)
    assert random.getstate() == python


SHAPES: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "squeeze": (lambda out: out.squeeze(0), r"returned \(3,\) for 1 sample: .*squeeze"),
    "one row for three": (lambda out: out[:1] if len(out) == 3 else out, r"returned \(1, 3\) for 3 samples"),
    "double": (
        lambda out: out.double(),
        r"returned numbers of type float64 .* type float32 \(run.precision\)",
    ),
}


class Behind(nn.Linear):
    """A linear layer and something behind it."""

    def __init__(self, inputs: int, outputs: int, behind: Callable[[Tensor], Tensor]) -> None:
        super().__init__(inputs, outputs)
        self.behind = behind

    def forward(self, x: Tensor) -> Tensor:
        return self.behind(super().forward(x))


@pytest.mark.parametrize("name", SHAPES)
def test_outputs_have_the_shape_and_type_for_any_number_of_samples(name: str) -> None:
    behind, reason = SHAPES[name]
    with pytest.raises(ModelError, match=f"block of silo 'bank' {reason}"):
        fit(Behind(4, 3, behind))
    with pytest.raises(ModelError, match=f"the head {reason}"):
        fit(nn.Linear(4, 2), fusion=Head(Behind(2, 3, behind), 0))


def test_failing_for_some_numbers_of_samples() -> None:
    def fail(out: Tensor) -> Tensor:
        if len(out) == 1:
            raise ValueError("expected more than one")
        return out

    with pytest.raises(
        ModelError, match="fails with 1 sample, but takes other numbers of samples: expected more than one"
    ):
        fit(Behind(4, 3, fail))


def test_a_head_that_draws_random_numbers_is_refused() -> None:
    head = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 3))
    with pytest.raises(ModelError, match=r"the head draws random numbers.*put Dropout into the blocks"):
        fit(nn.Linear(4, 2), fusion=Head(head, 0))
    assert fit(nn.Linear(4, 2), fusion=Head(head.eval(), 0)) == (2,)


def test_a_module_that_cannot_be_copied() -> None:
    block = torch.nn.utils.spectral_norm(nn.Linear(4, 3))
    block(samples())
    task = Task((block,), Sum(), CrossEntropy(), silos=("bank",))
    with pytest.raises(ModelError, match=r"^block of silo 'bank' cannot be copied.*make it anew$"):
        task.to("cpu", torch.float32)
