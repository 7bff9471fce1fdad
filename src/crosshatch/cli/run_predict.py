"""`crosshatch predict` and `crosshatch export`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosshatch.errors import DataError, RunError
from crosshatch.runs.files import write_whole, writing

if TYPE_CHECKING:
    from crosshatch.predict.predictions import Predictions
    from crosshatch.runs.trained.trained_run import TrainedRun

PRINTED = Path("-")
Round = Literal["best", "last"]


def run_predict(
    path: Path,
    data: Sequence[str],
    *,
    out: Path | None,
    id_column: str | None,
    common: bool,
    folder: Path | None,
    round: Round | None,
) -> None:
    """Write or print the scores."""
    if not data and (common or id_column is not None):
        raise DataError("--id and --common are about files with new rows: give these by --data, or leave both out")
    out = None if out == PRINTED else out
    if out is not None:
        _require_place(out, [Path(text.partition("=")[2] or text) for text in data])
    run = _load(path, round)
    sources = _sources(data, run.silos)
    prepared = run.prepare(sources, id_column=id_column, common=common, folder=folder)
    predictions = run.interpret(prepared)
    if prepared.left_out:
        print(f"note: {prepared.left_out} ids are not in all files and were left out", file=sys.stderr)
    if out is None:
        print(predictions.csv.decode(), end="")
        return
    with writing(out.parent):
        write_whole(out, predictions.csv)
    print(f"{_counted(len(predictions.ids))} scored into {out}{_meaning(predictions)}")


def run_export(path: Path, out: Path, round: Round | None) -> None:
    """Write the program and say what it takes."""
    _require_place(out, [])
    run = _load(path, round)
    run.export(out)
    shapes = ", ".join(f"{part.name} (rows, {', '.join(map(str, part.input_shape))})" for part in run.model.parts)
    print(f"exported into {out}; it takes {shapes}")


def _load(path: Path, round: Round | None) -> TrainedRun:
    from crosshatch.runs.trained.trained_run import load_run  # late: torch takes seconds

    run = load_run(path, round)
    if not run.finished:
        print(f"warning: the run in {path} has not finished, this is the model it left when stopped", file=sys.stderr)
    if run.diverged is not None:
        print(f"warning: the training of {path} diverged: {run.diverged}", file=sys.stderr)
    return run


def _require_place(out: Path, given: Sequence[Path]) -> None:
    if out.is_dir():
        raise RunError(f"--out {out} is a folder: name a file in it")
    if not out.parent.is_dir():
        raise RunError(f"--out {out}: there is no folder {out.parent}, make it or choose another place")
    if out.resolve() in [path.resolve() for path in given]:
        raise RunError(f"--out {out} is one of the files with new rows: choose another place")


def _sources(data: Sequence[str], silos: Sequence[str]) -> dict[str, Path | str] | list[Path | str] | None:
    """Files by silo, or files alone; None where none are given."""
    named: dict[str, Path | str] = {}
    loose: list[Path | str] = []
    for text in data:
        silo, sign, file = text.partition("=")
        if not sign or (silo not in silos and Path(text).is_file()):
            loose.append(Path(text))
        elif silo in named:
            raise DataError(f"--data names two files for silo '{silo}': {named[silo]} and {file}, keep one")
        else:
            named[silo] = Path(file)
    if named and loose:
        raise DataError(f"--data {loose[0]} names no silo and others do: write SILO={loose[0]}, or no silo at all")
    return named or loose or None


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def _meaning(predictions: Predictions) -> str:
    if predictions.positive is None:
        return ""
    return f"; score and probability are those of class '{predictions.positive}'"
