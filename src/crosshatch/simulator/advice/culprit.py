"""Who made numbers that are not finite: the data, a block, or training itself. Only asked once it has happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData, Split
from crosshatch.local.forward import forward
from crosshatch.task.task import Task
from crosshatch.theory.central_loss import CentralLoss

_ROWS = 1024  # training samples whose gradient is looked at
_PIECE = 256
_ORDINARY = 1e4  # weights this many times as large as at the start have run away


def find_culprit(data: FederatedData, task: Task, weights: Sequence[Tensor]) -> str | None:
    """What is to blame and what to do about it, or None where training under these weights diverged."""
    kinds: dict[str, Split] = {"training": "train", "test": "test"}
    for which, kind in (kinds if data.y_validation is None else kinds | {"validation": "validation"}).items():
        xs = [silo.rows(kind) for silo in data.silos]
        for silo, x in zip(data.silos, xs, strict=True):
            row = _first_bad(x)
            if row is not None:
                return f"silo '{silo.name}' has features of {which} sample {row} that are NaN or infinite: correct them"
        for tried in _candidates(task, weights):
            found = _by_module(task, tried, xs, which) if len(xs[0]) else None
            if found is not None:
                return found
    return _by_gradient(data, task)


def _candidates(task: Task, weights: Sequence[Tensor]) -> list[Sequence[Tensor]]:
    """The weights at the start, and those of now if they are of an ordinary size: NaN is then the block's doing."""
    start = task.initial()
    size = max([1.0, *(float(w.abs().max()) for w in start if w.numel())])
    ordinary = all(bool((w.abs() <= _ORDINARY * size).all()) for w in weights)
    return [start, weights] if ordinary else [start]


def _by_module(task: Task, weights: Sequence[Tensor], xs: Sequence[Tensor], which: str) -> str | None:
    embeddings = []
    for j, (silo, w, x) in enumerate(zip(task.names, weights, xs, strict=True)):
        out = forward(task, j, w, x, keep=False, threads=1)[0]
        row = _first_bad(out)
        if row is not None:
            return _blame(f"the block of silo '{silo}' returns NaN or infinity for {which} sample {row}")
        embeddings.append(out)
    head = task.head_in(weights)
    if head is not None:
        with torch.no_grad():
            row = _first_bad(task.combine(embeddings, head))
        if row is not None:
            return _blame(f"the head returns NaN or infinity for {which} sample {row}")
    return None


def _by_gradient(data: FederatedData, task: Task) -> str | None:
    """Outputs may be finite where their derivative is not: a root at 0, a norm of zeros."""
    central = CentralLoss(data, task)
    for low in range(0, min(_ROWS, len(data.y_train)), _PIECE):
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            gradient = central.gradient(central.start(), central.rows[low : low + _PIECE])
        for silo, where in zip(task.names, central.slices, strict=True):
            if not bool(torch.isfinite(gradient[where]).all()):
                return _blame(f"the block of silo '{silo}' has a gradient that is NaN or infinite at the start")
    return None


_blame: Callable[[str], str] = "{}: look at its logarithms, divisions, roots and exponentials".format


def _first_bad(values: Tensor) -> int | None:
    """The first row (of dimension 0) with a number that is not finite."""
    if not len(values):
        return None
    bad = ~torch.isfinite(values.reshape(len(values), -1)).all(dim=1)
    return int(bad.nonzero()[0]) if bool(bad.any()) else None
