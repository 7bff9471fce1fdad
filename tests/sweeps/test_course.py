"""A sweep against its runs one by one: the numbers of the table, the choice, and which runs end early."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from statistics import mean, stdev

import pytest
from rich.console import Console

from crosshatch.errors import CrosshatchError, RunError
from crosshatch.runs.config import read_config
from crosshatch.runs.files import csv_text
from crosshatch.runs.train import train
from crosshatch.sweeps.jobs import Ended, Job
from crosshatch.sweeps.table import print_table, table_rows
from tests.support.sweep_executors import Bench, Here


def evaluations(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_table_against_runs_one_by_one(bench: Bench, tmp_path: Path) -> None:
    sweep = bench.read("algorithm.step_size=0.01,0.3", seeds="3", choose="best validation accuracy")
    outcome = bench.run(sweep)
    naive = {}
    for step_size in ("0.01", "0.3"):
        rows = []
        for seed in (4, 5, 6):
            changes = [f"algorithm.step_size={step_size}", f"run.seed={seed}", "run.threads=1"]
            path = tmp_path / f"{step_size}-{seed}"
            train(read_config(bench.config, changes), out=path)
            found = evaluations(path)
            top = max(row["validation_accuracy"] for row in found)
            rows.append(next(row for row in found if row["validation_accuracy"] == top))
        naive[step_size] = rows
    table = lines(csv_text(table_rows(sweep, outcome)))
    assert [line["algorithm.step_size"] for line in table] == ["0.01", "0.3"]
    for line in table:
        rows = naive[line["algorithm.step_size"]]
        assert (line["seeds"], line["finished"], line["diverged"]) == ("3", "3", "0")
        for key in ("validation_accuracy", "accuracy", "loss", "round", "bytes", "sim_seconds"):
            values = [row[key] for row in rows]
            assert float(line[key]) == pytest.approx(mean(values), rel=1e-12)
            assert float(line[f"{key}_deviation"]) == pytest.approx(stdev(values), rel=1e-9, abs=1e-12)
    best = max(naive, key=lambda step: mean(row["validation_accuracy"] for row in naive[step]))
    assert [line["chosen"] for line in table] == ["yes" if step == best else "no" for step in naive]


def test_the_metric_that_speaks_for_a_run(bench: Bench) -> None:
    outcome = bench.run(bench.read("algorithm.step_size=0.01,0.3"))
    assert outcome.choice.metric == "validation_accuracy"
    other = bench.run(bench.read("algorithm.step_size=0.01,0.3", choose="last validation loss"), Here())
    assert other.choice.metric == "validation_loss"  # the same runs, looked at in another way


def test_chosen_config_runs_as_it_did_in_the_sweep(bench: Bench, tmp_path: Path) -> None:
    sweep = bench.read("algorithm.step_size=0.01,0.3", seeds="2", choose="best validation loss")
    outcome = bench.run(sweep)
    assert outcome.best is not None
    assert outcome.best.point.name == "step_size=0.3"
    (tmp_path / "chosen.toml").write_text(sweep.chosen_text(outcome.best.point, outcome.choice))
    config = read_config(tmp_path / "chosen.toml", ["run.threads=1"])
    assert (config.name, config.evaluate.best_by, config.run.seed) == ("chosen", "loss", 4)
    ended = train(config, out=tmp_path / "again")
    kept = json.loads((bench.out / "runs" / "step_size=0.3,seed=4" / "summary.json").read_text())
    assert ended.summary["final"] == kept["final"]


def test_a_name_in_the_config_stays(bench: Bench) -> None:
    sweep = bench.read("algorithm.step_size=0.01,0.3", changes=["run.name=mine", "evaluate.best_by=loss"])
    assert 'name = "mine"' in sweep.chosen_text(sweep.points[0], sweep.choice)
    assert 'best_by = "loss"' in sweep.chosen_text(sweep.points[0], sweep.choice)
    assert next(iter(sweep.jobs(sweep.points[0], bench.out, None, 2).values())).name == "step_size=0.01,seed=4"


def test_equal_points_go_to_the_first(bench: Bench) -> None:
    outcome = bench.run(bench.read("run.checkpoint_every=3,1,2"))
    assert outcome.best is outcome.results[0]


def test_finished_runs_are_not_run_again(bench: Bench) -> None:
    sweep, first, second = bench.read("algorithm.step_size=0.01,0.3", seeds="2"), Here(), Here()
    table = csv_text(table_rows(sweep, bench.run(sweep, first)))
    assert [name for name, _ in first.ran] == [
        "step_size=0.01,seed=4",
        "step_size=0.3,seed=4",
        "step_size=0.01,seed=5",
        "step_size=0.3,seed=5",
    ]
    assert csv_text(table_rows(sweep, bench.run(sweep, second))) == table
    assert second.ran == []


def test_bad_runs_are_marked_and_a_sound_point_is_chosen(bench: Bench) -> None:
    def instead(job: Job) -> Ended | None:
        return Ended("failed", "its process broke down") if job.name == "batch_size=32,step_size=0.3,seed=5" else None

    sweep = bench.read(
        "algorithm.batch_size=32,500,-1", "algorithm.step_size=0.01,0.3,1e9", seeds="2", choose="best validation loss"
    )
    outcome = bench.run(sweep, Here(instead))
    remarks = {result.point.name: (result.remark, result.why) for result in outcome.results}
    assert remarks["batch_size=32,step_size=0.01"] == ("", "")
    assert remarks["batch_size=32,step_size=0.3"] == ("failed 1 of 2", "its process broke down")
    assert remarks["batch_size=32,step_size=1e9"][0] == "diverged 2 of 2"
    assert remarks["batch_size=500,step_size=0.3"][0] == "refused 2 of 2"
    assert "500" in remarks["batch_size=500,step_size=0.3"][1]
    assert remarks["batch_size=-1,step_size=0.3"][0] == "refused"
    assert "algorithm.batch_size" in remarks["batch_size=-1,step_size=0.3"][1]
    # 0.3 would be better, but not with every seed
    assert outcome.best is not None
    assert outcome.best.point.name == "batch_size=32,step_size=0.01"
    table = lines(csv_text(table_rows(sweep, outcome)))
    assert [line["validation_loss"] == "" for line in table] == [False, False, *[True] * 7]


@pytest.mark.parametrize("smooth", [1, 3])
def test_fewest_rounds(bench: Bench, smooth: int, capsys: pytest.CaptureFixture[str]) -> None:
    choose = "fewest rounds to validation loss=0.7"
    changes = ["evaluate.every=1", f"evaluate.smooth={smooth}"]
    sweep = bench.read("algorithm.step_size=0.0001,0.05,0.3", changes=changes, choose=choose)
    outcome = bench.run(sweep)
    never, slow, quick = outcome.results
    assert never.remark == "not reached 1 of 1"
    assert outcome.best is quick
    for result in (slow, quick):
        (own,) = result.runs
        losses = [row["validation_loss"] for row in evaluations(Path(own.job.out))]
        means = [sum(losses[end - smooth : end]) / smooth for end in range(smooth, len(losses) + 1)]
        first = next(at for at, mean in enumerate(means, smooth - 1) if mean <= 0.7)
        assert result.values("round") == [first]
    print_table(sweep, outcome, Console())
    mean = f", at the mean of {smooth} evaluations" if smooth > 1 else ""
    assert f"Looked after every round{mean}." in capsys.readouterr().out


def test_halving_against_choosing_by_hand(bench: Bench, tmp_path: Path) -> None:
    """18 rounds: all five to round 2, the best two of them to round 6, the best one to round 18."""
    sizes = ("0.003", "0.3", "0.03", "0.01", "0.1")
    sweep = bench.read(f"algorithm.step_size={','.join(sizes)}", seeds="2", choose="last validation loss", halving=True)
    here = Here()
    outcome = bench.run(sweep, here)

    def loss(size: str, rounds: int) -> float:
        values = []
        for seed in (4, 5):
            path = tmp_path / f"{size}-{seed}"
            if not path.exists():
                changes = [f"algorithm.step_size={size}", f"run.seed={seed}", "run.threads=1"]
                train(read_config(bench.config, changes), out=path)
            values += [row["validation_loss"] for row in evaluations(path) if row["round"] == rounds]
        return mean(values)

    second = sorted(sizes, key=lambda size: loss(size, 2))[:2]
    third = min(second, key=lambda size: loss(size, 6))
    expected = [(size, 2) for size in sizes for _ in "ab"] + [(size, 6) for size in second for _ in "ab"]
    expected += [(third, 18)] * 2
    assert sorted((name.split("=")[1].split(",")[0], rounds) for name, rounds in here.ran) == sorted(expected)
    assert outcome.best is not None
    assert outcome.best.values("validation_loss") == pytest.approx([loss_of(tmp_path, third, seed) for seed in (4, 5)])
    assert [result.dropped for result in outcome.results] == [size != third for size in sizes]
    # as if it had never paused
    for seed in (4, 5):
        ours, whole = bench.out / "runs" / f"step_size={third},seed={seed}", tmp_path / f"{third}-{seed}"
        assert [row["validation_loss"] for row in evaluations(ours)] == [
            row["validation_loss"] for row in evaluations(whole)
        ]
    again = Here()
    assert csv_text(table_rows(sweep, bench.run(sweep, again))) == csv_text(table_rows(sweep, outcome))
    assert again.ran == []


def loss_of(folder: Path, size: str, seed: int) -> float:
    return evaluations(folder / f"{size}-{seed}")[-1]["validation_loss"]


def test_halving_with_runs_that_end_by_themselves(bench: Bench) -> None:
    """A point of which all runs diverge is dropped; one that reached its target is not run again."""
    changes = ["run.stop_at_targets=true", 'evaluate.targets=["accuracy=0.5"]']
    sweep = bench.read("algorithm.step_size=1e9,0.3", changes=changes, halving=True)
    outcome = bench.run(sweep)
    assert [result.dropped for result in outcome.results] == [True, False]
    again = Here()
    assert csv_text(table_rows(sweep, bench.run(sweep, again))) == csv_text(table_rows(sweep, outcome))
    assert again.ran == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"grid": ["algorithm.step_size=0.1,1"]}, "--grid"),
        ({"seeds": "3"}, "--seeds [0, 1, 2] (was [0, 1])"),
        ({"seeds": "0,1"}, "--seeds"),
        ({"changes": ["run.rounds=4"]}, "run.rounds = 4 (was 18)"),
        ({"halving": True}, "--halving"),
    ],
)
def test_another_sweep_is_refused(bench: Bench, asked: dict[str, object], words: str) -> None:
    settings = {"grid": ["algorithm.step_size=0.01,0.3"], "seeds": "2", "changes": [], "halving": False}

    def begin(**changed: object) -> None:
        merged = settings | changed
        grid = merged.pop("grid")
        assert isinstance(grid, list)
        bench.run(bench.read(*grid, **merged), Here(lambda _: Ended("failed")))  # type: ignore[arg-type]

    begin()
    with pytest.raises(RunError, match="was started otherwise") as caught:
        begin(**asked)
    assert words in str(caught.value)
    begin()


def test_a_folder_that_is_no_sweep(bench: Bench) -> None:
    bench.out.mkdir()
    (bench.out / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"is not a sweep's \(it has notes.txt\): choose another --out"):
        bench.run(bench.read("algorithm.step_size=0.01,0.3"))
    (bench.out / "notes.txt").unlink()
    (bench.out / "sweep.json").write_text("{")
    with pytest.raises(RunError, match=r"sweep\.json cannot be read"):
        bench.run(bench.read("algorithm.step_size=0.01,0.3"))


@pytest.mark.parametrize(
    ("grid", "choose", "words"),
    [
        (["run.rounds=2,4"], None, "leave run.rounds out of the grid"),
        (["run.patience=2,4"], "fewest rounds to validation loss=0.1", "asks when"),
        ([], None, "there is one point"),
    ],
)
def test_refused_with_halving(bench: Bench, grid: list[str], choose: str | None, words: str) -> None:
    with pytest.raises(CrosshatchError, match=words):
        bench.read(*grid, seeds="2", choose=choose, halving=True)


def test_no_point_can_be_run(bench: Bench) -> None:
    with pytest.raises(CrosshatchError, match=r"no point of the grid can be run; the first:.*-1"):
        bench.read("algorithm.local_steps=-1,-2")
    with pytest.raises(CrosshatchError, match=r"^a sweep chooses by validation rows, and there are none"):
        bench.read("algorithm.local_steps=1,2", changes=["data.validation="])
    with pytest.raises(CrosshatchError, match="is read from a data folder"):
        bench.read("algorithm.local_steps=1,2", changes=["data.name=mnist"])
