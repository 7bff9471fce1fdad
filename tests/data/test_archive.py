"""Archives of any name that are laid out like the known ones."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crosshatch.data.build import load_dataset
from crosshatch.data.data_settings import DataSettings
from crosshatch.data.dataset import Array, Raw
from crosshatch.data.public_sets.catalogue import rows
from crosshatch.data.reading.archive import read_archive
from crosshatch.errors import DataError

Y = np.arange(10) % 2


def save(folder: Path, name: str = "own", **arrays: Any) -> Path:
    path = folder / f"{name}.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("x", "kind", "columns"),
    [
        (np.zeros((10, 3)), "table", ("x0", "x1", "x2")),
        (np.zeros((10, 3, 2), dtype=np.uint8), "image", ()),
        (np.zeros((10, 3, 2), dtype=np.float32), "sequence", ("x0", "x1")),
        (np.zeros((10, 3, 2, 1), dtype=np.float32), "image", ()),
    ],
)
def test_dimensions_say_what_it_is(tmp_path: Path, x: Array, kind: str, columns: tuple[str, ...]) -> None:
    save(tmp_path, x=x, y=Y)
    dataset = load_dataset("own", tmp_path)
    assert (dataset.kind, dataset.columns, len(dataset.train), len(dataset.test)) == (kind, columns, 8, 2)


def test_parts_names_groups_ids_and_what_accompanies(tmp_path: Path) -> None:
    save(
        tmp_path,
        x_train=np.arange(20.0).reshape(10, 2),
        y_train=Y,
        id_train=np.arange(10) + 100,
        site_train=np.array(list("aabbccddee")),
        static_train=np.ones((10, 1)),
        x_test=np.zeros((4, 2)),
        y_test=Y[:4],
        id_test=np.arange(4) + 200,
        site_test=np.array(list("aabb")),
        static_test=np.ones((4, 1)),
        x_val=np.zeros((3, 2)),
        y_val=Y[:3],
        feature_names=np.array(["a", "b"]),
        feature_group=np.array(["g", "h"]),
        static_names=np.array(["s"]),
    )
    dataset = load_dataset(DataSettings(name="own", limit=6), tmp_path)
    assert (dataset.columns, dataset.groups, len(dataset.train), len(dataset.test)) == (("a", "b"), ("g", "h"), 6, 4)
    assert dataset.train.ids is not None
    assert isinstance(dataset.train.x, pl.DataFrame)
    assert (dataset.train.x["a"].to_numpy() == (dataset.train.ids - 100) * 2).all()
    assert set(dataset.train.extra) == {"static", "site"}
    assert [str(note) for note in dataset.notes] == ["3 validation samples of own are not used"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((10, 2))}, "no labels: expected an array 'y'"),
        ({"y": Y}, "no features"),
        ({"x": np.zeros((10, 2)), "y": Y[:9]}, r"y is \(9,\) for 10 samples"),
        ({"x": np.zeros(10), "y": Y}, "x has 1 dimensions"),
        ({"x": np.full((10, 2), "a"), "y": Y}, "numbers are needed"),
        ({"x": np.zeros((10, 2)), "y": Y, "feature_names": np.array(["a"])}, "1 different names for 2 columns"),
        ({"x": np.zeros((10, 2)), "y": Y, "feature_names": np.array(["a", "a"])}, "1 different names for 2 columns"),
        ({"x": np.zeros((10, 2)), "y": Y, "feature_group": np.array(["a"])}, "names 1 columns of 2"),
        (
            {"x_train": np.zeros((10, 2)), "y_train": Y, "x_test": np.zeros((10, 3)), "y_test": Y},
            "all but the first number must agree",
        ),
        ({"x": np.zeros((10, 2)), "y": np.array([None] * 10)}, "not a readable npz archive: Object arrays"),
    ],
)
def test_layouts_that_do_not_fit(tmp_path: Path, arrays: dict[str, Array], message: str) -> None:
    path = save(tmp_path, "own", **arrays)
    with pytest.raises(DataError, match=message) as caught:
        read_archive(path)
    assert "own.npz" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", [b"", b"not a zip at all", b"PK\x03\x04 broken", b"\x93NUMPY\x01\x00"])
def test_damaged_files(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "own.npz").write_bytes(damage)
    with pytest.raises(DataError, match="not a readable npz archive"):
        load_dataset("own", tmp_path)


def test_a_file_cut_short_and_one_with_a_flipped_byte(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).normal(size=(50, 4)), y=np.arange(50) % 2)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(DataError, match="get the file again"):
        load_dataset("own", tmp_path)
    middle = len(good) // 4
    path.write_bytes(good[:middle] + bytes([good[middle] ^ 255]) + good[middle + 1 :])
    with pytest.raises(DataError, match="get the file again"):
        load_dataset("own", tmp_path)


def test_unknown_names_say_what_there_is(tmp_path: Path) -> None:
    save(tmp_path, "mydata", x=np.zeros((10, 2)), y=Y)
    with pytest.raises(DataError, match="unknown data set 'mydatta': did you mean 'mydata'"):
        load_dataset("mydatta", tmp_path)
    with pytest.raises(DataError, match="unknown data set 'breast-cancer': did you mean 'breast_cancer'"):
        load_dataset("breast-cancer")
    with pytest.raises(DataError, match="give it by --data or CROSSHATCH_DATA"):
        load_dataset("mnist")
    with pytest.raises(DataError, match=r"no file .*mnist.npz: download"):
        load_dataset("mnist", tmp_path)
    assert [(row.name, row.shape) for row in rows(tmp_path) if row.get == "your own file"] == [("mydata", "10 x 2")]


def test_jpeg_images(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pieces = []
    for level in range(10):
        buffer = io.BytesIO()
        image.fromarray(np.full((8, 8, 3), level * 20, dtype=np.uint8)).save(buffer, "JPEG")
        pieces.append(buffer.getvalue())
    offsets = np.cumsum([0, *map(len, pieces)])
    data = np.frombuffer(b"".join(pieces), dtype=np.uint8)
    save(tmp_path, jpeg_train=data, offset_train=offsets, y_train=Y)
    raw = read_archive(tmp_path / "own.npz")
    assert raw.kind == "image"
    assert isinstance(raw.train.x, np.ndarray)
    assert raw.train.x.shape == (10, 8, 8, 3)
    np.testing.assert_allclose(raw.train.x.mean(axis=(1, 2, 3)), np.arange(10) * 20, atol=2)


def test_jpeg_images_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, jpeg_train=np.zeros(4, dtype=np.uint8), offset_train=np.array([0, 4]), y_train=Y[:1])

    monkeypatch.setitem(sys.modules, "PIL", None)  # as if it were not installed
    with pytest.raises(DataError, match=r"Pillow is not installed: run `pip install pillow`, or .* extra 'images'"):
        read_archive(tmp_path / "own.npz")


def sequences(path: Path, **more: Any) -> Raw:
    x = np.arange(6 * 3 * 20, dtype=np.float32).reshape(6, 3, 20)
    np.savez(path / "waves.npz", x=x, y=np.arange(6) % 2, **more)
    return read_archive(path / "waves.npz")


def test_channels_before_time_are_not_read_silently(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x is \(6, 3, 20\), sequences of 3 points in time .* axes = 'time,columns'"):
        sequences(tmp_path)
    with pytest.raises(DataError, match="axes is 'sideways': give 'time,columns' or 'columns,time'"):
        sequences(tmp_path, axes="sideways")
    with pytest.raises(DataError, match="say which by an array axes"):
        sequences(tmp_path, feature_names=["a", "b", "c"])


def test_axes_say_how_sequences_are_ordered(tmp_path: Path) -> None:
    turned = sequences(tmp_path, axes="columns,time", feature_names=["a", "b", "c"])
    assert turned.columns == ("a", "b", "c")
    assert isinstance(turned.train.x, np.ndarray)
    assert turned.train.x.shape == (6, 20, 3)
    assert turned.train.x[0, :, 1].tolist() == list(range(20, 40))
    assert len(sequences(tmp_path, axes="time,columns").columns) == 20
    assert len(sequences(tmp_path, feature_names=[f"f{i}" for i in range(20)]).columns) == 20
