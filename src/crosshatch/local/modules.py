"""Modules at work under weights from outside: a copy for each thread, parameters as views of a flat vector."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.func import functional_call

from crosshatch.task.outputs import checked
from crosshatch.task.task import Task
from crosshatch.trees import Layout

_LOCAL = threading.local()
_LAYOUTS: WeakKeyDictionary[nn.Module, tuple[Layout, tuple[bool, ...]]] = WeakKeyDictionary()


def call(module: nn.Module, flat: Tensor, x: Tensor) -> Tensor:
    """The module's outputs for x, its parameters those of the flat vector (p,)."""
    return call_with(module, _layout(module)[0].views(flat), x)


def call_with(module: nn.Module, parameters: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """The module's outputs for x under these parameters."""
    return checked(module, functional_call(_own(module), dict(parameters), (x,)), x)


def leaves(module: nn.Module, flat: Tensor) -> dict[str, Tensor]:
    """The parameters in a flat vector (p,) as leaves of their own, so that their gradients are not put together."""
    layout, trained = _layout(module)
    views = layout.views(flat.detach()).items()
    return {name: view.requires_grad_(mine) for (name, view), mine in zip(views, trained, strict=True)}


def _layout(module: nn.Module) -> tuple[Layout, tuple[bool, ...]]:
    """A module's layout, and which of its parameters are trained; looked up once, since templates do not change."""
    if module not in _LAYOUTS:
        _LAYOUTS[module] = Layout.of(module), tuple(parameter.requires_grad for parameter in module.parameters())
    return _LAYOUTS[module]


def _own(module: nn.Module) -> nn.Module:
    """This thread's copy of the module: a call swaps its parameters for a moment."""
    if threading.current_thread() is threading.main_thread():
        return module
    if not hasattr(_LOCAL, "copies"):
        _LOCAL.copies = WeakKeyDictionary()
    mine: nn.Module = _LOCAL.copies.get(module)
    if mine is None:
        mine = _LOCAL.copies[module] = copy.deepcopy(module)
    for its, template in zip(mine.modules(), module.modules(), strict=True):
        its.training = template.training
    return mine


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """The module in evaluation mode; afterwards every submodule is in the mode it was in."""
    modes = [(inner, inner.training) for inner in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for inner, mode in modes:
            inner.training = mode


def parameters_in(task: Task, silo: int, flat: Tensor) -> list[Tensor]:
    """A block's parameters as views of a silo's flat vector (p,), and the head in one piece if it is held here."""
    block, held = task.split(silo, flat)
    return [*task.layouts[silo].views(block).values(), *([] if held is None else [held])]


def gradients_of(outputs: Tensor, leaves: Sequence[Tensor], at_outputs: Tensor | None = None) -> list[Tensor | None]:
    """The gradient of each leaf, from that at the outputs; None where it is not trained, or nothing depends on it."""
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    found = iter(torch.autograd.grad(outputs, wanted, at_outputs, allow_unused=True))
    return [next(found) if leaf.requires_grad else None for leaf in leaves]
