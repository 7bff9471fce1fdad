"""Text files as the NIPS 2003 challenge has them, made up: Gisette itself is too large to ship."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.dataset import Array
from crosshatch.data.public_sets.catalogue import check, rows
from crosshatch.errors import DataError


def write(folder: Path, part: str, x: Array, y: Array, name: str = "gisette") -> None:
    """A space at the end of every line, as in the published files."""
    lines = ["".join(f"{value} " for value in row) + "\n" for row in x.tolist()]
    (folder / f"{name}_{part}.data").write_text("".join(lines))
    (folder / f"{name}_{part}.labels").write_text("".join(f"{label}\n" for label in y.tolist()))


@pytest.fixture
def gisette(tmp_path: Path) -> tuple[Array, Array, Path]:
    random = np.random.default_rng(0)
    x, y = random.integers(0, 1000, (14, 6)), np.array([-1, 1] * 7)
    write(tmp_path, "train", x[:10], y[:10])
    write(tmp_path, "valid", x[10:], y[10:])
    return x, y, tmp_path


def test_numbers_and_labels_are_those_of_the_files(gisette: tuple[Array, Array, Path]) -> None:
    x, y, folder = gisette
    dataset = load_dataset("gisette", folder)
    assert (dataset.kind, dataset.target, dataset.classes) == ("table", "binary", 2)
    np.testing.assert_array_equal(np.asarray(dataset.train.x), x[:10])
    np.testing.assert_array_equal(np.asarray(dataset.test.x), x[10:])
    np.testing.assert_array_equal(dataset.train.y, y[:10] > 0)
    np.testing.assert_array_equal(dataset.test.y, y[10:] > 0)
    data = federate(dataset, FederationSettings(silos=3), seed=0)
    assert [tuple(silo.train.shape) for silo in data.silos] == [(10, 2)] * 3


def test_a_made_up_one_is_seen_and_fails_the_checks_of_the_real_one(gisette: tuple[Array, Array, Path]) -> None:
    *_, folder = gisette
    findings = {finding.found for finding in check("gisette", folder)}
    assert "10 x 6" in findings
    row = next(row for row in rows(folder) if row.name == "gisette")
    assert row.present
    assert row.passed < row.checks == 5


def test_without_a_validation_part_rows_are_put_aside(tmp_path: Path) -> None:
    write(tmp_path, "train", np.arange(20).reshape(10, 2), np.arange(10) % 2, name="own")
    dataset = load_dataset("own", tmp_path)
    assert (len(dataset.train), len(dataset.test)) == (8, 2)
    assert any(row.name == "own" and row.shape == "10 x 2" for row in rows(tmp_path))


def test_an_archive_goes_before_text(gisette: tuple[Array, Array, Path]) -> None:
    *_, folder = gisette
    np.savez(folder / "gisette.npz", x=np.zeros((10, 3)), y=np.arange(10) % 2)
    assert len(load_dataset("gisette", folder).columns) == 3


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("gisette_train.labels", None, r"no file .*gisette_train.labels beside gisette_train.data"),
        ("gisette_valid.labels", None, r"no file .*gisette_valid.labels beside gisette_valid.data"),
        ("gisette_train.labels", "1\n-1\n", r"has 2 labels for the 10 samples of gisette_train.data"),
        ("gisette_train.data", "1 2 3\n4 5\n", r"gisette_train.data is not a text file of numbers"),
        ("gisette_train.data", "1:5 7:3\n", r"gisette_train.data is not a text file of numbers"),
        ("gisette_train.data", "", r"gisette_train.data is not a text file of numbers"),
    ],
)
def test_files_that_do_not_fit(gisette: tuple[Array, Array, Path], file: str, text: str | None, complaint: str) -> None:
    path = gisette[2] / file
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(DataError, match=complaint):
        load_dataset("gisette", gisette[2])
