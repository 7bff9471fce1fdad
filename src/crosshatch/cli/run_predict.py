"""`crosshatch predict` and `crosshatch export`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosshatch.data.notes import counted
from crosshatch.errors import DataError, RunError

if TYPE_CHECKING:
    from crosshatch.runs.trained.trained_run import TrainedRun

PRINTED = Path("-")
MOST_NOTES = 12
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
    if not data and (common or id_column is not None):
        raise DataError("--id and --common are about files with new rows: give these by --data, or leave both out")
    out = None if out == PRINTED else out
    if out is not None:
        _require_place(out, [Path(text.partition("=")[2] or text) for text in data])
    from crosshatch.predict.row_sources import said_of_files  # late: torch takes seconds

    run = _load(path, round)
    sources = _sources(data, run.silos)
    with tempfile.TemporaryDirectory() if out is None else nullcontext() as beside:
        # Printed are the scores of all rows or of none, too.
        place = out or Path(str(beside), "scores.csv")
        written = run.predict_into(place, sources, id_column=id_column, common=common, folder=folder)
        for note in said_of_files(sources, run.model.parts):
            print(f"note: {note}", file=sys.stderr)
        for line in written.notes[:MOST_NOTES]:
            print(line, file=sys.stderr)
        if len(written.notes) > MOST_NOTES:
            print(f"note: and {len(written.notes) - MOST_NOTES} more such lines (in Python all)", file=sys.stderr)
        if written.left_out:
            print(f"note: {written.left_out} ids are not in all files and were left out", file=sys.stderr)
        if out is None:
            with open(place, encoding="utf-8", newline="") as file:
                shutil.copyfileobj(file, sys.stdout)
            return
    positive = run.model.common.positive
    meaning = "" if positive is None else f"; score and probability are those of class '{positive}'"
    print(f"{counted(written.rows, 'row')} scored into {out}{meaning}")


def run_export(path: Path, out: Path | None, folder: Path | None, silo: str | None, round: Round | None) -> None:
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
        _require_place(out, [])
    run = _load(path, round)
    if folder is not None:
        run.export_folder(folder, silo=silo)
        print(f"exported into {folder}: {_model_of(run, silo)}; its README.md says what it takes")
    if out is not None:
        run.export(out)
        shapes = ", ".join(f"{part.name} (rows, {', '.join(map(str, part.input_shape))})" for part in run.model.parts)
        print(f"exported into {out}; it takes {shapes}")


def _model_of(run: TrainedRun, silo: str | None) -> str:
    trained = run.model.common.trained
    whose = f"the part of silo '{silo}' in the model" if silo is not None else "the model"
    if trained is None:
        return whose
    by = "" if trained.chosen_by is None else f", the best by {trained.chosen_by}"
    return f"{whose} of round {trained.round}{by}"


def _load(path: Path, round: Round | None) -> TrainedRun:
    from crosshatch.runs.trained.load_run import load_run  # late: torch takes seconds
    from crosshatch.runs.trained.manifest import read_manifest
    from crosshatch.runs.trained.used_versions import other_versions

    manifest = read_manifest(path)
    if manifest is not None and manifest.own_code:
        files = ", ".join(f"{name} (sha256 {known[:12]})" for name, known in manifest.own_code.items())
        print(f"note: the model in {path} runs code that came with it: {files}", file=sys.stderr)
    run = load_run(path, round)
    trained = run.model.common.trained
    if not run.finished:
        at = "" if trained is None else f", after round {trained.round}"
        what = "when it was exported" if manifest is not None else "yet"
        print(f"warning: the run of {path} had not finished {what}: this is the model it left{at}", file=sys.stderr)
    if run.diverged is not None:
        print(f"warning: the training of {path} diverged: {run.diverged}", file=sys.stderr)
    if others := other_versions({} if trained is None else trained.versions):
        print(f"note: {others}", file=sys.stderr)
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
