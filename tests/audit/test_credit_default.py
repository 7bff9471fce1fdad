"""The figures of docs/howto/audit.md on credit default, where its file is at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.attacks import audit_attacks
from crosshatch.audit.audited_run import open_run
from crosshatch.audit.theorem1 import audit_theorem1
from crosshatch.runs.config import decode_config
from crosshatch.runs.train import train
from tests.support.data_folder import Need

TABLES: dict[str, Any] = {
    "data": {"name": "credit_default"},
    "federation": {
        "labels": "payments",
        "silos": [
            {"name": "payments", "columns": ["PAY_*", "BILL_AMT*"]},
            {"name": "profile", "columns": ["LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE"]},
        ],
    },
    "algorithm": {"name": "fedbcd", "local_steps": 5, "batch_size": 256},
    "run": {"name": "credit", "rounds": 500, "threads": 1, "precision": "float64", "record_messages": True},
}


def findings(out: Path, folder: Path) -> dict[str, AttackFindings]:
    """What silo 'profile' gives away and finds out, by attack."""
    found = audit_attacks(out, folder=folder).findings
    return {one.attack: one for one in found if one.target in ("profile", "labels, by profile")}


def with_all_weights(out: Path, folder: Path) -> float:
    """R^2 of the rows of 'profile' if its weights of every round are known, and the mean and covariance of rows."""
    with open_run(out, folder) as run:
        rows = run.features(1).double().numpy()
        told: list[list[tuple[float, ...]]] = [[] for _ in rows]
        for heard in run.heard:
            if heard.exchange == "share":
                (weights,), bias = run.linear_weights(1, run.again.weights[heard.round])
                for i, value in zip(heard.ids, heard.values[:, 0].tolist(), strict=True):
                    told[i].append((*weights, value - bias[0]))
    middle, root = rows.mean(axis=0), np.linalg.cholesky(np.cov(rows.T))
    guess = np.tile(middle, (len(rows), 1))
    for i, equations in enumerate(map(np.array, told)):
        if len(equations):
            by, values = equations[:, :-1] @ root, equations[:, -1] - equations[:, :-1] @ middle
            guess[i] += root @ np.linalg.lstsq(by, values, rcond=1e-9)[0]
    return float(1 - (((guess - rows) ** 2).sum(axis=0) / ((rows - middle) ** 2).sum(axis=0)).mean())


@pytest.mark.slow
def test_linear(tmp_path: Path, need: Need) -> None:
    train(decode_config(TABLES), out=tmp_path / "run", folder=need("credit_default"))
    found = audit_theorem1(tmp_path / "run", folder=need("credit_default"))
    for silo in found.silos:
        assert (silo.message_difference or 1) < 1e-9
        assert (silo.data_difference or 0) > 0.5
        assert silo.statistics_kept
    weights, rows = found.silos[1].recoveries
    assert weights.error is not None
    assert rows.error is not None
    assert max(weights.error, rows.error) < 1e-9
    assert weights.share == pytest.approx(0.615, abs=0.02)
    attacks = findings(tmp_path / "run", need("credit_default"))
    labels, decoder = attacks["labels by derivatives"], attacks["rows by a decoder"]
    assert labels.figures["accuracy by sign"] == 1
    assert labels.figures["AUC by norm"] == pytest.approx(0.97, abs=0.02)
    assert "1.07% of all samples and rounds were in a batch" in decoder.remark  # 256 of 24,000
    most = with_all_weights(tmp_path / "run", need("credit_default"))  # 61% of all rows, and a part of the others
    assert decoder.figures["R^2 with 10 known rows"] > most - 0.02
    assert decoder.figures["R^2 with 1,500 known rows"] > most - 0.02
    blind = attacks["columns by blind separation"]
    assert blind.remark.startswith("of 1,8")  # samples of 3,000 whose messages tell all
    assert blind.figures["of these found exactly"] == 1  # SEX


@pytest.mark.slow
def test_wide_embeddings(tmp_path: Path, need: Need) -> None:
    model = {"block": "mlp", "fusion": "head", "outputs": 32}
    train(
        decode_config(TABLES | {"model": model, "run": TABLES["run"] | {"rounds": 200}}),
        out=tmp_path / "run", folder=need("credit_default"),
    )  # fmt: skip
    attacks = findings(tmp_path / "run", need("credit_default"))
    labels, decoder = attacks["labels by derivatives"], attacks["rows by a decoder"]
    assert labels.figures["AUC by cosine to a known one"] > 0.99
    assert attacks["labels by clusters of directions"].figures["accuracy up to the names of the classes"] > 0.99
    assert decoder.figures["R^2 with 1,500 known rows"] > 0.82  # 0.864 when it was measured, with 8% of the numbers
    assert "as wide as its features (32 for 5)" in decoder.warning
