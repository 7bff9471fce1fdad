"""The model files of a run: weights and buffers, and what prediction needs beside them; one pair per silo."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from safetensors.torch import save
from torch import Tensor, nn

from crosshatch.own_parts import is_own, moved
from crosshatch.predict.model_shape import COMMON, HEAD, ROUND, CommonShape, HeadShape, SiloShape, Trained
from crosshatch.report.measures import COST_KEYS
from crosshatch.runs.best_round import BestRound
from crosshatch.runs.config import Config
from crosshatch.runs.files import write_whole, writing
from crosshatch.runs.own_parts.part_files import PARTS, PartFiles
from crosshatch.runs.trained.used_versions import versions
from crosshatch.seeds import torch_seed
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import for_silo, has_no_embedding
from crosshatch.task.model_settings import BlockChanges
from crosshatch.trees import Layout


def write_model(
    folder: Path,
    simulator: Simulator,
    config: Config,
    files: PartFiles,
    row: Mapping[str, Any],
    best: BestRound | None = None,
    *,
    weights: tuple[Tensor, ...] | None = None,
    done: int | None = None,
) -> None:
    """One safetensors and one JSON file per silo, head.safetensors where there is a head, and model.json.

    The model is that of now, of which `row` is the last evaluation, or that of the `best` round. It names the copies
    of `files`, which lie beside the folder. Others that have trained it give their `weights` and the rounds `done`.
    """
    now = simulator.weights if weights is None else weights
    task, flat = simulator.task, now if best is None else best.weights
    trained = _trained(simulator, config, files, row, best, simulator.round if done is None else done)
    at = {ROUND: str(trained.round)}
    with writing(folder):
        folder.mkdir(exist_ok=True)
        for j, (silo, one) in enumerate(zip(task.names, flat, strict=True)):
            block, head = task.split(j, one)
            write_whole(folder / f"{silo}.safetensors", save(_tensors(task.blocks[j], task.layouts[j], block), at))
            write_whole(folder / f"{silo}.json", _text(_silo_shape(simulator, config, files, j)))
            if head is not None and task.head is not None and task.head_layout is not None:
                write_whole(folder / f"{HEAD}.safetensors", save(_tensors(task.head, task.head_layout, head), at))
        # last: a folder with this file is complete
        write_whole(folder / f"{COMMON}.json", _text(_common_shape(simulator, config, files, trained)))


def _trained(
    simulator: Simulator, config: Config, files: PartFiles, row: Mapping[str, Any], best: BestRound | None, done: int
) -> Trained:
    data = simulator.data
    if best is not None and best.row is not None:
        row = best.row
        done = row["round"]
    counts = {"training": data.y_train, "validation": data.y_validation, "test": data.y_test}
    named = {config.model.loss, *(for_silo(config.model, silo.name).block for silo in data.silos)}
    own = {files.copy_of(name.rpartition(":")[0]) for name in named if is_own(name)}
    return Trained(
        round=done,
        chosen_by=None if best is None else best.metric,
        figures={name: row[name] for name in row if name not in COST_KEYS} if row["round"] == done else {},
        rows={of: len(labels) for of, labels in counts.items() if labels is not None},
        versions=versions(),
        own_files={copy: files.hashes[copy.removeprefix(f"{PARTS}/")] for copy in sorted(own)},
    )


def _tensors(module: nn.Module, layout: Layout, flat: Tensor) -> dict[str, Tensor]:
    """A module's parameters under torch's names, and its buffers."""
    named = layout.views(flat) | dict(module.named_buffers())
    # standard order in memory: convolutions lie channels-last in the flat vector
    return {key: tensor.contiguous().clone() for key, tensor in named.items()}


def _text(shape: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(shape), indent=1) + b"\n"


def _silo_shape(simulator: Simulator, config: Config, files: PartFiles, number: int) -> SiloShape:
    silo = simulator.data.silos[number]
    assert silo.encoder is not None  # a run's data is prepared by `federate`
    settings, silos = for_silo(config.model, silo.name), config.federation.silos
    own_ids = [one.id for one in silos if one.name == silo.name] if isinstance(silos, tuple) else []
    given = {key: getattr(settings, key) for key in BlockChanges.__annotations__}
    block, outputs = {key: value for key, value in given.items() if value is not None}, settings.outputs
    assert outputs is not None  # the run's config has everything spelled out
    return SiloShape(
        silo=silo.name,
        id=next(filter(None, own_ids), config.data.id),
        preparation=silo.encoder,
        block=cast(BlockChanges, block | {"block": moved(settings.block, files.copy_of)}),
        input_shape=tuple(silo.train.shape[1:]),
        outputs=0 if has_no_embedding(config.model, tuple(silo.train.shape[1:])) else outputs,
        seed=torch_seed(config.run.seed, "initial", number),
    )


def _common_shape(simulator: Simulator, config: Config, files: PartFiles, trained: Trained) -> CommonShape:
    data, model = simulator.data, config.model
    assert model.loss != "auto"
    head, silos = None, tuple(silo.name for silo in data.silos)
    if model.fusion == "transfer":
        assert model.head_holder is not None
        assert model.outputs is not None
        silos = tuple(name for name in silos if name != model.head_holder)
        width = for_silo(model, silos[0]).outputs or model.outputs
        head = HeadShape("class_mean", (), model.activation, width, 1, model.head_holder)
    elif model.fusion == "head":
        assert model.head_holder is not None
        shapes = ((silo.name, tuple(silo.train.shape[1:])) for silo in data.silos)
        widths = [0 if has_no_embedding(model, shape) else for_silo(model, name).outputs or 0 for name, shape in shapes]
        scores = simulator.task.loss.scores(data.classes)
        head = HeadShape(model.head, model.head_hidden, model.activation, sum(widths), scores, model.head_holder)
    return CommonShape(
        silos=silos,
        target=data.target,
        classes=data.class_names,
        positive=data.class_names[1] if data.target == "binary" else None,
        loss=moved(model.loss, files.copy_of),
        precision=config.run.precision,
        head=head,
        trained=trained,
    )
