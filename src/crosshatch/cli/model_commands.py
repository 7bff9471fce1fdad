"""The commands that put a run's model to work."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crosshatch.cli.options import option
from crosshatch.cli.pipes import say
from crosshatch.data.notes import counted
from crosshatch.errors import DataError, RunError

if TYPE_CHECKING:
    from crosshatch.runs.trained.trained_run import TrainedRun

PRINTED = Path("-")
MOST_NOTES = 12

_ROUND = "Whose model; if left out, that of the best round where validation rows chose one, else of the last."
_ROWS = (
    "New rows: a file with the columns of all silos, or one per silo. Repeatable; if left out, the rows the run was "
    "tested on."
)
Round = Literal["best", "last"]
ModelRound = Annotated[Round | None, option("--round", "best|last", _ROUND)]
OneRun = Annotated[Path, typer.Argument(metavar="RUN", hidden=True)]


def predict(
    run: OneRun,
    data: Annotated[list[str] | None, option("--data", "[SILO=]FILE", _ROWS)] = None,
    out: Annotated[Path | None, option("--out", "FILE", "The scores as CSV; if left out, or -, printed.")] = None,
    id_column: Annotated[str | None, option("--id", "COLUMN", "Id column, if it is not called as in training.")] = None,
    common: Annotated[
        bool, typer.Option("--common", help="Score the ids that all files have, and leave the others out.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--data-folder",
            metavar="DIR",
            envvar="CROSSHATCH_DATA",
            show_envvar=False,
            help="Folder of data sets, for the rows the run was tested on; or set CROSSHATCH_DATA.",
        ),
    ] = None,
    round: ModelRound = None,
) -> None:
    """Score new rows with the model of a run.

    RUN is a run directory, or a folder that export wrote; nothing else of the training is needed. Rows come as CSV,
    TSV, Parquet or NPZ and are prepared as those of the training were. Writes one line per row: its id, scores,
    probabilities and the class, or the predicted value.

    \b
    Example:
      crosshatch predict runs/clinic --data new.csv --out scores.csv
      crosshatch predict runs/clinic --data bank=new_bank.csv --data insurer=new_insurer.csv
      crosshatch predict clinic-model --data new.csv
    """
    files = data or []
    if not files and (common or id_column is not None):
        raise DataError("--id and --common are about files with new rows: give these by --data, or leave both out")
    out = None if out == PRINTED else out
    if out is not None:
        _require_place(out, [Path(text.partition("=")[2] or text) for text in files], run)
    from crosshatch.predict.row_sources import said_of_files  # late: torch takes seconds

    model = _load(run, round)
    sources = _sources(files, model.silos)
    with tempfile.TemporaryDirectory() if out is None else nullcontext() as beside:
        # Printed are the scores of all rows or of none, too.
        place = out or Path(str(beside), "scores.csv")
        written = model.predict_into(place, sources, id_column=id_column, common=common, folder=folder)
        for note in said_of_files(sources, model.model.parts):
            say(f"note: {note}", sys.stderr)
        for line in written.notes[:MOST_NOTES]:
            say(line, sys.stderr)
        if len(written.notes) > MOST_NOTES:
            say(f"note: and {len(written.notes) - MOST_NOTES} more such lines (in Python all)", sys.stderr)
        if written.left_out:
            say(f"note: {written.left_out} ids are not in all files and were left out", sys.stderr)
        if out is None:
            with open(place, encoding="utf-8", newline="") as file:
                shutil.copyfileobj(file, sys.stdout)
            return
    positive = model.model.common.positive
    meaning = "" if positive is None else f"; score and probability are those of class '{positive}'"
    say(f"{counted(written.rows, 'row')} scored into {out}{meaning}")


def export(
    run: OneRun,
    folder: Annotated[
        Path | None, option("--folder", "DIR", "All that predict needs, as a folder: absent so far, or empty.")
    ] = None,
    out: Annotated[Path | None, option("--out", "FILE", "A program of torch.export, for example model.pt2.")] = None,
    silo: Annotated[str | None, option("--silo", "NAME", "With --folder: this silo's part alone.")] = None,
    round: ModelRound = None,
) -> None:
    """Write the model of a run as a folder, or as a program.

    RUN is a run directory. The folder has weights, each silo's preparation of rows, classes, versions, a README and
    the hash of every file, but no training rows and no paths; `crosshatch predict DIR` needs nothing else. The program
    takes prepared rows, one tensor per silo, and gives their scores; it needs torch but not crosshatch.

    \b
    Example:
      crosshatch export runs/clinic --folder clinic-model
      crosshatch export runs/clinic --folder bank-part --silo bank
      crosshatch export runs/clinic --out model.pt2
    """
    if out is None and folder is None:
        raise RunError(
            "nothing to write is named: --folder DIR for all that crosshatch predict needs, --out FILE for a program "
            "of torch.export"
        )
    if silo is not None and folder is None:
        raise RunError(f"--silo {silo} is for --folder: name one, or leave --silo out")
    if folder is not None:
        from crosshatch.runs.trained.export_folder import require_room

        require_room(folder)
    if out is not None:
        _require_place(out, [], run)
    model = _load(run, round)
    if folder is not None:
        model.export_folder(folder, silo=silo)
        trained = model.model.common.trained
        whose = f"the part of silo '{silo}' in the model" if silo is not None else "the model"
        by = "" if trained.chosen_by is None else f", the best by {trained.chosen_by}"
        say(f"exported into {folder}: {whose} of round {trained.round}{by}; its README.md says what it takes")
    if out is not None:
        model.export(out)
        shapes = ", ".join(f"{part.name} (rows, {', '.join(map(str, part.input_shape))})" for part in model.model.parts)
        say(f"exported into {out}; it takes {shapes}")


def _load(path: Path, round: Round | None) -> TrainedRun:
    from crosshatch.runs.trained.export_folder import read_manifest
    from crosshatch.runs.trained.load_run import load_run  # late: torch takes seconds
    from crosshatch.runs.trained.used_versions import other_versions

    manifest = read_manifest(path)
    if manifest is not None and manifest.own_code:
        files = ", ".join(f"{name} (sha256 {known[:12]})" for name, known in manifest.own_code.items())
        say(f"note: the model in {path} runs code that came with it: {files}", sys.stderr)
    run = load_run(path, round)
    trained = run.model.common.trained
    if not run.finished:
        what = "when it was exported" if manifest is not None else "yet"
        left = f"this is the model it left, after round {trained.round}"
        say(f"warning: the run of {path} had not finished {what}: {left}", sys.stderr)
    if run.diverged is not None:
        say(f"warning: the training of {path} diverged: {run.diverged}", sys.stderr)
    if others := other_versions(trained.versions):
        say(f"note: {others}", sys.stderr)
    return run


def _require_place(out: Path, given: Sequence[Path], run: Path) -> None:
    if out.is_dir():
        raise RunError(f"--out {out} is a folder: name a file in it")
    if not out.parent.is_dir():
        raise RunError(f"--out {out}: there is no folder {out.parent}, make it or choose another place")
    if out.resolve() in [path.resolve() for path in given]:
        raise RunError(f"--out {out} is one of the files with new rows: choose another place")
    if out.is_file() and run.resolve() in out.resolve().parents and out.suffix not in (".csv", ".pt2"):
        raise RunError(f"--out {out} is a file of the run: choose another place")


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
