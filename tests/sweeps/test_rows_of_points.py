"""A sweep chooses among points that were measured on the same rows, and among no others."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from crosshatch.errors import RunError
from crosshatch.runs.stopping import Stop
from crosshatch.sweeps.table import print_table, table_csv
from crosshatch.sweeps.whole_sweep import require_choice, run_whole
from tests.sweeps.conftest import Bench, Deaf, Here

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
    outcome = run_whole(sweep, bench.out, None, executor=Here(), listener=Deaf(), stop=Stop())
    assert outcome.best is None
    with pytest.raises(RunError, match="is chosen: not all have the same validation rows") as error:
        require_choice(outcome, bench.out)
    assert "; " in str(error.value)
    assert not (bench.out / "chosen.toml").exists()
    result = json.loads((bench.out / "result.json").read_text())
    assert result["chosen"] is None
    assert [len(names) for names in result["not_the_same_rows"]] == [2, 2]
    assert ",yes," not in table_csv(sweep, outcome)


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
