"""A finished run put to work: scores for new rows, and the model as one module."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast, final

import numpy as np
import polars as pl
import torch
from torch import Tensor

from crosshatch.data.dataset import Array, Rows
from crosshatch.data.new_rows import as_in_training, read_rows
from crosshatch.data.reading.tables import Asked
from crosshatch.errors import ConfigError, DataError, RunError
from crosshatch.predict.align_rows import align, hand_out
from crosshatch.predict.joint_model import JointModel, JointModule, export, program_bytes
from crosshatch.predict.predictions import Predictions, interpret
from crosshatch.predict.silo_part import SiloPart
from crosshatch.runs.config import decode_config
from crosshatch.runs.files import write_whole, writing
from crosshatch.runs.identity.run_data import read_data
from crosshatch.runs.parts.blaming import blaming
from crosshatch.runs.parts.part_files import PARTS
from crosshatch.runs.parts.part_names import started_from
from crosshatch.runs.trained.export_folder import export_folder
from crosshatch.runs.trained.manifest import MANIFEST

Source: TypeAlias = Path | str | pl.DataFrame | Array
"""A file, a table or an array."""


@final
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


@final
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
        """The silos in the order of the module's inputs."""
        return self.model.common.silos

    def predict(
        self,
        data: Source | Sequence[Source] | Mapping[str, Source] | None = None,
        *,
        id_column: str | None = None,
        common: bool = False,
        folder: Path | None = None,
    ) -> Predictions:
        """Scores and what they mean, for rows as `prepare` takes them."""
        return self.interpret(self.prepare(data, id_column=id_column, common=common, folder=folder))

    def prepare(
        self,
        data: Source | Sequence[Source] | Mapping[str, Source] | None = None,
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
        parts = tuple(part for part in self.model.parts if part.input_shape != (0,))  # one may have labels alone
        notes: list[str] = []
        named, loose = ({}, [self._test_rows(folder, notes)]) if data is None else _read(data, parts, id_column)
        given = hand_out(parts, named, loose)
        aligned = align(parts, given, id_column=id_column, common=common)
        silos = zip(parts, given, aligned.positions, strict=True)
        found = {part.name: part.prepare(one.rows, positions, own=one.own) for part, one, positions in silos}
        nothing = torch.zeros(len(aligned.ids), 0, dtype=self.model.common.dtype)
        xs = tuple(found.get(part.name, nothing) for part in self.model.parts)
        return PreparedRows(aligned.ids, xs, aligned.left_out, "; ".join(notes))

    def interpret(self, rows: PreparedRows) -> Predictions:
        """Scores of prepared rows, and what they mean."""
        with blaming({self.path.resolve() / PARTS / name for name in self.own_parts}):
            return interpret(self.model.common, self.model.loss, rows.ids, self.model.scores(rows.xs))

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

    def _test_rows(self, folder: Path | None, notes: list[str]) -> Rows:
        path = self.path / "config.toml"
        if (self.path / MANIFEST).is_file():
            raise RunError(f"{self.path} was exported, and no test rows with it: give rows by --data")
        try:
            config = decode_config(started_from(tomllib.loads(path.read_text(encoding="utf-8")), self.path))
        except (OSError, ValueError, ConfigError) as error:
            raise RunError(f"{path} does not say which rows were tested on ({error}): give rows by --data") from None
        dataset, _ = read_data(config, folder, of=self.path, warn=notes.append, test_rows_alone=True)
        test = dataset.test
        static = test.extra.get("static")
        table = static if isinstance(static, pl.DataFrame) else None
        ids = np.arange(1, len(test) + 1) if test.ids is None else test.ids
        return Rows(f"test rows of {dataset.name}", test.x, dataset.columns, table, ids)


def _read(
    data: Source | Sequence[Source] | Mapping[str, Source], parts: tuple[SiloPart, ...], id_column: str | None
) -> tuple[dict[str, Rows], list[Rows]]:
    """Rows by the name of their silo, and those without one."""
    ids = frozenset(name for name in (id_column, *(part.id for part in parts)) if name is not None)
    if isinstance(data, Mapping):
        own = {part.name: as_in_training([(part.name, part.encoder)], ids) for part in parts}
        return {
            silo: _rows(source, own.get(silo, Asked(ids=ids)), f"rows of '{silo}'") for silo, source in data.items()
        }, []
    asked = as_in_training(((part.name, part.encoder) for part in parts), ids)
    several = data if isinstance(data, list | tuple) else [cast(Source, data)]
    if not several:
        raise DataError("no rows are given: name a file, or leave data out for the run's own test rows")
    return {}, [_rows(source, asked, f"rows given as number {i + 1}") for i, source in enumerate(several)]


def _rows(source: Source, asked: Asked, place: str) -> Rows:
    if isinstance(source, Path | str):
        return read_rows(Path(source), asked)
    if not isinstance(source, pl.DataFrame | np.ndarray):
        raise DataError(
            f"{place} are of type {type(source).__name__}: give a file, a polars table (pl.from_pandas makes one) or a "
            "numpy array"
        )
    if isinstance(source, np.ndarray) and source.dtype.kind not in "biuf":
        raise DataError(f"{place} are an array of type {source.dtype}: give numbers, or a table for text")
    if not len(source):
        raise DataError(f"{place}: there are none, give at least one")
    return Rows(place, source)
