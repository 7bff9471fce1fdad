"""A finished run put to work: scores for new rows, and the model as one module."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor

from crosshatch.data.dataset import Array, NewRows
from crosshatch.errors import ConfigError, RunError
from crosshatch.local.forward import BATCH_ROWS
from crosshatch.own_parts import blaming
from crosshatch.predict.joint_model import JointModel, JointModule, SiloPart, export, program_bytes
from crosshatch.predict.noticed import Noticed
from crosshatch.predict.predictions import Predictions, interpret
from crosshatch.predict.row_batches import (
    Aligned,
    GivenRows,
    OutOfStepError,
    RowBatch,
    align,
    gathered,
    hand_out,
    id_names,
    streamed,
)
from crosshatch.predict.row_sources import Sources, files_to_stream, read_sources
from crosshatch.runs.config import decode_config
from crosshatch.runs.files import growing, write_whole, writing
from crosshatch.runs.identity.run_data import read_data
from crosshatch.runs.own_parts.part_files import PARTS, started_from
from crosshatch.runs.tables.read_toml import read_toml
from crosshatch.runs.trained.export_folder import MANIFEST, export_folder


@dataclass(frozen=True)
class PreparedRows:
    """New rows as the module takes them: `xs` has one tensor (n, ...) per silo, in the order of the silos.

    `left_out` is the number of ids that not all silos have. `note` says where it cannot be told whether rows are those
    that the run was tested on.
    """

    ids: Array
    xs: tuple[Tensor, ...]
    left_out: int
    note: str = ""


@dataclass(frozen=True)
class Written:
    """What was written into a file: so many `rows`; `left_out` is the number of ids that not all silos have.

    `notes` are lines on what a user should know of the rows, the most weighty first.
    """

    rows: int
    left_out: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TrainedRun:
    """The run in a directory, or what was exported of it, with its model, which is in `folder`.

    `diverged`: why its training ended badly, or None. `finished`: it ran to its end; else it was stopped. `own_parts`
    are the files of a user's own in its folder `parts`.
    """

    path: Path
    model: JointModel
    folder: Path
    name: str
    diverged: str | None = None
    finished: bool = True
    own_parts: tuple[str, ...] = ()

    @property
    def silos(self) -> tuple[str, ...]:
        return self.model.common.silos

    def predict(
        self,
        data: Sources | None = None,
        *,
        id_column: str | None = None,
        common: bool = False,
        folder: Path | None = None,
    ) -> Predictions:
        """Scores and what they mean, for rows as `prepare` takes them."""
        notes: list[str] = []
        given, aligned = self._find(data, id_column, common, folder, notes)
        noticed = self._noticed(data, id_column)
        found = Predictions.joined(self._score(gathered(given, aligned), noticed))
        return replace(found, notes=(*notes, *map(str, noticed.notes())))

    def predict_into(
        self,
        out: Path | str,
        data: Sources | None = None,
        *,
        id_column: str | None = None,
        common: bool = False,
        folder: Path | None = None,
    ) -> Written:
        """Write the same as a CSV file, which is there whole in the end or not at all.

        Files of tables that have their ids in one order are scored as they are read: however many rows they have, a
        few thousand are in memory at a time. Otherwise all rows are at hand first.
        """
        files = None if data is None else files_to_stream(data, self._parts, id_column)
        noticed = self._noticed(data, id_column)
        out = Path(out)
        with writing(out.parent):
            if files is not None:
                try:
                    return self._write(out, streamed(self._parts, *files, id_column=id_column), noticed)
                except OutOfStepError:  # what was written is gone
                    noticed = self._noticed(data, id_column)
            notes: list[str] = []
            given, aligned = self._find(data, id_column, common, folder, notes)
            return self._write(out, gathered(given, aligned), noticed, aligned.left_out, notes)

    def prepare(
        self,
        data: Sources | None = None,
        *,
        id_column: str | None = None,
        common: bool = False,
        folder: Path | None = None,
    ) -> PreparedRows:
        """New rows prepared by each silo as those of the training were.

        `data` is one file (or table, or array) with the columns of all silos, or several, by name of the silo or such
        that every silo's columns are in one of them. Several are joined on `id_column`, by default that of the
        training; all must have the same ids, or with `common` those which all have are taken. Without `data` they are
        the run's own test rows, for which named sets are read from the data `folder`; a RunError where they have
        changed since.
        """
        notes: list[str] = []
        given, aligned = self._find(data, id_column, common, folder, notes)
        batches = [self._tensors(batch) for batch in gathered(given, aligned)]
        xs = tuple(map(torch.cat, zip(*batches, strict=True)))
        return PreparedRows(aligned.ids, xs, aligned.left_out, "; ".join(notes))

    def interpret(self, rows: PreparedRows) -> Predictions:
        cut = ((slice(low, low + BATCH_ROWS)) for low in range(0, len(rows.ids), BATCH_ROWS))
        return Predictions.joined(self._interpret(rows.ids[one], [x[one] for x in rows.xs]) for one in cut)

    @property
    def _parts(self) -> tuple[SiloPart, ...]:
        return tuple(part for part in self.model.parts if part.input_shape != (0,))  # one may have labels alone

    def _find(
        self, data: Sources | None, id_column: str | None, common: bool, folder: Path | None, notes: list[str]
    ) -> tuple[list[GivenRows], Aligned]:
        """All rows, and how they belong together; lines for the user go to the notes."""
        parts = self._parts
        named, loose = ({}, [self._test_rows(folder, notes)]) if data is None else read_sources(data, parts, id_column)
        given = hand_out(parts, named, loose)
        return given, align(parts, given, id_column=id_column, common=common)

    def _noticed(self, data: Sources | None, id_column: str | None) -> Noticed:
        ids = frozenset(id_names(self._parts, id_column))
        return Noticed(() if data is None else self._parts, ids)  # of test rows the training has said what there is

    def _write(
        self, out: Path, batches: Iterator[RowBatch], noticed: Noticed, left_out: int = 0, notes: Sequence[str] = ()
    ) -> Written:
        rows = 0
        with growing(out) as file:
            for found in self._score(batches, noticed):
                found.frame.write_csv(file, include_header=not rows)
                rows += len(found.ids)
        odd = noticed.notes()
        lines = (f"{'warning' if note.is_warning else 'note'}: {note}" for note in odd)
        return Written(rows, left_out, (*(f"note: {note}" for note in notes), *lines))

    def _score(self, batches: Iterable[RowBatch], noticed: Noticed) -> Iterator[Predictions]:
        for batch in batches:
            xs = self._tensors(batch)
            noticed.see(batch.given)
            yield self._interpret(batch.ids, xs)

    def _tensors(self, batch: RowBatch) -> list[Tensor]:
        silos = zip(self._parts, batch.given, strict=True)
        found = {part.name: part.prepare(one.rows, own=one.own) for part, one in silos}
        nothing = torch.zeros(len(batch.ids), 0, dtype=self.model.common.dtype)
        return [found.get(part.name, nothing) for part in self.model.parts]

    def _interpret(self, ids: Array, xs: Sequence[Tensor]) -> Predictions:
        with blaming({self.path.resolve() / PARTS / name for name in self.own_parts}):
            return interpret(self.model.common, self.model.loss, ids, self.model.scores(xs))

    def module(self) -> JointModule:
        """The joint model as one `torch.nn.Module`: `module(*prepared.xs)` gives scores (n, c)."""
        return self.model.module()

    def export(self, path: Path | str | None = None) -> torch.export.ExportedProgram:
        """The same as a program of `torch.export`, for any number of rows, written to a .pt2 file where one is named.

        A ModelError where a block cannot be such a program.
        """
        program = export(self.model)
        if path is not None:
            with writing(Path(path).parent):
                write_whole(Path(path), program_bytes(program))
        return program

    def export_folder(self, folder: Path | str, *, silo: str | None = None) -> None:
        """Write all that predicting needs into one folder, which must be absent or empty; or one silo's part of it.

        `load_run` and `crosshatch predict` take it as they take a run directory.
        """
        export_folder(
            Path(folder), self.folder, self.model,
            name=self.name, finished=self.finished, diverged=self.diverged, silo=silo,
        )  # fmt: skip

    def _test_rows(self, folder: Path | None, notes: list[str]) -> NewRows:
        path = self.path / "config.toml"
        if (self.path / MANIFEST).is_file():
            raise RunError(f"{self.path} was exported, and no test rows with it: give rows by --data")
        try:
            config = decode_config(started_from(read_toml(path.read_text(encoding="utf-8")), self.path))
        except (OSError, ValueError, ConfigError) as error:
            raise RunError(f"{path} does not say which rows were tested on ({error}): give rows by --data") from None
        dataset, _ = read_data(config, folder, of=self.path, warn=notes.append, test_rows_alone=True)
        test = dataset.test
        static = test.extra.get("static")
        table = static if isinstance(static, pl.DataFrame) else None
        ids = np.arange(1, len(test) + 1) if test.ids is None else test.ids
        return NewRows(f"test rows of {dataset.name}", test.x, dataset.columns, table, ids)
