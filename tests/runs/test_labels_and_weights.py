"""Several labels and weights in whole runs: with validation rows, trials, and prediction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from crosshatch.data.build import build
from crosshatch.data.data_settings import DataSettings, FederationSettings
from crosshatch.errors import ModelError
from crosshatch.runs.choosing.trials import put_aside
from crosshatch.runs.config import changed_settings, read_config
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.runs.trained.load_run import load_run

LABELS = {"several": 'label = ["a", "b"]', "one": 'label = "a"\nleave_out = ["b"]'}


def write(folder: Path, labels: str, more: str = "") -> Path:
    x = np.random.default_rng(0).normal(size=(120, 3))
    columns = {"id": np.arange(120), "u": x[:, 0], "v": x[:, 1], "z": x[:, 2]}
    columns |= {"a": (x[:, 0] > 0).astype(int), "b": (x[:, 1] > x[:, 2]).astype(int)}
    pl.DataFrame(columns | {"w": np.linspace(0, 2, 120)}).write_csv(folder / "rows.csv")
    text = f'[data]\npath = "rows.csv"\nid = "id"\nsample_weights = "w"\n{LABELS[labels]}\n{more}\n'
    text += '[algorithm]\nname = "fedbcd"\nstep_size = 0.3\n[run]\nrounds = 3\nthreads = 1\n'
    (folder / "config.toml").write_text(text)
    return folder / "config.toml"


@pytest.mark.parametrize("labels", LABELS)
def test_validation_rows_and_predictions(tmp_path: Path, labels: str) -> None:
    config = read_config(write(tmp_path, labels, "validation = 0.2"))
    simulator = prepare(config, folder=None).simulator
    assert simulator.data.weighted
    assert simulator.data.y_validation is not None
    assert simulator.data.y_validation.shape[1:] == ((2,) if labels == "several" else ())
    train(config, out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    found = run.predict(pl.read_csv(tmp_path / "rows.csv").drop("a", "b", "w"))
    scores = torch.as_tensor(found.scores)
    if labels == "one":
        assert found.frame.columns == ["id", "score", "probability", "class"]
        return
    assert found.frame.columns == [
        "id", "score_a", "score_b", "probability_a", "probability_b", "class_a", "class_b"
    ]  # fmt: skip
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities, torch.sigmoid(scores).numpy())
    np.testing.assert_array_equal(found.classes, (scores > 0).long().numpy())


@pytest.mark.parametrize("labels", LABELS)
def test_samples_put_aside_have_no_weights(tmp_path: Path, labels: str) -> None:
    write(tmp_path, labels)
    named = DataSettings(
        path="rows.csv", id="id", label=("a", "b") if labels == "several" else "a", sample_weights="w",
        leave_out=() if labels == "several" else ("b",),
    )  # fmt: skip
    data = build(named, FederationSettings(silos=2), base=tmp_path, seed=1)
    aside = put_aside(data, seed=1, key="step_size")
    assert aside.y_test.shape == ((len(aside.y_test), 2) if labels == "several" else (len(aside.y_test),))
    assert set(aside.y_test.flatten().tolist()) <= {0.0, 1.0}
    assert aside.weighted
    config = read_config(tmp_path / "config.toml", ["algorithm.step_size=measure"])
    assert not prepare(config, folder=None).config.measured


def test_an_optimiser_is_a_changed_setting(tmp_path: Path) -> None:
    path = write(tmp_path, "one")
    changed = changed_settings(read_config(path), read_config(path, ["optimiser.name=adam"]))
    assert "optimiser.name = adam (was sgd)" in changed


def test_class_weights_with_a_loss_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from crosshatch import Logistic\n\n\nclass Mine:\n    target = 'binary'\n\n"
        "    def __getattr__(self, name):\n        return getattr(Logistic(), name)\n\n"
        "    def scores(self, classes):\n        return 1\n\n"
        "    def value(self, scores, y):\n        return Logistic().value(scores, y)\n\n"
        "    def derivative(self, scores, y):\n        return Logistic().derivative(scores, y)\n\n"
        "    def predict(self, scores):\n        return Logistic().predict(scores)\n"
    )
    changes = [f"model.loss={tmp_path / 'mine.py'}:Mine", "model.class_weights=balanced"]
    with pytest.raises(ModelError, match=r"model.class_weights with loss .*: they are for the losses"):
        prepare(read_config(write(tmp_path, "one"), changes), folder=None)
