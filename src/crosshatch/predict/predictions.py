"""Scores with their meaning: probabilities and classes, or predicted values."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from torch import Tensor

from crosshatch.data.dataset import Array
from crosshatch.predict.model_shape import CommonShape
from crosshatch.task.losses import Loss, predicted_classes


@dataclass(frozen=True)
class Predictions:
    """What a model says of rows: `ids` (n,), `scores` (n, c), and what follows from them.

    Two classes: `probabilities` (n,) are those of the class `positive`. Several: (n, classes), in the order of `names`.
    `classes` (n,) are the predicted ones by name. Several labels: both are (n, labels), `names` are their columns, and
    `classes` say of each label whether it is predicted, 1 or 0. For regression both are None, and `values` (n,) are
    predicted: the scores themselves, unless the loss is a user's own. `notes` are what a user should know of the rows.
    """

    ids: Array
    scores: Array
    probabilities: Array | None
    classes: Array | None
    names: tuple[str, ...]
    positive: str | None
    values: Array | None = None
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> pl.DataFrame:
        """A table with the columns of the file that `crosshatch predict` writes."""
        columns: dict[str, Array] = {"id": self.ids}
        if self.probabilities is None or self.classes is None:
            assert self.values is not None
            return pl.DataFrame(columns | {"prediction": self.values})
        if self.positive is not None:
            columns |= {"score": self.scores[:, 0], "probability": self.probabilities}
        else:
            columns |= {f"score_{name}": self.scores[:, k] for k, name in enumerate(self.names)}
            columns |= {f"probability_{name}": self.probabilities[:, k] for k, name in enumerate(self.names)}
        if self.classes.ndim == 2:
            return pl.DataFrame(columns | {f"class_{name}": self.classes[:, k] for k, name in enumerate(self.names)})
        return pl.DataFrame(columns | {"class": self.classes})

    @property
    def csv(self) -> bytes:
        out = io.BytesIO()
        self.frame.write_csv(out)
        return out.getvalue()

    @staticmethod
    def joined(batches: Iterable[Predictions]) -> Predictions:
        """Those of several batches, at least one, as one."""
        several = list(batches)
        arrays: dict[str, Any] = {}
        for name in ("ids", "scores", "probabilities", "classes", "values"):
            found = [getattr(one, name) for one in several]
            arrays[name] = None if found[0] is None else np.concatenate(found)
        return replace(several[0], **arrays)


def interpret(common: CommonShape, loss: Loss, ids: Array, scores: Tensor) -> Predictions:
    numbers: Array = scores.cpu().numpy()
    if common.target == "regression":
        return Predictions(ids, numbers, None, None, (), None, loss.predict(scores).cpu().numpy())
    chosen = predicted_classes(loss, scores).cpu().numpy()
    names = chosen if common.target == "multilabel" else np.array(common.classes)[chosen]
    return Predictions(ids, numbers, loss.predict(scores).cpu().numpy(), names, common.classes, common.positive)
