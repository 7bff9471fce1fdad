"""From a silo's sample shape and settings to its module, one from a user's own Python file perhaps."""

import contextlib
import inspect
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import nn

from crosshatch.errors import ModelError, saying_where
from crosshatch.own_parts import PartKind, building, find_part, short_name
from crosshatch.task.blocks.built_in import CNN, LSTM, MLP, Linear, ResNet18
from crosshatch.task.model_settings import ModelSettings

BLOCK = PartKind("a block", "block", ModelError)


def load_block(
    name: str, input_shape: tuple[int, ...], outputs: int, arguments: Mapping[str, object], *, folder: Path
) -> nn.Module:
    """An instance of the class `name` speaks of; relative paths start in `folder`.

    The class is called with `arguments`, and with `input_shape` and `outputs` where its constructor takes them.
    """
    found = find_part(name, BLOCK, folder=folder)
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise ModelError(f"{name} is not a torch.nn.Module class: derive {short_name(name)} from torch.nn.Module")
    offered: dict[str, object] = {"input_shape": input_shape, "outputs": outputs}
    parameters = inspect.signature(found).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    chosen = {key: value for key, value in offered.items() if takes_all or key in parameters}
    with building(name, BLOCK, f" for samples of shape {input_shape}"):
        return found(**{**chosen, **arguments})


_KINDS = {1: "table rows (features,)", 2: "sequences (steps, features)", 3: "images (channels, height, width)"}


def build_block(
    silo: str,
    input_shape: tuple[int, ...],
    outputs: int,
    settings: ModelSettings,
    *,
    seed: int | None = None,
    folder: Path | None = None,
) -> nn.Module:
    """The block of a silo with samples of `input_shape`: (d,) for tables, (t, d) for sequences, (c, h, w) for images.

    `seed` is a torch seed for the initial weights, leaving torch's own generator untouched (None: use that one).
    A user's file is looked for in `folder`, by default the current one.

    >>> block = build_block("bank", (23,), 1, ModelSettings("mlp", hidden=(8,)), seed=7)
    >>> block(torch.zeros(5, 23)).shape
    torch.Size([5, 1])
    """
    if outputs < 1:
        raise ModelError(f"block of silo '{silo}' must have at least 1 output, got {outputs}: set model.outputs")
    if math.prod(input_shape) < 1:
        raise ModelError(f"silo '{silo}' has samples of shape {input_shape}, nothing to learn from: give it columns")
    with _seeded(seed):
        if ":" in settings.block:
            return _build_users(silo, input_shape, outputs, settings, folder or Path())
        try:
            block = _build(silo, input_shape, outputs, settings)
        except RuntimeError as error:
            if "allocate" not in str(error):
                raise
            raise ModelError(
                f"block of silo '{silo}' does not fit into memory: make model.hidden, channels or dense smaller"
            ) from None
    # In a transfer task zero embeddings on both sides would stay so: gradients are multiples of the other side's.
    convex = settings.block == "linear" and settings.fusion != "transfer"
    if settings.zero_init if settings.zero_init is not None else convex:
        # Every built-in block ends in a linear layer; with that at zero the first outputs are zero.
        last = [module for module in block.modules() if isinstance(module, nn.Linear)][-1]
        for parameter in last.parameters():
            nn.init.zeros_(parameter)
    return block


def _build(silo: str, shape: tuple[int, ...], outputs: int, settings: ModelSettings) -> nn.Module:
    match settings.block, shape:
        case "linear", _:
            return Linear(shape, outputs, bias=settings.bias)
        case "mlp", _:
            hidden = settings.hidden or (64,)
            return MLP(shape, outputs, hidden=hidden, activation=settings.activation, bias=settings.bias)
        case "cnn", (channels, height, width):
            return CNN((channels, height, width), outputs, channels=settings.channels, dense=settings.dense)
        case "lstm", (steps, features):
            return _build_lstm(silo, (steps, features), outputs, settings)
        case "lstm", (columns,) if settings.steps is not None:
            if settings.steps < 1 or columns % settings.steps:
                raise ModelError(
                    f"silo '{silo}': {columns} columns do not fold into model.steps = {settings.steps} points in time: "
                    "choose a divisor"
                )
            return _build_lstm(silo, (settings.steps, columns // settings.steps), outputs, settings)
        case "resnet18", (channels, height, width):
            return ResNet18((channels, height, width), outputs, channels=settings.channels, norm=settings.norm)
        case ("cnn" | "resnet18" | "lstm") as name, _:
            wanted = _KINDS[2 if name == "lstm" else 3]
            remedy = "set model.steps, or " if name == "lstm" and len(shape) == 1 else ""
            raise ModelError(
                f"silo '{silo}': block {name!r} needs {wanted}, the samples are {_KINDS.get(len(shape), 'of shape')} "
                f"{shape}: {remedy}use linear or mlp"
            )
    raise AssertionError(settings.block)  # refused by the settings


def _build_lstm(silo: str, shape: tuple[int, int], outputs: int, settings: ModelSettings) -> nn.Module:
    hidden = settings.hidden or (16,)
    if len(hidden) != 1:
        raise ModelError(f"silo '{silo}': an LSTM has one layer, model.hidden lists {len(hidden)}: give one size")
    return LSTM(shape, outputs, hidden=hidden[0])


def _build_users(silo: str, shape: tuple[int, ...], outputs: int, settings: ModelSettings, folder: Path) -> nn.Module:
    if settings.zero_init:
        raise ModelError(f"silo '{silo}': zero_init is for built-in blocks: initialise {settings.block!r} in its class")
    with saying_where(f"silo '{silo}'", ModelError):
        return load_block(settings.block, shape, outputs, settings.arguments, folder=folder)


@contextlib.contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """Torch's CPU generator at `seed` for a while, and as it was before afterwards."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def build_head(settings: ModelSettings, width: int, scores: int, *, seed: int) -> nn.Module:
    """The head on embeddings (n, width), all silos' side by side; its initial weights come from torch's `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if settings.head == "linear":
            return nn.Linear(width, scores)
        return MLP((width,), scores, hidden=settings.head_hidden, activation=settings.activation)
