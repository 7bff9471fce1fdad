"""From section [model] and a federation's data to the task: blocks, fusion, loss and regulariser.

A setting of [model] that nothing reads is refused: whoever gives one expects something of it.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType

from torch import Tensor, nn

from crosshatch.data.federated import FederatedData
from crosshatch.errors import DataError, ModelError, meant
from crosshatch.own_parts import is_own
from crosshatch.seeds import torch_seed
from crosshatch.task.blocks import ClassMean, build_block, build_head, without_features
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import (
    LOSSES,
    ClassWeighted,
    CrossEntropy,
    Logistic,
    Loss,
    SampleLoss,
    SampleWeighted,
    require_target,
)
from crosshatch.task.losses.find_loss import find_loss
from crosshatch.task.model_settings import BlockChanges, ModelSettings
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.task.tie import Tie
from crosshatch.transfer.objective import Transfer, require_signs, require_two_silos

_READ = {
    "linear": ("bias", "zero_init"),
    "mlp": ("hidden", "activation", "bias", "zero_init"),
    "cnn": ("channels", "dense", "zero_init"),
    "lstm": ("hidden", "steps", "zero_init"),
    "resnet18": ("channels", "norm", "zero_init"),
}
_OWN = ("arguments", "zero_init")
_OF_BLOCKS = tuple(key for key in BlockChanges.__annotations__ if key not in ("block", "outputs"))
_OF_HEADS = ("head", "head_hidden")
_OF_TRANSFER = ("alignment", "alignment_weight", "mean_samples")
__all__ = ["ModelSettings", "build_task", "resolve_model"]
_BY_TARGET = {loss.target: name for name, loss in reversed(LOSSES.items())}  # the first for each


def refuse_idle(settings: ModelSettings) -> None:
    """Refuse what is given, other than its default, and read by no block and no head."""
    standard = {field.name: getattr(ModelSettings(), field.name) for field in fields(settings)}
    given = [key for key in (*_OF_BLOCKS, *_OF_HEADS, *_OF_TRANSFER) if getattr(settings, key) != standard[key]]
    kinds = {settings.block, *(changes.get("block", settings.block) for changes in settings.blocks.values())}
    read = {key for kind in kinds for key in _read(kind)} | _read_by_head(settings)
    for key in given:
        if key in _OF_TRANSFER and settings.fusion != "transfer":
            raise ModelError(f"model.{key} is about transfer: set model.fusion = 'transfer', or leave it out")
        if key in _OF_HEADS and settings.fusion != "head":
            raise ModelError(f"model.{key} has no effect without a head: set model.fusion = 'head', or leave it out")
        if key not in (*read, *_OF_TRANSFER):
            raise ModelError(f"model.{key} has no effect {_on(key, sorted(kinds))}")
    for silo, changes in settings.blocks.items():
        kind = changes.get("block", settings.block)
        for key in changes:
            if key in _OF_BLOCKS and key not in _read(kind):
                raise ModelError(f"model.blocks.{silo}.{key} has no effect {_on(key, [kind])}")


def _read(kind: str) -> tuple[str, ...]:
    return _OWN if is_own(kind) else _READ[kind]


def _read_by_head(settings: ModelSettings) -> set[str]:
    if settings.fusion != "head":
        return set()
    return {"head", "head_hidden", "activation"} if settings.head == "mlp" else {"head"}


def _on(key: str, kinds: list[str]) -> str:
    if key == "head_hidden":
        return "on a linear head: set model.head = 'mlp', or leave it out"
    reading = [f"'{kind}'" for kind in _READ if key in _READ[kind]] or ["a class of your own, 'path/to/file.py:Name'"]
    name = "a block of your own" if is_own(kinds[0]) else f"block '{kinds[0]}'"
    remedy = " or ".join(reading)
    return f"on {name}: set model.block = {remedy}, or leave it out"


def resolve_model(data: FederatedData, settings: ModelSettings, *, folder: Path | None = None) -> ModelSettings:
    """The settings with everything that follows from the data spelled out: loss, outputs, and the head's holder."""
    name = _BY_TARGET[data.target] if settings.loss == "auto" else settings.loss
    plain = find_loss(name, folder=folder)
    require_target(plain, data.target)
    loss = _weighted(plain, data, settings)
    silos = [silo.name for silo in data.silos]
    refuse_idle(settings)
    for silo in settings.blocks:
        if silo not in silos:
            raise ModelError(f"model.blocks names {_not_a_silo(silo, silos)}")
        if data.silos[silos.index(silo)].train.shape[1:] == (0,):
            raise ModelError(f"model.blocks.{silo}: this silo has the labels and no columns, so no block: leave it out")
    if settings.fusion == "sum":
        outputs = settings.outputs if settings.outputs is not None else loss.scores(data.classes)
        return replace(settings, loss=name, outputs=outputs)
    if settings.fusion == "transfer":
        require_two_silos(len(silos))
        require_signs(loss)
    with_labels = data.label_silo or (silos[0] if data.alone is None else data.alone.silo)
    holder = with_labels if settings.head_holder is None else settings.head_holder
    if holder not in silos:
        raise ModelError(f"model.head_holder is {_not_a_silo(holder, silos)}")
    outputs = settings.outputs if settings.outputs is not None else 16 if settings.fusion == "head" else 64
    return replace(settings, loss=name, outputs=outputs, head_holder=holder)


