"""The config section [model] as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from crosshatch.errors import ModelError, meant
from crosshatch.own_parts import is_own
from crosshatch.task.regulariser import Regulariser

BLOCK_NAMES = ("linear", "mlp", "cnn", "lstm", "resnet18")
LOSS_NAMES = ("auto", "squared", "logistic", "cross_entropy", "multi_logistic", "taylor_logistic")


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


@dataclass(frozen=True)
class ModelSettings:
    """Section [model]: one kind of block for all silos, with `blocks` for those which differ.

    Each kind of block reads the settings that concern it. `block`: linear, mlp, cnn, lstm, resnet18 or
    `path/to/file.py:ClassName`. `hidden`: units of the MLP's layers or of the LSTM; None is the block's default, (64,)
    and 16. `channels`: filters of the CNN, first width of the ResNet. `dense`: units of the CNN's dense layer.
    `zero_init`: whether the output layer starts at zero; None means yes for linear, but in a transfer task, and no for
    the others. `steps`: points in time that an LSTM folds a table's columns into. `arguments`: keyword arguments for a
    class of the user's own. `outputs` is the width of a block's embeddings: one per score for the sum, 16 for a head
    and 64 for transfer unless given.

    `loss` "auto" follows the labels; squared, logistic, cross_entropy and multi_logistic are for one kind of labels
    each, and `path/to/file.py:ClassName` is a user's own. `class_weights`: "balanced", or one for each class in the
    order of the sorted labels. `head_holder` names the silo that trains the head: by default the one with the labels,
    else the first; for transfer it is the silo with the labels. `alignment`, `alignment_weight` and `mean_samples` are
    for transfer, and explained at `Transfer`. `l2`, `l1` and `penalise_bias` are explained at `Regulariser`.

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
    loss: str = "auto"
    class_weights: Literal["balanced"] | tuple[float, ...] | None = None
    fusion: Literal["sum", "head", "transfer"] = "sum"
    outputs: int | None = None
    head: Literal["linear", "mlp"] = "linear"
    head_hidden: tuple[int, ...] = (64,)
    head_holder: str | None = None
    alignment: Literal["product", "distance"] = "product"
    alignment_weight: float = 0.01
    mean_samples: int | None = None
    l2: float = 0.0
    l1: float = 0.0
    penalise_bias: bool = True
    blocks: Mapping[str, BlockChanges] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        self._require_block()
        for key in ("outputs", "hidden", "head_hidden", "channels", "dense"):
            given = getattr(self, key)
            sizes = given if isinstance(given, tuple) else (1 if given is None else given,)
            if not sizes:
                raise ModelError(f"model.{key} is empty: give at least one size, or use a linear one")
            if min(sizes) < 1:
                raise ModelError(f"model.{key} must be at least 1, got {min(sizes)}: give the layer some units")
            if max(sizes) >= 2**63:
                raise ModelError(f"model.{key} = {given}: no block is that wide")
        if self.fusion == "sum" and self.head_holder is not None:
            raise ModelError(
                f"model.head_holder = '{self.head_holder}', but there is no head: set model.fusion = 'head'"
            )
        if isinstance(self.class_weights, tuple):
            require_class_weights(self.class_weights)
        elif self.class_weights not in (None, "balanced"):
            raise ModelError(
                f"model.class_weights = {self.class_weights!r}: give 'balanced', or a list with one weight per class"
            )
        Regulariser(l2=self.l2, l1=self.l1)  # refuses what is not a weight
        require_transfer(self.alignment, self.alignment_weight, self.mean_samples)

    def _require_block(self) -> None:
        for what, name, names in (("block", self.block, BLOCK_NAMES), ("loss", self.loss, LOSS_NAMES)):
            if not is_own(name) and name not in names:
                hint = meant(name, names)
                raise ModelError(
                    f"unknown {what} {name!r} in model.{what}: {f'{hint}Choose' if hint else 'choose'} among "
                    f"{', '.join(names)}, or name your own class as path/to/file.py:ClassName"
                )
        for key, allowed in (("activation", ("relu", "tanh", "sigmoid")), ("norm", ("group", "batch"))):
            if (given := getattr(self, key)) not in allowed:
                words = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
                raise ModelError(f"unknown {key} {given!r} in model.{key}: choose {words}")


def require_transfer(alignment: str, weight: float, mean_samples: int | None) -> None:
    """Refuse what is no way to tie the embeddings of two silos together."""
    if alignment not in ("product", "distance"):
        raise ModelError(f"model.alignment = {alignment!r}: choose 'product' or 'distance'")
    if not 0 <= weight < float("inf"):
        raise ModelError(f"model.alignment_weight = {weight}: gamma must be a finite number of at least 0")
    if mean_samples is not None and mean_samples < 1:
        raise ModelError(f"model.mean_samples = {mean_samples}: draw at least 1 sample, or leave it out for all")


def require_class_weights(weights: tuple[float, ...]) -> None:
    for weight in weights:
        if isinstance(weight, bool) or not 0 < weight < float("inf"):
            raise ModelError(f"model.class_weights has {weight}: give finite numbers above 0; 1 changes nothing")
    if len(weights) < 2:
        raise ModelError("model.class_weights needs one weight per class, two at least: give a list, or 'balanced'")
