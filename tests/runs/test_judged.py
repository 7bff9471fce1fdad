"""What a run says of its test rows: noise, decisions, kept scores; and targets that are not luck."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn import metrics as sk

from crosshatch.runs.train import train
from crosshatch.runs.trained.judged import SCORES
from tests.support.run_configs import MakeConfig


def test_kept_scores_are_those_that_were_measured(make_config: MakeConfig, out: Path) -> None:
    asked = {"keep_scores": True, "metrics": ["auc", "brier"], "best_by": "auc"}
    summary = train(make_config(evaluate=asked, data={"name": "breast_cancer", "validation": 0.2}), out=out).summary
    kept = load_file(out / SCORES)
    best = summary["best_round"]
    assert sk.roc_auc_score(kept["test.y"], kept["test.scores"][:, 0]) == pytest.approx(best["auc"], abs=1e-9)
    validation = sk.roc_auc_score(kept["validation.y"], kept["validation.scores"][:, 0])
    assert validation == pytest.approx(best["validation_auc"], abs=1e-9)
    predicted = 1 / (1 + np.exp(-kept["test.scores"][:, 0].astype(float))) > summary["decisions"]["threshold"]
    assert summary["decisions"]["f1"] == pytest.approx(sk.f1_score(kept["test.y"], predicted))
    assert summary["decisions"]["on_validation"]
    # with the rows of either silo in another order the joint model is worse
    for silo in ("a", "b"):
        assert sk.roc_auc_score(kept["test.y"], kept[f"without.{silo}"][:, 0]) < best["auc"]


def test_noise_is_the_standard_error(make_config: MakeConfig, out: Path) -> None:
    summary = train(make_config(), out=out).summary
    share, rows = summary["final"]["accuracy"], summary["test_rows"]
    assert rows == 114
    assert summary["noise"]["accuracy"] == pytest.approx(np.sqrt(share * (1 - share) / rows), rel=0.25)
    assert json.loads((out / "summary.json").read_text()) == summary


def test_a_smoothed_target_ends_a_run_later(make_config: MakeConfig, tmp_path: Path) -> None:
    run = {"stop_at_targets": True, "rounds": 50}
    first = train(make_config(run=run), out=tmp_path / "first").summary
    smooth = train(make_config(run=run, evaluate={"smooth": 4}), out=tmp_path / "smooth").summary
    assert smooth["rounds"] > first["rounds"]
    assert smooth["targets"]["auc>=0.9"]["round"] == smooth["rounds"]
