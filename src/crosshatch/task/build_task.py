"""From section [model] and a federation's data to the task: blocks, fusion, loss and regulariser."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import torch
from torch import nn

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ModelError
from crosshatch.seeds import torch_seed
from crosshatch.task.blocks import MLP, build_block
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared, require_target
from crosshatch.task.model_settings import BlockChanges, LossName, ModelSettings
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task

__all__ = ["ModelSettings", "build_task", "resolve_model"]

_LOSSES: dict[LossName, Loss] = {"squared": Squared(), "logistic": Logistic(), "cross_entropy": CrossEntropy()}
_BY_TARGET = {loss.target: name for name, loss in _LOSSES.items()}


def resolve_model(data: FederatedData, settings: ModelSettings) -> ModelSettings:
    """The settings with everything that follows from the data spelled out: loss, outputs, and the head's holder."""
    name = _BY_TARGET[data.target] if settings.loss == "auto" else settings.loss
    loss = _LOSSES[name]
    require_target(loss, data.target)
    silos = [silo.name for silo in data.silos]
    for silo in settings.blocks:
        if silo not in silos:
            raise ModelError(f"model.blocks names {_not_a_silo(silo, silos)}")
    if settings.fusion == "sum":
        outputs = settings.outputs if settings.outputs is not None else loss.scores(data.classes)
        return replace(settings, loss=name, outputs=outputs)
    holder = settings.head_holder if settings.head_holder is not None else data.label_silo or silos[0]
    if holder not in silos:
        raise ModelError(f"model.head_holder is {_not_a_silo(holder, silos)}")
    outputs = settings.outputs if settings.outputs is not None else 16
    return replace(settings, loss=name, outputs=outputs, head_holder=holder)


def build_task(data: FederatedData, settings: ModelSettings, *, seed: int, folder: Path | None = None) -> Task:
    """The task for these silos; initial weights come from `(seed, "initial", silo number)`.

    Files of a user's own blocks are looked for in `folder`, by default the current one.

    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
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
        chosen = _for_silo(settings, silo.name)
        outputs = chosen.outputs or settings.outputs
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


def _for_silo(settings: ModelSettings, silo: str) -> ModelSettings:
    changes = settings.blocks.get(silo, BlockChanges())
    allowed = sorted(BlockChanges.__annotations__)
    if unknown := [key for key in changes if key not in allowed]:
        raise ModelError(f"unknown key model.blocks.{silo}.{unknown[0]}: allowed are {', '.join(allowed)}")
    return replace(settings, **changes)


def _build_head(settings: ModelSettings, width: int, scores: int, *, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if settings.head == "linear":
            return nn.Linear(width, scores)
        return MLP((width,), scores, hidden=settings.head_hidden, activation=settings.activation)


def _not_a_silo(name: str, silos: list[str]) -> str:
    close = get_close_matches(name, silos, n=1)
    hint = f"did you mean '{close[0]}'? The silos are" if close else "the silos are"
    return f"'{name}', which is not a silo: {hint} {', '.join(silos)}"
