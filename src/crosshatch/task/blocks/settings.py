"""What a config may say about a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from crosshatch.errors import ModelError


@final
@dataclass(frozen=True)
class BlockSettings:
    """One block's kind and sizes; each kind reads what concerns it.

    `block`: linear, mlp, cnn, lstm, resnet18 or `path/to/file.py:ClassName`. `hidden`: units of the MLP's layers or of
    the LSTM; None is the block's default, (64,) and 16. `channels`: filters of the CNN, first width of the ResNet.
    `dense`: units of the CNN's dense layer. `zero_init`: whether the output layer starts at zero; None means yes for
    linear and no for the others. `steps`: points in time that an LSTM folds a table's columns into. `arguments`:
    keyword arguments for a class of the user's own.
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

    def __post_init__(self) -> None:
        sizes = [("hidden", units) for units in self.hidden or ()]
        for name, size in [*sizes, ("channels", self.channels), ("dense", self.dense)]:
            if size < 1:
                raise ModelError(f"model.{name} must be at least 1, got {size}: give the layer some units")
        if self.hidden == ():
            raise ModelError("model.hidden is empty: give at least one size, or use block = 'linear'")
        if self.activation not in ("relu", "tanh", "sigmoid"):
            raise ModelError(
                f"unknown activation {self.activation!r} in model.activation: choose relu, tanh or sigmoid"
            )
        if self.norm not in ("group", "batch"):
            raise ModelError(f"unknown norm {self.norm!r} in model.norm: choose group or batch")
