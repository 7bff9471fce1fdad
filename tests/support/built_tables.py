"""A small table as a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from crosshatch.data.dataset import Dataset, Samples


def table(n: int = 60, columns: int = 6, classes: int = 3, seed: int = 0) -> Dataset:
    random = np.random.default_rng(seed)

    def samples(rows: int) -> Samples:
        x = random.normal(size=(rows, columns))
        frame = pl.DataFrame({f"c{i}": x[:, i] for i in range(columns)})
        return Samples(frame, np.arange(rows) % classes, extra={"site": random.integers(0, 5, rows)})

    names = tuple(f"c{i}" for i in range(columns))
    target: Any = "binary" if classes == 2 else "multiclass"
    return Dataset("made", "table", samples(n), samples(12), target, classes, names)
