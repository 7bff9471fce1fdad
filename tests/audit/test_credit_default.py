"""The figures of docs/howto/audit.md on credit default, where its file is at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crosshatch.audit.attacks import audit_attacks
from crosshatch.audit.theorem1 import audit_theorem1
from crosshatch.runs.config import decode_config
from crosshatch.runs.train import train
from tests.conftest import Need

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
    labels, _, decoder, *_ = audit_attacks(tmp_path / "run", folder=need("credit_default")).findings
    assert labels.figures["accuracy by sign"] == 1
    assert labels.figures["AUC by norm"] == pytest.approx(0.97, abs=0.02)
    assert decoder.remark.startswith("2,000 known samples, 22,000 others")
    assert decoder.figures["R^2"] == pytest.approx(0.23, abs=0.05)


def test_wide_embeddings(tmp_path: Path, need: Need) -> None:
    model = {"block": "mlp", "fusion": "head", "outputs": 32}
    train(
        decode_config(TABLES | {"model": model, "run": TABLES["run"] | {"rounds": 200}}),
        out=tmp_path / "run", folder=need("credit_default"),
    )  # fmt: skip
    labels, _, decoder, *_ = audit_attacks(tmp_path / "run", folder=need("credit_default")).findings
    assert labels.figures["AUC by cosine to a known one"] > 0.99
    assert decoder.figures["R^2"] > 0.98
    assert "as wide as its features (32 for 5)" in decoder.warning
