"""A run's data as files that can be changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.runs.config import Config, decode_config

ROWS = 80


def table() -> pl.DataFrame:
    random = np.random.default_rng(3)
    columns = {name: np.round(random.normal(size=ROWS), 3) for name in ("a", "b", "c", "d")}
    return pl.DataFrame({"id": np.arange(ROWS), **columns, "y": random.integers(0, 2, ROWS)})


def config(folder: Path, rounds: int, **data: object) -> Config:
    return decode_config(
        {
            "data": {"path": str(folder / "rows.csv"), "label": "y", "id": "id", **data},
            "federation": {"silos": 2},
            "algorithm": {"name": "fedbcd", "local_steps": 2, "step_size": 0.1, "batch_size": 16},
            "run": {"name": "small", "rounds": rounds, "threads": 1},
        }
    )
