"""The driver's side of it: labels are read here, columns stay empty, and who has which row is worked out as ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from crosshatch.data.data_settings import DataSettings, FederationSettings, Preparation, SiloSettings
from crosshatch.data.dataset import Array, Dataset, Indices, Raw, Samples
from crosshatch.data.encoding.encode_part import Encoded, RawColumns
from crosshatch.data.encoding.encode_table import TableEncoder
from crosshatch.data.federated import SiloData
from crosshatch.data.make_dataset import make_dataset
from crosshatch.data.reading.one_file import OwnTable, Wanted, label_array, own_table, read_own_table, wanted_of
from crosshatch.data.reading.tables import BATCH, ReadingRules, typed_table
from crosshatch.errors import ConfigError, DataError
from crosshatch.partition.features import unknown
from crosshatch.workers.apart.reading import RowsToRead, SiloToRead
from crosshatch.workers.apart.row_files import RowFiles
from crosshatch.workers.apart.streamed_rows import is_stream, stream
from crosshatch.workers.apart.sums import fit
from crosshatch.workers.crew import Crew
from crosshatch.workers.division import Division, Ids

LOOKED_AT = BATCH
"""Rows from which it is guessed what a file's columns are."""
_HERE = "leave out run.load"


@dataclass(frozen=True)
class LookAt:
    """What one worker is asked for: what the columns of a file are, by its first rows, which stay there."""

    path: Path
    wanted: Wanted

    def __call__(self) -> OwnTable:
        if is_stream(self.path):
            first = next(stream(self.path, LOOKED_AT), pl.DataFrame())
            table = own_table(typed_table(self.path, first), self.wanted)
        else:
            table = read_own_table(self.path, self.wanted)
        return replace(table, frame=table.frame.head(0))


@dataclass
class RowsElsewhere:
    """A table whose rows workers read: in the order of its files those that are trained on, and the numbers of others.

    Bits of `training` mark rows; `others` are the numbers of test rows, and of validation rows if there are any.
    """

    crew: Crew
    files: RowFiles
    training: Array
    samples: int  # so many are marked
    others: tuple[Indices, ...]

    def encode_part(self, part: RawColumns, preparation: Preparation) -> Encoded:
        """Fitted by sums over the workers; there are no numbers here, only the shape of features."""
        if not part.columns:
            raise ConfigError(f"{part.place} has no columns: rows are read apart for silos with columns, {_HERE}")
        encoder = fit(self.crew, self.files, self.training, part, preparation)
        counts = self.samples, *map(len, self.others)
        train, test, *others = (torch.zeros(1, len(encoder.features)).expand(count, -1) for count in counts)
        return Encoded(train, test, encoder.features, encoder, *others)

    def to_read(self, silos: Sequence[SiloData], owners: Sequence[Ids], division: Division) -> RowsToRead:
        """What workers need to know to read their rows; `owners` (n,) says by silo whose each training sample is."""
        encoders = [silo.encoder for silo in silos if isinstance(silo.encoder, TableEncoder)]
        each = zip(encoders, owners, division.first, division.pieces_of, division.edges, strict=True)
        dtype, others = silos[0].train.dtype, np.concatenate(self.others)
        return RowsToRead(self.files, dtype, self.training, others, tuple(SiloToRead(*of_silo) for of_silo in each))


def load_apart(config: Any, crew: Crew) -> Dataset:
    """The data set of a run's config without what is in its columns; a ConfigError where it cannot be read apart."""
    data: DataSettings = config.data
    federation: FederationSettings = config.federation
    silos = federation.silos if isinstance(federation.silos, tuple) else ()
    _require_possible(config, data, silos)
    names = (data.path, data.validation if isinstance(data.validation, str) else None, data.test_path)
    paths = tuple(Path(name).resolve() for name in names if name is not None)
    wanted = wanted_of(data, [name for silo in silos for name in silo.columns], LOOKED_AT)
    look = crew.do([LookAt(paths[0], wanted)])[0]
    columns = [name for name in look.frame.columns if name not in (*data.labels, data.id)]
    for label in data.labels:
        if label not in look.frame.columns:
            raise DataError(str(unknown("label column", label, look.frame.columns, str(paths[0]))))
    rules = ReadingRules(data.csv, readings=look.readings)
    splits = [federation.samples, federation.group_samples, *(silo.samples for silo in silos if silo.samples)]
    named = {data.sample_weights, data.split_by, *(split.column for split in splits if split.kind == "column")}
    beside = [name for name in columns if name in named]
    parts = [_labelled(RowFiles((path,), rules), data, columns, beside) for path in paths]
    files = RowFiles(paths, rules, tuple(map(len, parts)))
    raw = Raw(
        paths[0].name, "table", parts[0], parts[-1] if data.test_path is not None else None, tuple(columns),
        notes=look.notes, validation=parts[1] if isinstance(data.validation, str) else None,
        readings=look.readings, files=(replace(look.seen, rows=len(parts[0])),), left_out=look.left_out,
    )  # fmt: skip
    dataset = make_dataset(raw, data)
    parts = [part for part in (dataset.train, dataset.test, dataset.validation) if part is not None]
    training, *others = (part.numbers for part in parts if part.numbers is not None)
    assert (training[1:] > training[:-1]).all()  # workers count training samples as they come
    marked = np.zeros(sum(files.counts), dtype=bool)
    for some in np.array_split(training, 1 + len(training) // BATCH):
        marked[some] = True
    elsewhere = RowsElsewhere(crew, files, np.packbits(marked), len(training), tuple(others))
    return replace(dataset, train=replace(dataset.train, numbers=None), elsewhere=elsewhere)


def _labelled(files: RowFiles, data: DataSettings, columns: list[str], beside: list[str]) -> Samples:
    """The labels of a file and what says how rows are divided; all other columns are empty."""
    read = pl.concat([frame for _, frame in files.frames([*data.labels, *beside])])
    empty = pl.repeat(None, len(read), dtype=pl.Null, eager=True)
    frame = pl.DataFrame([read[name] if name in beside else empty.alias(name) for name in columns])
    return Samples(frame, label_array(read, data.labels, files.paths[0]))


def _require_possible(config: Any, data: DataSettings, silos: Sequence[SiloSettings]) -> None:
    """Refuse what cannot be read apart."""
    refusals: list[tuple[bool, str]] = [
        (data.path is None, "is for a table of your own: set data.path"),
        (any(silo.path for silo in silos), "is for one table, and silos have files of their own: join these before"),
        (data.impute == "median", "finds numbers by sums, and a median is none: set data.impute = 'mean' or 'zero'"),
        (not data.labels, "needs to know what the labels are: set data.label"),
        (
            bool(config.auto or config.measured),
            f"has no features here to choose algorithm.{(*config.auto, *config.measured, '')[0]} by: give a number",
        ),
        (
            "suboptimality" in (config.evaluate.metrics or ()),
            "has no features here to find the best value by: take 'suboptimality' out of evaluate.metrics",
        ),
        (
            config.privacy.encrypts or config.privacy.ledger is not None,
            "leaves nobody here who could count what encrypted derivatives tell: leave out [privacy]",
        ),
    ]
    for found, why in refusals:
        if found:
            raise ConfigError(f"run.load = 'apart' {why}, or {_HERE}")
