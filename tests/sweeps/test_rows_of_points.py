"""A sweep chooses among points that were measured on the same rows, and among no others."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from crosshatch.errors import RunError
from crosshatch.runs.files import csv_text
from crosshatch.runs.stopping import Stop
from crosshatch.sweeps.course import SweepListener
from crosshatch.sweeps.table import print_table, table_rows
from crosshatch.sweeps.whole_sweep import require_choice, run_whole
from tests.support.sweep_executors import Bench, Here

STEPS = "algorithm.step_size=0.1,0.2"


def printed(bench: Bench, grid: str) -> str:
    sweep = bench.read(grid)
    outcome = bench.run(sweep)
    console = Console(file=io.StringIO(), width=200)
    print_table(sweep, outcome, console)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


@pytest.mark.parametrize("grid", ["data.split_seed=0,1", "data.validation=0.2,0.3", "data.test_fraction=0.2,0.3"])
def test_other_validation_rows_are_not_ranked(bench: Bench, grid: str) -> None:
    sweep = bench.read(grid, STEPS)
    _, outcome = run_whole(sweep, bench.out, None, executor=Here(), listener=SweepListener(), stop=Stop())
    assert outcome.best is None
    with pytest.raises(RunError, match="is chosen: not all have the same validation rows") as error:
        require_choice(outcome, bench.out)
    assert "; " in str(error.value)
    assert not (bench.out / "chosen.toml").exists()
    result = json.loads((bench.out / "result.json").read_text())
    assert result["chosen"] is None
    assert [len(names) for names in result["not_ranked"]] == [2, 2]
    assert ",yes," not in csv_text(table_rows(sweep, outcome))


def test_other_test_rows_are_said_in_the_table(bench: Bench) -> None:
    assert "These runs were not tested on the same rows" in printed(bench, "data.split_seed=0,1")


def test_the_same_rows_are_ranked(bench: Bench) -> None:
    text = printed(bench, "data.limit=60,90")  # less to train on, the same to validate and test on
    assert "chosen" in text
    assert "note:" not in text


def test_training_rows_where_the_choice_goes_by_them(bench: Bench) -> None:
    assert bench.run(bench.read("data.limit=60,90", choose="last train_loss")).best is None


def test_nothing_is_dropped_early_where_rows_differ(bench: Bench) -> None:
    sweep = bench.read("data.split_seed=0,1,2", halving=True)
    outcome = bench.run(sweep)
    assert not any(result.dropped for result in outcome.results)
    assert outcome.best is None


def test_a_file_that_changes_between_runs(bench: Bench, tmp_path: Path) -> None:
    """Finished runs are not repeated, so the data of the others must be theirs."""
    rows = [f"{i},{(i * 37) % 11},{(i * 53) % 7},{i % 2}" for i in range(60)]
    table = tmp_path / "rows.csv"
    table.write_text("\n".join(["id,a,b,y", *rows]) + "\n")
    changes = [f"data.path={table}", "data.name=", "data.label=y", "data.id=id", "data.validation=0.2"]
    sweep = bench.read(STEPS, changes=changes)
    first = bench.run(sweep)
    assert first.best is not None
    shutil.rmtree(next((bench.out / "runs").glob("*0.2*")))
    moved = [line.replace(",3,", ",4,", 1) for line in rows]
    table.write_text("\n".join(["id,a,b,y", *moved]) + "\n")
    outcome = bench.run(sweep)
    assert outcome.best is None
    with pytest.raises(RunError, match="not all have the same data, which have changed from run to run"):
        require_choice(outcome, bench.out)
