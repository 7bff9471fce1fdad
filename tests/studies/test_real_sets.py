"""Studies from CSV files of four sets: written scores against scikit-learn, linear models against its own."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn import metrics as sk
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from crosshatch.studies.whole_study import read_study
from tests.support.small_studies import study_here

DATA = Path(__file__).parents[3] / "shared" / "data"
CONFIG = """
[data]
id = "id"
label = "y"
positive = "1"
impute = "median"
clip = 5.0
validation = 0.2
[federation]
labels = "one"
silos = [{{ name = "one", path = "one.csv" }}, {{ name = "other", path = "other.csv" }}]
[model]
block = "linear"
l2 = {l2}
penalise_bias = {penalised}
[algorithm]
name = "fedsgd"
[evaluate]
every = 20
metrics = ["auc", "loss"]
[run]
rounds = {rounds}
threads = 1
"""


def credit_default() -> tuple[np.ndarray, np.ndarray]:
    stored = np.load(DATA / "credit_default.npz")
    return stored["x"].astype(float), stored["y"].astype(int)


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    found = load_breast_cancer()
    return found.data, found.target


def physionet() -> tuple[np.ndarray, np.ndarray]:
    """Means over time, with gaps."""
    stored = np.load(DATA / "physionet2012.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of what was never measured in a stay
        means = np.nanmean(stored["x_train"], axis=1)
    kept = np.isfinite(means).mean(axis=0) > 0.2
    return means[:, kept].astype(float), stored["y_train"].astype(int)


def madelon() -> tuple[np.ndarray, np.ndarray]:
    stored = np.load(DATA / "madelon.npz")
    return stored["x"].astype(float), (stored["y"] > 0).astype(int)


SETS = {one.__name__: one for one in (credit_default, breast_cancer, physionet, madelon)}


@pytest.mark.slow
@pytest.mark.parametrize(("free", "l2"), [(True, 0.001), (True, 0.01), (False, 0.1)])
@pytest.mark.parametrize(
    ("name", "step", "rounds"),
    [("credit_default", "1", 400), ("breast_cancer", "0.5", 2000), ("physionet", "1", 6000), ("madelon", "0.5", 2000)],
)
def test_study_from_csv_files(name: str, step: str, l2: float, rounds: int, free: bool, tmp_path: Path) -> None:
    """Against scikit-learn's usual model, whose intercept is free, or with biases that are penalised, against that."""
    rounds = rounds if l2 < 0.01 else min(rounds, 1000)
    if name != "breast_cancer" and not (DATA / "credit_default.npz").is_file():
        pytest.skip("the data sets are not there")
    x, y = SETS[name]()
    half = x.shape[1] // 2
    ids = pl.Series("id", range(len(y)))
    for file, columns in (("one.csv", range(half)), ("other.csv", range(half, x.shape[1]))):
        frame = pl.DataFrame({f"c{k}": pl.Series(x[:, k]).fill_nan(None) for k in columns}).with_columns(ids)
        (frame.with_columns(pl.Series("y", y)) if file == "one.csv" else frame).write_csv(tmp_path / file)
    config = tmp_path / "real.toml"
    config.write_text(CONFIG.format(l2=l2, penalised=str(not free).lower(), rounds=rounds))
    result = study_here(config, tmp_path / "study", steps=(step,))

    table = pl.read_csv(tmp_path / "study" / "scores.csv").filter(pl.col("part") == "test")
    for line in pl.read_csv(tmp_path / "study" / "table.csv").iter_rows(named=True):
        scores = table[f"{line['method']}, seed 0"].to_numpy()
        probabilities, labels = 1 / (1 + np.exp(-scores)), table["label"].to_numpy()
        assert line["auc"] == pytest.approx(sk.roc_auc_score(labels, scores), abs=1e-9)
        assert line["pr_auc"] == pytest.approx(sk.average_precision_score(labels, scores), abs=1e-9)
        assert line["brier"] == pytest.approx(sk.brier_score_loss(labels, probabilities), abs=1e-9)
        assert line["loss"] == pytest.approx(sk.log_loss(labels, probabilities), abs=1e-9)

    data = read_study(config, [], seeds="1", steps=None, folder=None).data
    for method, silos in (("central", ("one", "other")), ("one alone", ("one",)), ("other alone", ("other",))):
        held = [silo for silo in data.silos if silo.name in silos]
        train, test = (np.concatenate([silo.rows(part).numpy() for silo in held], axis=1) for part in ("train", "test"))
        if not free:  # every block has a bias, and all of them are penalised: together one column of so much
            bias = len(held) ** 0.5
            train, test = (np.concatenate([rows, np.full((len(rows), 1), bias)], axis=1) for rows in (train, test))
        fitted = LogisticRegression(C=1 / (l2 * len(train)), fit_intercept=free, max_iter=20_000, tol=1e-8)
        fitted.fit(train, data.y_train.numpy())
        expected = sk.roc_auc_score(data.y_test.numpy(), fitted.decision_function(test))
        # trained out: after the last round, not at the one that validation rows chose
        (run,) = next(made.runs for made in result.made if made.method.name == method)
        found = run.summary["final"]["auc"]
        print(name, method, "ours", round(found, 5), "scikit-learn", round(expected, 5))
        assert found == pytest.approx(expected, abs=0.002)
    print(name, result.gain("central", "one alone"))
