"""What was understood of a config and its files, without training: columns, ids, classes, rows, model, a round."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from crosshatch.data.build import load_dataset
from crosshatch.data.encoding.encode_table import CategoricalColumn, NumericColumn, TableEncoder
from crosshatch.data.federated import FederatedData, SiloData, unweighted_labels
from crosshatch.data.looking.seen import FileSeen
from crosshatch.data.notes import CHOSEN, DOUBTFUL, Note, by_weight
from crosshatch.runs.choosing.auto import intervals
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import algorithm_name
from crosshatch.runs.prepare import Prepared, assemble, try_rounds
from crosshatch.simulator.assemble import require_device
from crosshatch.task.task import Task


@dataclass(frozen=True)
class SiloCheck:
    """A silo: its clients, its raw columns and what each of them becomes, the inputs and weights of its block."""

    name: str
    clients: int
    columns: dict[str, str]
    inputs: str
    block: str
    parameters: int


@dataclass(frozen=True)
class ClassCheck:
    """A class and how many rows of each kind it has."""

    name: str
    training: int
    validation: int
    test: int


@dataclass(frozen=True)
class RoundCheck:
    """What a round sends, on average over an outermost interval: bytes and messages per kind of link, seconds."""

    bytes: float
    messages: float
    seconds: float
    links: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class ConfigCheck:
    """Everything `crosshatch check` says; `notes` are in order of weight."""

    name: str
    algorithm: str
    tiers: str
    files: tuple[FileSeen, ...]
    silos: tuple[SiloCheck, ...]
    rows: dict[str, int]
    target: str
    positive: str
    classes: tuple[ClassCheck, ...]
    model: str
    head_parameters: int
    round: RoundCheck | None
    notes: tuple[Note, ...]

    @property
    def warnings(self) -> tuple[Note, ...]:
        """What is probably not as it was meant."""
        return tuple(note for note in self.notes if note.is_warning)


def make_check(config: Config, *, folder: Path | None = None) -> ConfigCheck:
    """Read the data of a config, divide it, build the model and let one round be simulated; nothing is written.

    >>> import tempfile
    >>> from crosshatch import read_config
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "wine.toml")
    ...     written = path.write_text('data = {name = "wine"}')
    ...     found = make_check(read_config(path, ["algorithm.name=fedbcd", "run.rounds=20", "run.threads=1"]))
    >>> found.rows, [silo.parameters for silo in found.silos]
    ({'training': 142, 'validation': 0, 'test': 36}, [24, 21])
    """
    require_device(config.run.device, "run.device")
    dataset = load_dataset(config.data, folder, federation=config.federation)
    ready, data, task = assemble(config, dataset)
    config, algorithm = ready.config, ready.simulator.algorithm
    cost, notes = _round(ready)
    notes += [Note("clients", CHOSEN, "", text) for text in ready.client_notes]
    validation = 0 if data.y_validation is None else len(data.y_validation)
    head = task.head
    model = config.model
    fusion = "embeddings are added up" if model.fusion == "sum" else f"{model.fusion}, held by '{model.head_holder}'"
    return ConfigCheck(
        name=config.name,
        algorithm=algorithm_name(config.algorithm),
        tiers="" if config.algorithm.central else str(algorithm.topology),
        files=dataset.files,
        silos=tuple(_silo(silo, task, number) for number, silo in enumerate(data.silos)),
        rows={"training": len(data.y_train), "validation": validation, "test": len(data.y_test)},
        target=data.target,
        positive=data.class_names[1] if data.target == "binary" else "",
        classes=_classes(data),
        model=f"{model.block} blocks, {fusion}, {model.loss} loss",
        head_parameters=0 if head is None else _parameters(head),
        round=cost,
        notes=tuple(by_weight([*data.notes, *notes])),
    )


def _silo(silo: SiloData, task: Task, number: int) -> SiloCheck:
    columns = {}
    for column in silo.encoder.columns if isinstance(silo.encoder, TableEncoder) else ():
        columns[column.name] = _becomes(column)
    inputs = " x ".join(str(size) for size in silo.train.shape[1:])
    block = task.blocks[number]
    return SiloCheck(silo.name, silo.clients, columns, inputs, type(block).__name__, _parameters(block))


def _becomes(column: NumericColumn | CategoricalColumn) -> str:
    """What a column is to the block."""
    extra = " and 1 for missing" if column.indicator else ""
    if isinstance(column, CategoricalColumn):
        return f"{len(column.categories)} of 0/1{extra}"
    scaled = (column.centre, column.scale) != (0.0, 1.0)
    return f"{'standardised' if scaled else 'as it is'}{extra}"


def _classes(data: FederatedData) -> tuple[ClassCheck, ...]:
    if data.target == "regression":
        return ()
    trained = unweighted_labels(data)
    validated = trained[:0] if data.y_validation is None else data.y_validation
    labels = (trained, validated, data.y_test)
    counts = [y.sum(dim=0).long() if data.target == "multilabel" else torch.bincount(y.long(), minlength=data.classes)
              for y in labels]  # fmt: skip
    return tuple(
        ClassCheck(name, *(int(count[number]) for count in counts)) for number, name in enumerate(data.class_names)
    )


def _round(ready: Prepared) -> tuple[RoundCheck | None, list[Note]]:
    """What a round sends, of rounds really simulated; nothing where all is in one place."""
    config, simulator = ready.config, ready.simulator
    notes: list[Note] = []
    if config.auto or config.measured:
        keys = ", ".join(f"algorithm.{key}" for key in config.auto + config.measured)
        notes.append(
            Note("to be chosen", CHOSEN, "", f"{keys}: chosen when training starts, by estimates or by trials")
        )
    if config.algorithm.central:
        return None, notes
    if config.privacy.encrypts:
        notes.append(
            Note("encrypted", CHOSEN, "", "what a round sends is encrypted and not computed here: train tells")
        )
        return None, notes
    over, under = intervals(config.algorithm)
    rounds = max(1, over // under)
    notes += [Note("diverged", DOUBTFUL, "the first round", trouble) for trouble in try_rounds(simulator, rounds)]
    meter = simulator.meter
    links = {link: (size / rounds, count / rounds) for link, (size, count) in meter.links.items()}
    return RoundCheck(meter.bytes / rounds, meter.messages / rounds, simulator.seconds / rounds, links), notes


def _parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
