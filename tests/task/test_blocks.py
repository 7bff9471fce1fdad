"""Blocks against formulas written out by hand: parameter counts, forward passes, shapes, gradients, refusals."""

from __future__ import annotations

import itertools
import math
import re
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from crosshatch.errors import ModelError
from crosshatch.task.blocks import CNN, LSTM, MLP, Linear, ResNet18, build_block
from crosshatch.task.model_settings import BLOCK_NAMES, ModelSettings


def count(block: nn.Module) -> int:
    return sum(parameter.numel() for parameter in block.parameters())


def samples(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


EXAMPLES = [
    ("linear", (5,)),
    ("linear", (3, 4)),
    ("mlp", (5,)),
    ("mlp", (1, 8, 4)),
    ("cnn", (1, 28, 14)),
    ("cnn", (1, 14, 14)),
    ("cnn", (1, 8, 4)),
    ("cnn", (3, 32, 16)),
    ("cnn", (3, 5, 1)),
    ("lstm", (48, 7)),
    ("lstm", (1, 1)),
    ("resnet18", (3, 32, 16)),
    ("resnet18", (1, 8, 4)),
]


@pytest.mark.parametrize(("name", "shape"), EXAMPLES)
def test_outputs_have_their_shape_and_every_parameter_a_gradient(name: str, shape: tuple[int, ...]) -> None:
    block = build_block("bank", shape, 3, ModelSettings(name, channels=8, dense=16, zero_init=False), seed=1)
    out = block(samples(4, *shape))
    assert out.shape == (4, 3)
    (out**2).sum().backward()
    for parameter_name, parameter in block.named_parameters():
        assert parameter.grad is not None, parameter_name
        if shape != (1, 1) or "weight_hh" not in parameter_name:  # a single step has no state to look back on
            assert parameter.grad.abs().sum() > 0, parameter_name


@pytest.mark.parametrize(("name", "shape"), EXAMPLES)
def test_a_sample_does_not_depend_on_its_neighbours(name: str, shape: tuple[int, ...]) -> None:
    block = build_block("bank", shape, 2, ModelSettings(name, channels=8, dense=16, zero_init=False), seed=1).double()
    x = samples(4, *shape).double()
    torch.testing.assert_close(block(x)[1:2], block(x[1:2]))


@settings(deadline=None, max_examples=30)
@given(
    d=st.integers(1, 9),
    hidden=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    outputs=st.integers(1, 4),
    bias=st.booleans(),
    activation=st.sampled_from(["relu", "tanh", "sigmoid"]),
)
def test_the_mlp_is_its_matrix_formula(d: int, hidden: list[int], outputs: int, bias: bool, activation: str) -> None:
    block = MLP((d,), outputs, hidden=tuple(hidden), activation=activation, bias=bias).double()
    widths = [d, *hidden, outputs]
    assert count(block) == sum(a * b + bias * b for a, b in itertools.pairwise(widths))
    x = samples(6, d).double()
    expected = x
    linears = [layer for layer in block.layers if isinstance(layer, nn.Linear)]
    for number, layer in enumerate(linears):
        expected = expected @ layer.weight.T + (layer.bias if bias else 0)
        if number < len(hidden):
            expected = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}[activation](expected)
    torch.testing.assert_close(block(x), expected)


@pytest.mark.parametrize("bias", [True, False])
def test_the_linear_block(bias: bool) -> None:
    block = Linear((2, 3), 4, bias=bias)
    assert count(block) == 6 * 4 + 4 * bias
    x = samples(5, 2, 3)
    layer = block.layers[-1]
    assert isinstance(layer, nn.Linear)
    torch.testing.assert_close(block(x), x.reshape(5, 6) @ layer.weight.T + (layer.bias if bias else 0))


@pytest.mark.parametrize("block", [Linear((5,), 1), Linear((2, 2), 3), MLP((5,), 1), MLP((2, 2), 1, hidden=(4, 4))])
def test_linear_and_mlp_are_plain_chains(block: Linear | MLP) -> None:
    allowed = (nn.Flatten, nn.Linear, nn.ReLU, nn.Tanh, nn.Sigmoid)
    assert all(type(layer) in allowed for layer in block.layers)
    assert list(block.children()) == [block.layers]


