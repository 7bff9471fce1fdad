"""Whether blocks and heads fit the samples, the loss and each other: tried out before anything is trained.

Of modules that are with another party only the widths are looked at.
"""

from collections.abc import Mapping
from typing import NoReturn

import torch
from torch import Tensor, nn

from crosshatch.errors import ModelError
from crosshatch.task.outputs import Promise, expect
from crosshatch.task.probe import ROWS, first_outputs, refuse_random, try_out


class Elsewhere(nn.Module):
    """A module of which only the number of outputs per sample is known here.

    It computes nothing, and has no parameters but those that it `keeps` for others, as a hub does.

    >>> sum(parameter.numel() for parameter in Elsewhere(4).parameters())
    0
    """

    def __init__(self, width: int, keeps: Mapping[str, nn.Parameter] | None = None) -> None:
        super().__init__()
        if width < 0:
            raise ModelError(f"embeddings of width {width}: a silo has some numbers per sample, or none, correct it")
        self.width = width
        for name, parameter in (keeps or {}).items():
            self.register_parameter(name, parameter)

    def forward(self, x: Tensor) -> NoReturn:  # noqa: ARG002 - a module's call
        raise ModelError(
            f"a module with {self.width} outputs is with another party, which alone computes with it: take the outputs "
            "from there, or give the module itself"
        )


def refuse_modules(place: str, module: nn.Module) -> None:
    """Refuse running statistics, scripts, and parameters without a shape yet or that are not floating-point numbers."""
    if any(isinstance(m, torch.jit.ScriptModule) for m in module.modules()):
        raise ModelError(
            f"{place} is scripted or traced (torch.jit) and cannot be run with other weights than its own: give the "
            "module it was made from"
        )
    if any(isinstance(parameter, nn.parameter.UninitializedParameter) for parameter in module.parameters()):
        raise ModelError(f"{place} has parameters without a shape (a Lazy layer): give its sizes, or run it once first")
    for name, parameter in module.named_parameters():
        if not parameter.is_floating_point():
            raise ModelError(
                f"{place} has a parameter '{name}' of {str(parameter.dtype).removeprefix('torch.')}: parameters are "
                "averaged, so they must be floating-point numbers; register it as a buffer"
            )
    if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules()):
        raise ModelError(
            f"{place} has BatchNorm, whose running statistics are neither averaged nor shared: use GroupNorm"
        )


def block_outputs(silo: str, block: nn.Module, x: Tensor) -> Tensor:
    """A block's outputs (2, e) for the first two of its silo's samples x (n, ...), or a ModelError."""
    if isinstance(block, Elsewhere):
        return x.new_zeros(len(x[:2]), block.width)
    place = f"block of silo '{silo}'"
    refusal = f"{place} does not take samples of shape {tuple(x.shape[1:])}: {{reason}}"
    out = first_outputs(Promise(place), block, x[:2], refusal)
    if not out.requires_grad:
        raise ModelError(
            f"outputs of the {place} do not depend on its parameters, so it cannot learn: "
            "take out detach() and no_grad()"
        )
    return out


def check_block(silo: str, block: nn.Module, x: Tensor, width: int) -> None:
    """Refuse a block that does more than turn samples x (n, ...) into rows; its outputs are checked from now on."""
    if isinstance(block, Elsewhere):
        return
    promise = Promise(f"block of silo '{silo}'", width)
    try_out(promise, block, x)
    expect(block, promise)


def check_head(head: nn.Module, embeddings: Tensor, scores: int) -> None:
    """Refuse a head that does not make this number of scores of embeddings (n, all e); it is checked from now on."""
    if isinstance(head, Elsewhere):
        return
    width = embeddings.shape[1]
    refusal = (
        f"the head does not take {width} embedding numbers (all silos together; {{reason}}): give it {width} "
        "inputs, change model.outputs, or let model.head build one that fits"
    )
    out = first_outputs(Promise("the head"), head, embeddings, refusal)
    if out.shape[1] != scores:
        raise ModelError(
            f"the head returns {tuple(out.shape[1:])} scores per sample, the loss needs {scores}: give it {scores} "
            "outputs, or let model.head build one that fits"
        )
    promise, draw = Promise("the head", scores), torch.Generator().manual_seed(0)
    trial = torch.randn(ROWS, width, generator=draw).to(embeddings)
    try_out(promise, head, trial)
    refuse_random(promise, head, trial)
    expect(head, promise)