def build_task(
    data: FederatedData, settings: ModelSettings, *, seed: int, folder: Path | None = None,
    elsewhere: Mapping[int, nn.Module] = MappingProxyType({}),
) -> Task:  # fmt: skip
    """The task for these silos; initial weights come from `(seed, "initial", silo number)`.

    Files of a user's own blocks and loss are looked for in `folder`, by default the current one. What stands for blocks
    that are `elsewhere`, by silo, takes their place.

    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
    >>> data = federate(load_dataset("wine"), FederationSettings(silos=2), seed=1)
    >>> task = build_task(data, ModelSettings(block="mlp", hidden=(8,)), seed=1)
    >>> task.loss, [layout.size for layout in task.layouts]
    (CrossEntropy(), [91, 83])
    """
    settings = resolve_model(data, settings, folder=folder)
    assert settings.outputs is not None
    assert settings.loss != "auto"
    loss = _weighted(find_loss(settings.loss, classes=data.classes, folder=folder), data, settings)
    blocks, width = [], 0
    for number, silo in enumerate(data.silos):
        chosen = for_silo(settings, silo.name)
        shape = tuple(silo.train.shape[1:])
        outputs = 0 if has_no_embedding(settings, shape) else chosen.outputs or settings.outputs
        width += outputs
        own_seed = torch_seed(seed, "initial", number)
        if number in elsewhere:
            blocks.append(elsewhere[number])
        elif shape == (0,):
            blocks.append(without_features(outputs))
        else:
            blocks.append(build_block(silo.name, shape, outputs, chosen, seed=own_seed, folder=folder))
    names = tuple(silo.name for silo in data.silos)
    fusion: Fusion = Sum()
    transfer: Tie | None = None
    if settings.fusion == "transfer":
        fusion, transfer = _class_mean(settings, names)
    elif settings.fusion == "head":
        module = build_head(settings, width, loss.scores(data.classes), seed=torch_seed(seed, "initial head"))
        fusion = Head(module, names.index(str(settings.head_holder)))
    regulariser = Regulariser(settings.l2, settings.l1, settings.penalise_bias)
    return Task(tuple(blocks), fusion, loss, regulariser, names, transfer=transfer)


def _class_mean(settings: ModelSettings, names: tuple[str, ...]) -> tuple[Head, Transfer]:
    """The class mean in the head's place; its numbers follow from its holder's block and samples."""
    holder = names.index(str(settings.head_holder))
    widths = [for_silo(settings, name).outputs or 0 for name in names]
    module = ClassMean(widths[1 - holder], low=sum(widths[: 1 - holder]))
    return Head(module, holder), Transfer(settings.alignment, settings.alignment_weight, settings.mean_samples)


def has_no_embedding(settings: ModelSettings, shape: tuple[int, ...]) -> bool:
    """Whether a silo with samples of this shape gives a head nothing; to a sum it adds zeros."""
    return settings.fusion != "sum" and shape == (0,)


def _weighted(loss: SampleLoss, data: FederatedData, settings: ModelSettings) -> Loss:
    """The loss with the weights of its classes and samples."""
    y, largest = (data.y_train[:, 0], float(data.y_train[:, -1].max())) if data.weighted else (data.y_train, None)
    weighted = _class_weighted(loss, y, data, settings)
    return weighted if largest is None else SampleWeighted(weighted, largest)


def _class_weighted(loss: SampleLoss, y: Tensor, data: FederatedData, settings: ModelSettings) -> SampleLoss:
    weights = settings.class_weights
    if weights is None:
        return loss
    if loss.target not in ("binary", "multiclass"):
        raise ModelError(
            f"model.class_weights: loss {loss.name!r} has no classes of which a sample has one: leave it out"
        )
    if not isinstance(loss, Logistic | CrossEntropy):
        raise ModelError(
            f"model.class_weights with loss {loss.name!r}: they are for the losses 'logistic' and "
            "'cross_entropy', leave them out and let the loss itself weigh classes"
        )
    chosen = ClassWeighted(loss, balanced_weights(y, data.classes) if weights == "balanced" else weights)
    chosen.scores(data.classes)  # refuses another number of weights
    return chosen


def balanced_weights(y: Tensor, classes: int) -> tuple[float, ...]:
    """The mean number of samples per class over that of each class.

    >>> import torch
    >>> balanced_weights(torch.tensor([0, 0, 0, 1]), 2)
    (0.6666666666666666, 2.0)
    """
    counts: list[int] = y.long().bincount(minlength=classes).tolist()
    if 0 in counts:
        raise DataError(
            f"model.class_weights = 'balanced': class {counts.index(0)} has no training samples: give a list of "
            "weights, or more samples"
        )
    return tuple(len(y) / (classes * count) for count in counts)


def for_silo(settings: ModelSettings, silo: str) -> ModelSettings:
    changes = settings.blocks.get(silo, BlockChanges())
    allowed = sorted(BlockChanges.__annotations__)
    if unknown := [key for key in changes if key not in allowed]:
        raise ModelError(f"unknown key model.blocks.{silo}.{unknown[0]}: allowed are {', '.join(allowed)}")
    return replace(settings, **changes)


def _not_a_silo(name: str, silos: list[str]) -> str:
    hint = meant(name, silos)
    return f"'{name}', which is not a silo: {f'{hint}The' if hint else 'the'} silos are {', '.join(silos)}"
