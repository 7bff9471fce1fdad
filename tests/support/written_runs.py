"""Run directories as `crosshatch train` writes them, made by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

WriteRun = Callable[..., Path]


def curve(q: int, bytes_per_round: int, rounds: int = 40) -> list[dict[str, Any]]:
    """Evaluations that climb faster with more local steps `q`; the first one is before any training."""
    rows: list[dict[str, Any]] = []
    for done in range(0, rounds + 1, 2):
        progress = 1 - math.exp(-done * q / 40)
        rows.append(
            {"iteration": done * q, "round": done, "bytes": done * bytes_per_round, "messages": done * 40,
             "sim_seconds": done * (0.3 + 0.01 * q), "wall_seconds": done * 0.02,
             "train_loss": 0.7 - 0.25 * progress, "auc": 0.5 + 0.28 * progress, "loss": 0.69 - 0.24 * progress}
        )  # fmt: skip
    return rows


def silo(name: str, clients: int = 10, *, holds_labels: bool = False) -> dict[str, Any]:
    """One entry of `federation.silos`."""
    return {"name": name, "clients": clients, "features": 12, "samples": 24000, "parameters": 833,
            "holds_labels": holds_labels}  # fmt: skip


def write_seed(write_run: WriteRun, name: str, seed: int, called: str = "", **given: Any) -> Path:
    """A run in `NAME-sSEED`, and called so, whose config differs from those of other seeds in nothing but that."""
    path = write_run(called or f"{name}-s{seed}", directory=f"{name}-s{seed}", **given)
    config = path / "config.toml"
    config.write_text(config.read_text().replace("seed = 7", f"seed = {seed}"))
    return path
