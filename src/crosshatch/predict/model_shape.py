"""What a trained model is, beside its numbers: one description per silo, and one of what all have in common.

They are written as JSON into the folder `model` of a run, SILO.json and model.json; a party needs those two and its
own weights. Nothing in a silo's description is about another silo.
"""

from pathlib import Path
from typing import Literal

import msgspec
import torch
from torch import nn

from crosshatch.data.dataset import Target
from crosshatch.data.encoding.encode_part import Encoder
from crosshatch.task.blocks import ClassMean, build_block, build_head, without_features
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import SampleLoss
from crosshatch.task.losses.find_loss import find_loss
from crosshatch.task.model_settings import BlockChanges, ModelSettings

COMMON = "model"
HEAD = "head"
"""How the files beside those of the silos are called; no silo may be called so."""
ROUND = "round"
"""Under this key a file of weights says after which round they were so."""


class SiloShape(msgspec.Struct, frozen=True):
    """One silo's part: how it prepares its rows, and its block.

    `id` is the column of its files that identifies rows. `input_shape` is that of a prepared sample; `seed` is torch's
    when the block was made, for what its constructor draws and its weights do not hold.
    """

    silo: str
    id: str | None
    preparation: Encoder
    block: BlockChanges
    input_shape: tuple[int, ...]
    outputs: int
    seed: int

    def build(self, run: Path) -> nn.Module:
        """The block, with weights that are not those of the training; its file may be in the directory of the run."""
        if self.input_shape == (0,):
            return without_features(self.outputs)
        settings = ModelSettings(**self.block)
        return build_block(self.silo, self.input_shape, self.outputs, settings, seed=self.seed, folder=run)


class HeadShape(msgspec.Struct, frozen=True):
    """The head and who trained it: it takes `inputs` numbers, all embeddings side by side, and gives `scores`.

    A "class_mean" is that of a transfer task: its holder's part is done with it, only the other silo's is needed.
    """

    kind: Literal["linear", "mlp", "class_mean"]
    hidden: tuple[int, ...]
    activation: str
    inputs: int
    scores: int
    holder: str

    def build(self) -> nn.Module:
        if self.kind == "class_mean":
            return ClassMean(self.inputs)
        settings = ModelSettings(fusion="head", head=self.kind, head_hidden=self.hidden, activation=self.activation)
        return build_head(settings, self.inputs, self.scores, seed=0)


class Trained(msgspec.Struct, frozen=True):
    """How far a model was trained: `chosen_by` is the metric on validation rows that chose the `round`, if one did.

    `figures` were measured after that round, where it was evaluated; `rows` counts those of training, validation and
    test. `own_files` has the sha256 of each file of a user's own that the model needs.
    """

    round: int
    chosen_by: str | None
    figures: dict[str, float]
    rows: dict[str, int]
    versions: dict[str, str]
    own_files: dict[str, str]


class CommonShape(msgspec.Struct, frozen=True):
    """What all silos agree on: their order, the classes as the labels name them, the loss and the fusion.

    `silos` are those that a score needs: after transfer the one without labels alone.

    `positive` is the class that scores and probabilities speak of where there are two. `head` is None for a sum.
    """

    silos: tuple[str, ...]
    target: Target
    classes: tuple[str, ...]
    positive: str | None
    loss: str
    precision: Literal["float32", "float64"]
    head: HeadShape | None
    trained: Trained

    def build(self) -> Fusion:
        if self.head is None:
            return Sum()
        holder = 0 if self.head.kind == "class_mean" else self.silos.index(self.head.holder)
        return Head(self.head.build().to(self.dtype), holder)

    def find_loss(self, run: Path) -> SampleLoss:
        """The loss; its file may be in the directory of the run."""
        return find_loss(self.loss, folder=run)

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.precision == "float64" else torch.float32
