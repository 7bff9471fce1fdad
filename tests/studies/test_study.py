"""A whole study: its figures against scikit-learn, what it chooses by, and what it says."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
import torch
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crosshatch.cli import main
from crosshatch.errors import ConfigError, DataError, RunError, TrainingError
from crosshatch.runs.stopping import Stop
from crosshatch.runs.trained.load_run import load_run
from crosshatch.studies.intervals import Kept, interval, judge, read_kept
from crosshatch.studies.study_folder import keep_study
from crosshatch.studies.study_result import StudyResult, verdict
from crosshatch.studies.whole_study import read_study, run_study
from crosshatch.sweeps.course import SweepListener
from crosshatch.task.losses import Logistic
from tests.support.small_studies import Here, study_here, write_config, write_rows

Floats = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResult, Path]:
    folder = tmp_path_factory.mktemp("made")
    write_rows(folder / "rows.csv", n=3000, seed=1, alone=0.7, joint=0.85)
    config = write_config(folder, rounds=60, algorithm="fedbcd")
    return study_here(config, folder / "study", seeds="2", steps=("0.3", "1")), folder / "study"


def scores_of(path: Path) -> tuple[Floats, dict[str, Floats]]:
    """Labels of the test rows, and their scores by the columns of scores.csv."""
    table = pl.read_csv(path / "scores.csv").filter(pl.col("part") == "test")
    return table["label"].to_numpy(), {name: table[name].to_numpy() for name in table.columns[3:]}


def test_metrics_of_the_written_scores_are_those_of_scikit_learn(made: tuple[StudyResult, Path]) -> None:
    _, path = made
    labels, scores = scores_of(path)
    for line in pl.read_csv(path / "table.csv").iter_rows(named=True):
        own = [values for name, values in scores.items() if name.startswith(f"{line['method']}, seed")]
        assert own
        probabilities = [1 / (1 + np.exp(-values)) for values in own]
        assert line["auc"] == pytest.approx(np.mean([sk.roc_auc_score(labels, one) for one in own]), abs=1e-9)
        assert line["pr_auc"] == pytest.approx(
            np.mean([sk.average_precision_score(labels, one) for one in own]), abs=1e-9
        )
        assert line["loss"] == pytest.approx(np.mean([sk.log_loss(labels, one) for one in probabilities]), abs=1e-9)
        assert line["brier"] == pytest.approx(
            np.mean([sk.brier_score_loss(labels, one) for one in probabilities]), abs=1e-9
        )
        assert line["auc_low"] < line["auc"] < line["auc_high"]


def test_trained_out_it_is_logistic_regression(made: tuple[StudyResult, Path]) -> None:
    """All columns, and either silo alone, on the very rows that the study trained on."""
    result, path = made
    data = read_study(path.parent / "made.toml", [], seeds="1", steps=None, folder=None).data
    y, tested = data.y_train.numpy(), data.y_test.numpy()
    parts = {silo.name: (silo.train.numpy(), silo.test.numpy()) for silo in data.silos}
    parts["all"] = tuple(np.concatenate([each[k] for each in parts.values()], axis=1) for k in (0, 1))  # type: ignore[assignment]
    for name, method in (("all", "central"), ("bank", "bank alone"), ("insurer", "insurer alone")):
        train, test = parts[name]
        fitted = make_pipeline(StandardScaler(), LogisticRegression(C=1e6)).fit(train, y)
        found = result.judged.of(method, "auc")
        assert found is not None
        assert found.value == pytest.approx(sk.roc_auc_score(tested, fitted.decision_function(test)), abs=0.002)


def test_the_sentences_carry_the_figures(made: tuple[StudyResult, Path]) -> None:
    result, path = made
    said, gain = verdict(result), result.gain("central", "bank alone")
    assert gain is not None
    assert gain.shown
    assert said.headline == (f"The columns of insurer add {gain.low:.3f} to {gain.high:.3f} AUC to what bank has alone")
    assert "600 test rows" in said.how
    stored = json.loads((path / "result.json").read_text())
    assert stored["headline"] == said.headline
    assert {one["of"] for one in stored["differences"]} == {"central", "fedbcd"}
    # each silo is needed, and the more telling one more
    assert result.contribution("insurer").value > result.contribution("bank").value > 0  # type: ignore[union-attr]


def test_step_sizes_and_rounds_are_chosen_by_validation_rows(made: tuple[StudyResult, Path]) -> None:
    result, path = made
    for one in result.made:
        losses = {}
        for step in one.tried:
            name = f"method={one.method.name.replace(' ', '-')},step_size={step},seed=0"
            losses[step] = json.loads((path / "runs" / name / "summary.json").read_text())["best_round"][
                "validation_loss"
            ]
        assert min(losses, key=lambda step: losses[step]) == one.step
        for run in one.runs:
            chosen = run.summary["best_round"]
            assert chosen["by"] == "validation_loss"
            assert chosen["validation_loss"] == min(row["validation_loss"] for row in run.metrics)


def test_what_is_written(made: tuple[StudyResult, Path]) -> None:
    _, path = made
    found = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
    assert found == [
        "chosen.toml", "fingerprint.json", "report.html", "result.json", "runs", "scores.csv", "study.json",
        "table.csv", "yardsticks",
    ]  # fmt: skip
    page = (path / "report.html").read_text()
    assert "boosted trees, bank alone" in page
    assert "rows of one silo are shuffled" in page
    chosen = tomllib.loads((path / "chosen.toml").read_text())
    assert chosen["algorithm"]["name"] == "fedbcd"
    assert "keep_scores" not in chosen["evaluate"] or not chosen["evaluate"]["keep_scores"]


def test_the_silo_alone_predicts_by_itself(made: tuple[StudyResult, Path]) -> None:
    result, _ = made
    alone = next(one for one in result.made if one.method.silo == "insurer")
    run = load_run(alone.runs[0].path)
    assert run.silos == ("insurer",)
    labels, _ = scores_of(made[1])
    assert len(run.predict().frame) == len(labels)


def test_the_same_again_repeats_no_run(made: tuple[StudyResult, Path]) -> None:
    _, path = made
    before = {name: (path / name).read_bytes() for name in ("table.csv", "scores.csv", "result.json")}
    asked = read_study(path.parent / "made.toml", [], seeds="2", steps=("0.3", "1"), folder=None)
    executor = Here()
    assert run_study(asked, path, None, executor=executor, listener=SweepListener(), stop=Stop()) is not None
    assert executor.ran == []
    assert {name: (path / name).read_bytes() for name in before} == before
    other = read_study(path.parent / "made.toml", [], seeds="3", steps=("0.3", "1"), folder=None)
    with pytest.raises(RunError, match="--seeds has changed; undo this, or choose another --out"):
        run_study(other, path, None, executor=executor, listener=SweepListener(), stop=Stop())


def test_a_study_that_finished_no_run_may_begin_anew(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", n=200, seed=1, alone=0.7, joint=0.9)
    path, out = write_config(tmp_path), tmp_path / "study"
    asked = read_study(path, ["run.rounds=20"], seeds="1", steps=("1",), folder=None)
    out.mkdir()
    keep_study(asked.config, asked.seeds, asked.steps, asked.fingerprint, out)  # and then it was stopped
    assert (out / "study.json").is_file()
    stale = out / "runs" / "stopped"
    stale.mkdir(parents=True)
    study_here(path, out)
    assert not stale.exists()
    with pytest.raises(RunError, match="the config has changed; undo this"):
        study_here(path, out, changes=["run.rounds=20"])


def test_where_all_diverge_it_says_so(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", n=200, seed=1, alone=0.7, joint=0.9)
    with pytest.raises(TrainingError, match=r"no method of the study in .* came to anything; the first: diverged"):
        study_here(write_config(tmp_path), tmp_path / "study", steps=("1e30",), changes=["algorithm.step_size=1e29"])


def test_bootstrap_agrees_with_the_formula_for_accuracy() -> None:
    rng = np.random.default_rng(0)
    y = torch.tensor(rng.integers(0, 2, 400), dtype=torch.float32)
    right = torch.tensor(rng.random(400) < 0.8)
    scores = torch.where(right, 2 * y - 1, 1 - 2 * y)[:, None]
    kept = Kept(scores, y, scores, y)
    found = judge({"one": [kept]}, ["accuracy"], Logistic()).of("one", "accuracy")
    assert found is not None
    share = float(right.float().mean())
    error = 1.96 * np.sqrt(share * (1 - share) / 400)
    assert (found.low, found.high) == pytest.approx((share - error, share + error), abs=0.006)


def test_an_interval_is_of_the_draws_and_not_of_the_value() -> None:
    found = interval(np.array([9.0, *np.linspace(0, 1, 1001)]))
    assert (found.value, found.low, found.high) == pytest.approx((9.0, 0.025, 0.975))
    assert not interval(np.array([0.0, 0.0, 0.0])).shown


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["algorithm.name=central"], "a study adds central training by itself"),
        (["algorithm.name=mtcd", "algorithm.step_size=auto"], "needs the labels at every agent, 'bank' alone has them"),
        (["algorithm.batch_size=5000"], "more than the 64 training samples"),
        (['federation.silos=[{name="bank",columns=["b*"]}]', "federation.labels=shared"], "there is one: name several"),
    ],
)
def test_what_cannot_be_studied(tmp_path: Path, changes: list[str], message: str) -> None:
    write_rows(tmp_path / "rows.csv", n=100, seed=1, alone=0.7, joint=0.8)
    with pytest.raises(ConfigError, match=message):
        read_study(write_config(tmp_path), changes, seeds="1", steps=None, folder=None)


def test_a_step_size_that_is_refused_does_not_refuse_the_method(tmp_path: Path) -> None:
    """Above two over the smoothness of a linear block; the study tries smaller ones."""
    write_rows(tmp_path / "rows.csv", n=100, seed=1, alone=0.7, joint=0.8)
    changes = ["algorithm.name=mtcd", "algorithm.tokens=2", "algorithm.step_size=5.0", "federation.labels=shared"]
    assert read_study(write_config(tmp_path), changes, seeds="1", steps=None, folder=None).course.methods


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv", n=200, seed=1, alone=0.7, joint=0.9)
    write_config(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["study", "made.toml", "--seeds", "1", "--steps", "0.3,no", "--jobs", "1"])
    assert ended.value.code == 2
    assert "'no' is not a positive number" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["study", "made.toml", "--seeds", "1", "--steps", "1", "--jobs", "1"])
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert "The columns of insurer add" in printed
    assert "boosted trees, all columns" in printed
    with (tmp_path / "studies/made/scores.csv").open() as file:
        assert next(csv.reader(file))[:3] == ["part", "row", "label"]
    assert read_kept(next((tmp_path / "studies/made/runs").iterdir())).scores.shape == (40, 1)


@pytest.mark.parametrize(("rows", "positive", "shown"), [(40, 10, True), (40, 9, False), (19, 9, False)])
def test_on_very_few_rows_nothing_is_certain(rows: int, positive: int, shown: bool) -> None:
    """One method tells the classes apart on all rows, and so in every draw; the other says the same of all rows."""
    y = (torch.arange(rows) < positive).float()
    right, same = (Kept(one, y, one, y) for one in (y[:, None] - 0.5, torch.zeros(rows, 1)))
    judged = judge({"right": [right], "same": [same]}, ["auc"], Logistic())
    found = judged.difference("right", "same", "auc")
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)
    assert (found.shown, (-found).shown) == (shown, shown)


def test_thirty_rows_are_said_to_be_few(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", n=30, seed=1, alone=0.6, joint=0.95)
    said = verdict(study_here(write_config(tmp_path), tmp_path / "study"))
    assert "not shown" in said.headline
    assert "no difference counts as shown" in said.how
    assert all("takes" in text for text in said.certain)  # what was sent is certain


def test_test_rows_of_one_class_are_refused_at_once(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", n=60, seed=1, alone=0.6, joint=0.95)
    table = pl.read_csv(tmp_path / "rows.csv")
    table.with_columns(y=pl.Series([1, 1] + [0] * 58)).write_csv(tmp_path / "rows.csv")
    with pytest.raises(DataError, match=r"all \d+ (test|validation) rows are of one class"):
        study_here(write_config(tmp_path), tmp_path / "study")
    assert not (tmp_path / "study").exists()
