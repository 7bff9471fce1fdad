"""A model party by party, each with its own files and rows; and arrays given in Python."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from crosshatch import load_run
from crosshatch.data.new_rows import read_rows
from crosshatch.errors import DataError, RunError
from crosshatch.runs.trained.read_model import read_common, read_part
from tests.predict.cases import Case, files_case, scores_of_test_rows, trained


@pytest.mark.parametrize("fusion", ["sum", "head"])
def test_every_party_with_its_own_files(tmp_path: Path, fusion: str) -> None:
    """A silo's two files, model.json and its own rows are enough for its embeddings; only these meet."""
    case = files_case(tmp_path)
    out, simulator = trained(tmp_path, Case(case.tables | {"model": {"fusion": fusion}}, case.new))
    embeddings = []
    for silo, name in (("left", "left_test.csv"), ("right", "right_test.parquet")):
        home = tmp_path / f"home of {silo}"
        home.mkdir()
        for file in (f"{silo}.json", f"{silo}.safetensors", "model.json"):
            shutil.copy(out / "model" / file, home / file)
        part = read_part(home, silo, read_common(home))
        rows = read_rows(tmp_path / name)
        assert isinstance(rows.x, pl.DataFrame)
        ascending = np.argsort(rows.x["id" if silo == "left" else "nr"].to_numpy())
        embeddings.append(part.embed(part.prepare(rows, own=True)[ascending]))
    assert torch.equal(load_run(out).model.fuse(embeddings), scores_of_test_rows(simulator))


def array_case(folder: Path) -> tuple[Case, Any]:
    """A table from an archive, whose columns have no names; silo b holds the last two of four."""
    random = np.random.default_rng(8)
    x, y = random.normal(size=(80, 4)), random.integers(0, 2, 80)
    np.savez(folder / "plain.npz", x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])
    silos = [{"name": "a", "span": [0, 2]}, {"name": "b", "span": [2, 4]}]
    return Case({"data": {"name": "plain"}, "federation": {"silos": silos}}, ""), x[60:]


def test_arrays(tmp_path: Path) -> None:
    case, x = array_case(tmp_path)
    out, simulator = trained(tmp_path, case)
    run = load_run(out)
    wanted = scores_of_test_rows(simulator).numpy()
    assert np.array_equal(run.predict(x).scores, wanted)
    assert run.predict(x).ids.tolist() == list(range(1, 21))
    frame = pl.DataFrame({f"x{i}": x[:, i] for i in range(4)} | {"nr": np.arange(20)})
    assert np.array_equal(run.predict(frame).scores, wanted)
    np.savez(tmp_path / "a.npz", x=x[:, :2], id=np.arange(20))
    np.savez(tmp_path / "b.npz", x=x[:, 2:], id=np.arange(20))
    files = {"a": tmp_path / "a.npz", "b": tmp_path / "b.npz"}
    assert np.array_equal(run.predict(files).scores, wanted)
    by_silo = {"a": frame.select("nr", "x0", "x1"), "b": frame.select("nr", "x2", "x3").reverse()}
    assert np.array_equal(run.predict(by_silo, id_column="nr").scores, wanted)


def test_what_is_neither_a_file_nor_rows(tmp_path: Path) -> None:
    case, x = array_case(tmp_path)
    run = load_run(trained(tmp_path, case)[0])
    bad: list[tuple[Any, str]] = [
        (x[:, :3], "has no column 'x3', which silo 'b' was trained on"),
        (x[:0], "there are none, give at least one"),
        ([], "no rows are given"),
        ({}, "no rows for silo 'a': give its file too, as a=FILE"),
        (object(), "rows given as number 1 are of type object: give a file, a polars table"),
        ({"a": {}, "b": x}, "rows of 'a' are of type dict"),
        (x.astype(str), "are an array of type <U32: give numbers"),
        ({"a": x[:, :2], "b": x[:, 2:]}, "rows of 'a' has no ids, and rows in several files are joined on them"),
        ({"a": x, "b": x, "c": x}, "'c' is not a silo of this model"),
    ]
    for data, message in bad:
        with pytest.raises(DataError, match=message):
            run.predict(data)


def test_files_of_two_runs_are_not_mixed(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    paths = []
    for folder, outputs in zip(folders, (2, 3), strict=True):
        folder.mkdir()
        case = array_case(folder)[0]
        model = {"block": "mlp", "hidden": [3], "fusion": "head", "outputs": outputs}
        paths.append(trained(folder, case, model=model)[0])
    for name in ("a.json", "a.safetensors"):
        (paths[0] / "model" / name).write_bytes((paths[1] / "model" / name).read_bytes())
    with pytest.raises(RunError, match="are not of one run: outputs per silo are 'a' 3, 'b' 2"):
        load_run(paths[0])


def test_the_module_is_a_copy(tmp_path: Path) -> None:
    case, x = array_case(tmp_path)
    run = load_run(trained(tmp_path, case)[0])
    before = run.predict(x).scores
    module = run.module()
    assert not module.training
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    assert np.array_equal(run.predict(x).scores, before)