@pytest.mark.parametrize(("c", "h", "w"), [(1, 28, 14), (1, 14, 14), (1, 8, 4), (3, 32, 16), (3, 7, 5)])
def test_the_cnn_layer_by_layer(c: int, h: int, w: int) -> None:
    block = CNN((c, h, w), 10).double()
    pixels = math.ceil(h / 4) * math.ceil(w / 4)
    assert count(block) == (9 * c + 1) * 64 + (9 * 64 + 1) * 64 + (64 * pixels + 1) * 256 + 257 * 10
    p = [parameter.detach() for parameter in block.parameters()]
    x = samples(2, c, h, w).double()
    for weight, bias in ((p[0], p[1]), (p[2], p[3])):
        x = torch.relu(functional.conv2d(x, weight, bias, padding=1))
        if h % 4 == 0 and w % 4 == 0:
            x = x.reshape(2, 64, x.shape[2] // 2, 2, x.shape[3] // 2, 2).amax(dim=(3, 5))
        else:
            right, below = x.shape[3] % 2, x.shape[2] % 2  # ReLU's outputs are not negative: zeros never win
            x = functional.max_pool2d(functional.pad(x, (0, right, 0, below)), 2)
    x = torch.relu(x.flatten(1) @ p[4].T + p[5])
    torch.testing.assert_close(block(samples(2, c, h, w).double()), x @ p[6].T + p[7])


def test_the_lstm_step_by_step() -> None:
    d, hidden, outputs = 3, 5, 2
    block = LSTM((6, d), outputs, hidden=hidden).double()
    assert count(block) == 4 * hidden * (d + hidden + 2) + (hidden + 1) * outputs
    assert count(LSTM((6, d), outputs)) == 4 * 16 * (d + 16 + 2) + 17 * outputs
    w_x, w_h, b_x, b_h = (parameter.detach() for parameter in block.lstm.parameters())
    x = samples(4, 6, d).double()
    state = torch.zeros(4, hidden, dtype=torch.float64)
    memory = torch.zeros(4, hidden, dtype=torch.float64)
    for step in range(6):
        enter, forget, new, leave = (x[:, step] @ w_x.T + b_x + state @ w_h.T + b_h).chunk(4, dim=1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(enter) * torch.tanh(new)
        state = torch.sigmoid(leave) * torch.tanh(memory)
    torch.testing.assert_close(block(x), state @ block.output.weight.T + block.output.bias)


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_resnet18_has_the_known_number_of_parameters(norm: str) -> None:
    block = ResNet18((3, 32, 32), 10, norm=norm)
    assert count(block) == 11_173_962
    assert any(isinstance(module, nn.BatchNorm2d) for module in block.modules()) == (norm == "batch")
    assert sum(isinstance(module, nn.Conv2d) for module in block.modules()) == 1 + 16 + 3


def test_resnet18_halves_sizes_and_doubles_widths() -> None:
    block = ResNet18((3, 32, 16), 10, channels=8)
    x = block.stem(samples(1, 3, 32, 16))
    shapes = []
    for unit in block.stages:
        x = unit(x)
        shapes.append(tuple(x.shape[1:]))
    assert shapes[::2] == shapes[1::2] == [(8, 32, 16), (16, 16, 8), (32, 8, 4), (64, 4, 2)]


def test_a_residual_unit_with_a_silent_path_passes_its_input_on() -> None:
    unit = ResNet18((1, 8, 8), 1, channels=4).stages[0]
    for parameter in unit.parameters():
        nn.init.zeros_(parameter)
    x = samples(2, 4, 8, 8)
    torch.testing.assert_close(unit(x), torch.relu(x))


def test_initial_weights_follow_the_seed_and_leave_torch_alone() -> None:
    def weights(seed: int | None) -> Tensor:
        block = build_block("bank", (4,), 1, ModelSettings("mlp"), seed=seed)
        return nn.utils.parameters_to_vector(block.parameters()).detach()

    before = torch.random.get_rng_state()
    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        assert torch.equal(weights(None), weights(1))


@pytest.mark.parametrize(("name", "shape"), EXAMPLES)
def test_zero_init_gives_zero_outputs_and_is_the_default_for_linear(name: str, shape: tuple[int, ...]) -> None:
    def first_outputs(zero_init: bool | None) -> float:
        block = build_block("bank", shape, 2, ModelSettings(name, channels=8, dense=8, zero_init=zero_init), seed=1)
        return float(block(samples(3, *shape)).detach().abs().max())

    assert first_outputs(True) == 0
    assert first_outputs(False) > 0
    assert (first_outputs(None) == 0) == (name == "linear")


def test_settings_reach_the_blocks() -> None:
    mlp = build_block("bank", (4,), 2, ModelSettings("mlp", hidden=(3, 5), activation="tanh", bias=False))
    assert [tuple(parameter.shape) for parameter in mlp.parameters()] == [(3, 4), (5, 3), (2, 5)]
    assert sum(isinstance(module, nn.Tanh) for module in mlp.modules()) == 2
    lstm = build_block("bank", (4, 3), 2, ModelSettings("lstm", hidden=(7,)))
    assert count(lstm) == count(LSTM((4, 3), 2, hidden=7))
    assert count(build_block("bank", (4, 3), 2, ModelSettings("lstm"))) == count(LSTM((4, 3), 2, hidden=16))
    cnn = build_block("bank", (1, 8, 4), 2, ModelSettings("cnn", channels=6, dense=9))
    assert count(cnn) == count(CNN((1, 8, 4), 2, channels=6, dense=9))
    resnet = build_block("bank", (1, 8, 4), 2, ModelSettings("resnet18", channels=4, norm="batch"))
    assert any(isinstance(module, nn.BatchNorm2d) for module in resnet.modules())


@pytest.mark.parametrize(
    ("name", "shape", "reason"),
    [
        ("cnn", (23,), "silo 'bank': block 'cnn' needs images (channels, height, width), the samples are table rows"),
        ("resnet18", (48, 3), "needs images (channels, height, width), the samples are sequences"),
        ("lstm", (1, 8, 8), "needs sequences (steps, features), the samples are images"),
        ("lstm", (23,), "use linear or mlp"),
        ("cnn", (2, 3, 4, 5), "the samples are of shape (2, 3, 4, 5)"),
        ("transformer", (23,), f"unknown block 'transformer' in model.block: choose among {', '.join(BLOCK_NAMES)}"),
        ("linear", (0,), "nothing to learn from"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(name: str, shape: tuple[int, ...], reason: str) -> None:
    with pytest.raises(ModelError, match=re.escape(reason)) as caught:
        build_block("bank", shape, 1, ModelSettings(name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given_settings", "reason"),
    [
        ({"hidden": (64, 0)}, r"model\.hidden must be at least 1, got 0"),
        ({"hidden": ()}, r"model\.hidden is empty"),
        ({"channels": 0}, r"model\.channels"),
        ({"dense": -1}, r"model\.dense"),
        ({"activation": "gelu"}, "choose relu, tanh or sigmoid"),
        ({"norm": "layer"}, "choose group or batch"),
    ],
)
def test_bad_settings_are_refused(given_settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        ModelSettings("mlp", **given_settings)  # type: ignore[arg-type]


def test_other_refusals() -> None:
    with pytest.raises(ModelError, match="at least 1 output"):
        build_block("bank", (4,), 0, ModelSettings())
    with pytest.raises(ModelError, match="give one size"):
        build_block("bank", (4, 3), 1, ModelSettings("lstm", hidden=(4, 4)))


def test_lstm_folds_a_tables_columns_into_points_in_time() -> None:
    block = build_block("eeg", (12,), 2, ModelSettings("lstm", steps=4), seed=1)
    x = torch.arange(24.0).view(2, 12)
    same = build_block("eeg", (4, 3), 2, ModelSettings("lstm"), seed=1)
    assert torch.equal(block(x), same(x.view(2, 4, 3)))


@pytest.mark.parametrize(("steps", "words"), [(5, "do not fold into model.steps = 5"), (None, "set model.steps")])
def test_lstm_on_a_table_needs_a_divisor(steps: int | None, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        build_block("eeg", (12,), 1, ModelSettings("lstm", steps=steps))


@pytest.mark.parametrize(("fusion", "zero"), [("sum", True), ("head", True), ("transfer", False)])
def test_linear_blocks_start_where_they_can_leave(fusion: Literal["sum", "head", "transfer"], zero: bool) -> None:
    block = build_block("a", (4,), 3, ModelSettings(block="linear", fusion=fusion), seed=1)
    assert all(bool((parameter == 0).all()) == zero for parameter in block.parameters())
