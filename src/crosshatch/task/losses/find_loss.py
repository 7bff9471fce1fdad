"""A loss by its name: one of ours, or from a user's own file and then compared with what autograd makes of it."""

from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from crosshatch.data.dataset import Target
from crosshatch.errors import ModelError
from crosshatch.own_parts import PartKind, building, find_part, is_own, require_methods, short_name
from crosshatch.task.losses import LOSSES, MultiLogistic, SampleLoss

_LOSS = PartKind("a loss", "model.loss", ModelError)
_METHODS = {
    "scores": ("classes",),
    "value": ("scores", "y"),
    "derivative": ("scores", "y"),
    "predict": ("scores",),
}
_ROWS = 6


def find_loss(name: str, *, classes: int | None = None, folder: Path | None = None) -> SampleLoss:
    """The loss of this name, or in this file; with a number of `classes` one in a file is tried out."""
    if name == MultiLogistic.name:
        return MultiLogistic(classes or 1)
    if not is_own(name):
        return LOSSES[name]
    found = find_part(name, _LOSS, folder=folder)
    if not isinstance(found, type):
        raise ModelError(f"{name} is not a class: a loss is one, that is built without arguments")
    require_methods(found, name, _LOSS, _METHODS)
    if getattr(found, "target", None) not in get_args(Target):
        raise ModelError(
            f"{name} does not say for which labels it is: write target = 'binary', 'multiclass', 'multilabel' or "
            "'regression' in the class"
        )
    with building(name, _LOSS):
        loss: Any = found()
    if not isinstance(getattr(loss, "name", None), str):
        setattr(found, "name", short_name(name))  # noqa: B010 - any class
    if classes is not None:
        with building(name, _LOSS, done="tried out"):
            _try_out(loss, name, classes)
    made: SampleLoss = loss
    return made


def _try_out(loss: SampleLoss, name: str, classes: int) -> None:
    """The derivative is that of the value, sample by sample, with any dimensions in front."""
    count = loss.scores(classes)
    several = loss.target in ("multiclass", "multilabel")
    wanted = classes if several else 1
    if count != wanted:
        raise ModelError(f"scores({classes}) of {name} is {count!r}: {loss.target} labels have {wanted} per sample")
    number = torch.arange(2 * _ROWS * count, dtype=torch.float64)
    scores = torch.sin(number + 1).mul(2).reshape(2, _ROWS, count)
    y = _labels(loss.target, classes)
    leaf = scores.clone().requires_grad_()
    values = loss.value(leaf, y)
    _require_shape(f"value of {name}", values, (2, _ROWS), "one number per sample")
    by_autograd = torch.autograd.grad(values.sum(), leaf)[0]
    derivative = loss.derivative(scores, y)
    _require_shape(f"derivative of {name}", derivative, (2, _ROWS, count), "one number per score")
    if not torch.allclose(derivative, by_autograd, rtol=1e-6, atol=1e-8):
        worst = int((derivative - by_autograd).abs().argmax())
        label = y.reshape(2 * _ROWS, -1)[worst // count].tolist()
        given = [round(one, 3) for one in scores.reshape(-1, count)[worst // count].tolist()]
        raise ModelError(
            f"derivative of {name} is not that of its value: for the scores {given} and the label "
            f"{', '.join(map('{:g}'.format, label))} it is {derivative.reshape(-1)[worst].item():.4g} "
            f"and should be {by_autograd.reshape(-1)[worst].item():.4g}"
        )
    alone = loss.value(scores[0], y[0])
    _require_shape(f"value of {name}", alone, (_ROWS,), "one number per sample")
    if not torch.allclose(alone, values[0]):
        raise ModelError(f"value of {name} depends on the samples beside: work on the last dimensions alone")
    due = (2, _ROWS, count) if several else (2, _ROWS)
    _require_shape(f"predict of {name}", loss.predict(scores), due, f"what {loss.target} labels are compared with")


def _labels(target: str, classes: int) -> Tensor:
    number = torch.arange(2 * _ROWS).reshape(2, _ROWS)
    if target == "multiclass":
        return number % classes
    if target == "multilabel":
        return ((number.unsqueeze(-1) + torch.arange(classes)) % 3 == 0).double()
    return (number % 2).double() if target == "binary" else torch.cos(number.double())


def _require_shape(what: str, found: object, shape: tuple[int, ...], meaning: str) -> None:
    if not isinstance(found, Tensor) or tuple(found.shape) != shape:
        got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ModelError(f"{what} returned {got} where {shape} is due, {meaning}: correct it there")
