"""Scores of all rounds give columns away: blind separation on runs of tables that are made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.attacks import audit_attacks
from crosshatch.audit.on_rows.separation import separate
from crosshatch.runs.config import decode_config
from crosshatch.runs.train import train

NUMERIC = ("age", "hours", "gain")


def separated(folder: Path, algorithm: dict[str, Any], rounds: int) -> AttackFindings:
    """What `audit attacks` reports of a silo with one column of two values and three numeric ones."""
    draw = np.random.default_rng(7)
    rows = 1200
    two = draw.random(rows) < 0.3
    columns = {
        "member": two.astype(np.float64),
        "age": 17 + 60 * draw.beta(1.2, 2.5, rows),
        "hours": 40 + 8 * draw.laplace(size=rows) + 4 * two,
        "gain": draw.exponential(2.0, rows),
    }
    theirs = draw.normal(size=(rows, 3))
    signal = two + columns["age"] / 20 + columns["hours"] / 10 - columns["gain"] + theirs.sum(axis=1)
    label = signal + draw.normal(size=rows) > np.median(signal)
    table = np.column_stack([np.arange(rows), *columns.values(), theirs, label])
    names = ["id", *columns, "b0", "b1", "b2", "label"]
    np.savetxt(folder / "table.csv", table, "%.10g", ",", header=",".join(names), comments="")
    silos = [{"name": "a", "columns": list(columns)}, {"name": "b", "columns": names[5:8]}]
    tables: dict[str, Any] = {
        "data": {"path": str(folder / "table.csv"), "id": "id", "label": "label"},
        "federation": {"labels": "b", "silos": silos},
        "algorithm": algorithm,
        "run": {"name": "one", "rounds": rounds, "threads": 1, "record_messages": True},
    }
    train(decode_config(tables), out=folder / "run")
    found = audit_attacks(folder / "run").findings
    (one,) = [one for one in found if one.attack == "columns by blind separation" and one.target == "a"]
    return one


@pytest.mark.parametrize(
    ("algorithm", "rounds"),
    [
        ({"name": "fedbcd"}, 40),
        ({"name": "fedsgd"}, 40),
        ({"name": "fedbcd", "batch_size": 400}, 60),
        ({"name": "fedbcd", "batch_size": 400, "draw": "partition", "division_seed": 5}, 60),  # as under encryption
    ],
)
def test_columns_come_out_of_scores(algorithm: dict[str, Any], rounds: int, tmp_path: Path) -> None:
    found = separated(tmp_path, algorithm, rounds)
    assert found.figures["columns of two values"] == 1
    assert found.figures["of these found exactly"] == 1
    assert found.figures["columns at 0.9 and more"] == 1 + len(NUMERIC)
    assert found.figures["mean correlation"] > 0.95
    assert found.beside["mean correlation, chance"] < 0.9


def test_columns_that_go_together_are_nearly_the_largest_direction() -> None:
    draw = np.random.default_rng(3)
    columns = draw.laplace(size=(800, 1)) + 0.3 * draw.exponential(size=(800, 6))
    directions, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    found = separate(directions * np.sqrt(len(columns)), sizes / sizes[0], columns, seed=1)
    largest = np.linalg.svd(columns - columns.mean(axis=0))[0][:, 0]
    assert found.highest >= abs(np.corrcoef(largest, columns.T)[0, 1:]).mean() - 1e-3


def test_columns_made_of_two_are_near_the_components_of_few_directions() -> None:
    """Six columns, each one of two and a little of its own: six directions that count alike hide the two."""
    draw = np.random.default_rng(4)
    two = draw.laplace(size=(800, 2))
    columns = two[:, np.arange(6) % 2] + 0.3 * draw.normal(size=(800, 6))
    directions, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    found = separate(directions * np.sqrt(len(columns)), sizes / sizes[0], columns, seed=1)
    assert found.highest > 0.94
    assert found.chance < 0.9
