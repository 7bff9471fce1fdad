"""A process reads a named set once for many jobs, and again as soon as its settings or its file are others."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from crosshatch.data.dataset import Dataset
from crosshatch.runs.config import Config, decode_config
from crosshatch.sweeps.jobs import LastSet


def _config(**data: object) -> Config:
    return decode_config(
        {
            "data": {"name": "mine", **data},
            "federation": {"silos": 2},
            "algorithm": {"name": "fedsgd"},
            "run": {"rounds": 1},
        }
    )


def _write(folder: Path, shift: float = 0.0) -> None:
    np.savez(folder / "mine.npz", x=np.arange(40.0).reshape(20, 2) + shift, y=np.tile([0, 1], 10))


def _first(dataset: Dataset) -> float:
    x = dataset.train.x
    return float(np.asarray(x).min())


def test_read_once_while_nothing_changes(tmp_path: Path) -> None:
    _write(tmp_path)
    last = LastSet()
    first = last.load(_config(), tmp_path)
    assert last.load(_config(), tmp_path) is first
    assert last.load(_config(test_fraction=0.5), tmp_path) is not first
    assert last.load(_config(), tmp_path) is not first  # one set is kept


def test_another_file_is_read_again(tmp_path: Path) -> None:
    _write(tmp_path)
    last = LastSet()
    first = last.load(_config(), tmp_path)
    before = (tmp_path / "mine.npz").stat()
    _write(tmp_path, shift=100.0)
    os.utime(tmp_path / "mine.npz", ns=(before.st_atime_ns, before.st_mtime_ns + 1))  # the clock of files may be coarse
    again = last.load(_config(), tmp_path)
    assert _first(again) >= 100.0 > _first(first)
