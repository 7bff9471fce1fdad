"""From section [model] and a federation's data to the task: blocks, fusion, loss and regulariser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypedDict, final

import torch
from torch import nn

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ModelError
from crosshatch.seeds import torch_seed
from crosshatch.task.blocks import MLP, BlockSettings, build_block
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared, require_target
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task

LossName = Literal["squared", "logistic", "cross_entropy"]
_LOSSES: dict[LossName, Loss] = {"squared": Squared(), "logistic": Logistic(), "cross_entropy": CrossEntropy()}
_BY_TARGET = {loss.target: name for name, loss in _LOSSES.items()}


class BlockChanges(TypedDict, total=False):
    """What one silo's block has different from [model]."""

    block: str
    hidden: tuple[int, ...]
    activation: str
    bias: bool
    zero_init: bool
    channels: int
    dense: int
    norm: str
    steps: int
    arguments: dict[str, object]
    outputs: int


@final
@dataclass(frozen=True)
class ModelSettings:
    """Section [model]: one kind of block for all silos, with `blocks` for those which differ.

    `loss` "auto" follows the labels. `outputs` is the width of a block's embeddings: one a score for the sum, 16 for a
    head unless given. `head_holder` names the silo that trains the head: by default the one with the labels, else the
    first. The rest is explained at `BlockSettings` and `Regulariser`.

    >>> ModelSettings(block="mlp", hidden=(32,), blocks={"bank": {"hidden": (8,)}}).fusion
    'sum'
    """

    block: str = "linear"
    hidden: tuple[int, ...] | None = None
    activation: str = "relu"
    bias: bool = True
    zero_init: bool | None = None
    channels: int = 64
    dense: int = 256
    norm: str = "group"
    steps: int | None = None
    arguments: Mapping[str, object] = field(default_factory=dict, hash=False)
    loss: Literal["auto"] | LossName = "auto"
    fusion: Literal["sum", "head"] = "sum"
    outputs: int | None = None
    head: Literal["linear", "mlp"] = "linear"
    head_hidden: tuple[int, ...] = (64,)
    head_holder: str | None = None
    l2: float = 0.0
    l1: float = 0.0
    blocks: Mapping[str, BlockChanges] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuse what no data could make right."""
        if self.outputs is not None and self.outputs < 1:
            raise ModelError(f"model.outputs = {self.outputs}: a block must have at least 1 output")
        if not self.head_hidden or min(self.head_hidden) < 1:
            raise ModelError(f"model.head_hidden = {list(self.head_hidden)}: give sizes of at least 1")
        if self.fusion == "sum" and self.head_holder is not None:
            raise ModelError(
                f"model.head_holder = '{self.head_holder}', but there is no head: set model.fusion = 'head'"
            )
        _ = self.block_settings, Regulariser(l2=self.l2, l1=self.l1)

    @property
    def block_settings(self) -> BlockSettings:
        """The part that concerns every block."""
        return BlockSettings(
            block=self.block,
            hidden=self.hidden,
            activation=self.activation,
            bias=self.bias,
            zero_init=self.zero_init,
            channels=self.channels,
            dense=self.dense,
            norm=self.norm,
            steps=self.steps,
            arguments=self.arguments,
        )


def resolve_model(data: FederatedData, settings: ModelSettings) -> ModelSettings:
    """The settings with everything that follows from the data spelled out: loss, outputs, and the head's holder."""
    name = _BY_TARGET[data.target] if settings.loss == "auto" else settings.loss
    loss = _LOSSES[name]
    require_target(loss, data.target)
    silos = [silo.name for silo in data.silos]
    for silo in settings.blocks:
        if silo not in silos:
            raise ModelError(f"model.blocks speaks of {_no_silo(silo, silos)}")
    if settings.fusion == "sum":
        outputs = settings.outputs if settings.outputs is not None else loss.scores(data.classes)
        return replace(settings, loss=name, outputs=outputs)
    holder = settings.head_holder if settings.head_holder is not None else data.label_silo or silos[0]
    if holder not in silos:
        raise ModelError(f"model.head_holder is {_no_silo(holder, silos)}")
    outputs = settings.outputs if settings.outputs is not None else 16
    return replace(settings, loss=name, outputs=outputs, head_holder=holder)


def build_task(data: FederatedData, settings: ModelSettings, *, seed: int, folder: Path | None = None) -> Task:
    """The task for these silos; initial weights come from `(seed, "initial", silo number)`.

    Files of a user's own blocks are looked for in `folder`, by default the current one.

    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.settings import FederationSettings
    >>> data = federate(load_dataset("wine"), FederationSettings(silos=2), seed=1)
    >>> task = build_task(data, ModelSettings(block="mlp", hidden=(8,)), seed=1)
    >>> task.loss, [layout.size for layout in task.layouts]
    (CrossEntropy(), [91, 83])
    """
    settings = resolve_model(data, settings)
    assert settings.outputs is not None
    assert settings.loss != "auto"
    loss = _LOSSES[settings.loss]
    blocks, width = [], 0
    for number, silo in enumerate(data.silos):
        chosen, outputs = _for_silo(settings, silo.name, settings.outputs)
        width += outputs
        own_seed = torch_seed(seed, "initial", number)
        shape = tuple(silo.train.shape[1:])
        blocks.append(build_block(silo.name, shape, outputs, chosen, seed=own_seed, folder=folder))
    names = tuple(silo.name for silo in data.silos)
    fusion: Fusion = Sum()
    if settings.fusion == "head":
        module = _build_head(settings, width, loss.scores(data.classes), seed=torch_seed(seed, "initial head"))
        fusion = Head(module, names.index(str(settings.head_holder)))
    return Task(tuple(blocks), fusion, loss, Regulariser(l2=settings.l2, l1=settings.l1), names)


def _for_silo(settings: ModelSettings, silo: str, outputs: int) -> tuple[BlockSettings, int]:
    changes = dict(settings.blocks.get(silo, {}))
    width = changes.pop("outputs", outputs)
    assert isinstance(width, int)
    try:
        return replace(settings.block_settings, **changes), width  # type: ignore[arg-type]
    except TypeError:
        allowed = sorted(BlockChanges.__annotations__)
        unknown = next(key for key in changes if key not in allowed)
        raise ModelError(f"unknown key model.blocks.{silo}.{unknown}: allowed are {', '.join(allowed)}") from None


def _build_head(settings: ModelSettings, width: int, scores: int, *, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if settings.head == "linear":
            return nn.Linear(width, scores)
        return MLP((width,), scores, hidden=settings.head_hidden, activation=settings.activation)


def _no_silo(name: str, silos: list[str]) -> str:
    close = get_close_matches(name, silos, n=1)
    hint = f"did you mean '{close[0]}'? The silos are" if close else "the silos are"
    return f"'{name}', which is no silo: {hint} {', '.join(silos)}"
