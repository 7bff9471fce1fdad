"""The commands that put a run's model to work: their options and their help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from crosshatch.cli.options import option

_ROUND = "Whose model; if left out, that of the best round where validation rows chose one, else of the last."
_ROWS = (
    "New rows: a file with the columns of all silos, or one per silo. Repeatable; if left out, the rows the run was "
    "tested on."
)
ModelRound = Annotated[Literal["best", "last"] | None, option("--round", "best|last", _ROUND)]
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
    from crosshatch.cli.run_predict import run_predict

    run_predict(run, data or [], out=out, id_column=id_column, common=common, folder=folder, round=round)


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
    from crosshatch.cli.run_predict import run_export

    run_export(run, out, folder, silo, round)
