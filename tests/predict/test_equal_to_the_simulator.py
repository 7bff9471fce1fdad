"""What `predict` says of new rows is what the simulator says of them, whatever the data, the model and the method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from crosshatch import load_run
from crosshatch.predict.predictions import Predictions
from tests.predict.cases import (
    Case,
    Tables,
    files_case,
    image_case,
    paths,
    scores_of_test_rows,
    sequence_case,
    table_case,
    trained,
)
from tests.support.predicting import HEAD, OWN_BLOCK

MODELS: dict[str, tuple[str, Tables]] = {
    "binary sum": ("binary", {}),
    "binary head": ("binary", HEAD | {"head": "mlp", "head_hidden": [4]}),
    "multiclass sum": ("multiclass", {"block": "mlp", "hidden": [5]}),
    "multiclass head": ("multiclass", HEAD | {"blocks": {"b": {"outputs": 2, "hidden": [2], "activation": "tanh"}}}),
    "regression sum": ("regression", {}),
    "regression head": ("regression", HEAD),
    "own block": ("binary", {"block": "own.py:Wave"}),
}


def require_equal(folder: Path, case: Case, **sections: Tables) -> Predictions:
    """Train, and compare new rows, the module and the exported program with the simulator."""
    out, simulator = trained(folder, case, **sections)
    wanted = scores_of_test_rows(simulator)
    run = load_run(out)
    rows = run.prepare(paths(folder, case.new))
    found = run.predict(paths(folder, case.new))
    # files of their own are joined in the order of the first; the simulator has ascending ids
    order = np.argsort(found.ids, kind="stable")
    np.testing.assert_allclose(found.scores[order], wanted.numpy(), rtol=0, atol=1e-6)
    own = run.predict(folder=folder)
    assert np.array_equal(own.scores, wanted.numpy())  # the run's own test rows, as one
    torch.testing.assert_close(run.module()(*rows.xs)[torch.from_numpy(order)], wanted, rtol=0, atol=1e-6)
    run.export(folder / "model.pt2")
    program = torch.export.load(folder / "model.pt2").module()
    torch.testing.assert_close(program(*rows.xs)[torch.from_numpy(order)], wanted, rtol=0, atol=1e-6)
    two = [x[:2] for x in rows.xs]  # any number of rows
    torch.testing.assert_close(program(*two), run.module()(*two), rtol=0, atol=1e-6)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_tables(tmp_path: Path, name: str) -> None:
    target, model = MODELS[name]
    (tmp_path / "own.py").write_text(OWN_BLOCK)
    found = require_equal(tmp_path, table_case(tmp_path, target, model))
    assert found.ids.tolist() == list(range(1000, 1030))
    if target == "regression":
        assert found.frame.columns == ["id", "prediction"]
    if target == "multiclass":
        assert found.probabilities is not None
        assert found.classes is not None
        np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(found.classes, found.probabilities.argmax(axis=1).astype(str))
    if target == "binary":
        assert found.positive == "yes"
        assert found.probabilities is not None
        np.testing.assert_allclose(found.probabilities, 1 / (1 + np.exp(-found.scores[:, 0].astype(float))), rtol=1e-5)
        assert found.classes is not None
        np.testing.assert_array_equal(found.classes, np.where(found.probabilities > 0.5, "yes", "no"))


@pytest.mark.parametrize(
    "data",
    [
        {"impute": "mean", "indicators": False, "standardise": False},
        {"impute": "zero", "clip": 0.5},
        {"positive": "no"},
    ],
)
def test_every_preparation(tmp_path: Path, data: Tables) -> None:
    slow = {"name": "tdcd", "step_size": 0.001}  # columns that are not standardised are large
    found = require_equal(tmp_path, table_case(tmp_path, "binary", None, **data), algorithm=slow)
    assert found.names == (("yes", "no") if "positive" in data else ("no", "yes"))


def test_a_file_per_silo(tmp_path: Path) -> None:
    require_equal(tmp_path, files_case(tmp_path))


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"block": "cnn", "channels": 3, "dense": 5, "fusion": "head"},
        {"block": "resnet18", "channels": 2},
    ],
)
def test_images(tmp_path: Path, model: Tables) -> None:
    found = require_equal(tmp_path, image_case(tmp_path, model))
    assert found.ids.tolist() == list(range(500, 530))


@pytest.mark.parametrize("fusion", ["sum", "head"])
def test_sequences(tmp_path: Path, fusion: str) -> None:
    case = sequence_case(tmp_path)
    found = require_equal(tmp_path, Case(case.tables | {"model": case.tables["model"] | {"fusion": fusion}}, case.new))
    assert found.ids.tolist() == list(range(1, 31))  # without ids rows are numbered


ALGORITHMS: dict[str, Tables] = {
    "central": {},
    "fedavg": {},
    "fedsgd": {},
    "fedbcd": {},
    "abcd": {},
    "hsgd": {"groups": 2},
    "jfl": {"groups": 2},
    "stcd": {"agents": True},
    "mtcd": {"agents": True},
    "dcpa": {"agents": True},
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms(tmp_path: Path, name: str) -> None:
    case, asked = table_case(tmp_path), ALGORITHMS[name]
    federation = case.tables["federation"] | {"clients": 1 if name in ("fedsgd", "fedbcd") or "agents" in asked else 3}
    algorithm: Tables = {"name": name}
    if "agents" in asked:
        algorithm |= {"graph": {"kind": "complete"}} | ({"tokens": 2} if name == "mtcd" else {})
    if name == "fedavg":
        federation |= {"silos": [{"name": "all", "columns": ["age", "colour", "income", "code"]}]}
    if "groups" in asked:
        federation |= {"groups": asked["groups"]}
    tables = {key: value for key, value in case.tables.items() if key != "federation"}
    model = {"l2": 0.1} if name == "dcpa" else {}
    require_equal(tmp_path, Case(tables | {"federation": federation}, case.new), algorithm=algorithm, model=model)


def test_double_precision(tmp_path: Path) -> None:
    found = require_equal(tmp_path, table_case(tmp_path), run={"precision": "float64", "rounds": 2, "threads": 1})
    assert found.scores.dtype == np.float64
