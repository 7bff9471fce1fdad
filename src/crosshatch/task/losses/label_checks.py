"""Which labels a loss can take."""

import torch
from torch import Tensor

from crosshatch.errors import DataError, ModelError
from crosshatch.task.losses.sample_losses import LOSSES
from crosshatch.task.losses.weighted_losses import ClassWeighted, Loss, SampleWeighted


def require_target(loss: Loss, target: str) -> None:
    """Refuse a loss whose labels are of another kind than the data's (such as "binary" or "regression")."""
    if loss.target != target:
        fitting = next(name for name, kind in LOSSES.items() if kind.target == target)
        raise ModelError(f"loss {loss.name!r} is for {loss.target} labels, the data has {target} ones: use {fitting!r}")


def require_labels(loss: Loss, y: Tensor, classes: int, which: str) -> None:
    """Refuse labels (n,) a loss cannot take; `which` says whose they are.

    Labels -1 and +1 are not taken for 0 and 1: whoever reads predictions would have to know of it.
    """
    if isinstance(loss, SampleWeighted):
        _require_weights(y, loss, which)
        y, loss = loss.labels(y), loss.loss
    if isinstance(loss, ClassWeighted):
        loss.scores(classes)  # refuses another number of classes
        loss = loss.loss
    several = loss.target == "multilabel"
    if y.shape[1:] != ((classes,) if several else ()):
        takes = f"{classes} zeros and ones" if several else "one number"
        raise DataError(
            f"labels of {which} are {' x '.join(map(str, y.shape))}, loss {loss.name!r} takes {takes} per sample: "
            "use another loss, or correct them"
        )
    if loss.target == "regression":
        fits, wanted = torch.isfinite(y), "finite numbers: correct it or take the sample out"
    elif loss.target in ("binary", "multilabel"):
        signs = bool(((y == -1) | (y == 1)).all())
        fits, wanted = (y == 0) | (y == 1), f"0 or 1: {'give (y + 1) / 2' if signs else 'use another loss or code'}"
    else:
        loss.scores(classes)  # refuses fewer than two
        if y.is_floating_point():
            kind = str(y.dtype).removeprefix("torch.")
            raise DataError(f"labels of {which} are of type {kind}, loss {loss.name!r} takes int64: give y.long()")
        fits, wanted = (y >= 0) & (y < classes), f"0 to {classes - 1}, the data has {classes} classes: correct it"
    if not bool(fits.all()):
        place = torch.nonzero(~fits)[0]
        row, found = int(place[0]), y[tuple(place)].item()
        raise DataError(f"the label of {which[:-1]} {row} is {found:g}, loss {loss.name!r} takes {wanted}")


def _require_weights(y: Tensor, loss: SampleWeighted, which: str) -> None:
    if y.dim() != 2 or y.shape[1] < 2:
        raise DataError(
            f"labels of {which} are {' x '.join(map(str, y.shape))}, a loss with sample weights takes each label and "
            "its weight beside it: use with_sample_weights, or the loss itself"
        )
    weights = y[:, -1]
    bad = torch.nonzero(~((weights >= 0) & (weights <= loss.largest)))  # NaN is neither
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"the weight of {which[:-1]} {row} is {weights[row].item():g}: weights are from 0 to the largest, "
            f"{loss.largest:g}, correct one of them"
        )
