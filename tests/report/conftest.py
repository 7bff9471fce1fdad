"""Synthetic run directories in the format of `crosshatch train`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WriteRun = Callable[..., Path]

CONFIG = """# resolved
[algorithm]
name = "{algorithm}"
local_steps = {q}

[run]
name = {name}
seed = 7
"""


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


def summarise(
    name: str, algorithm: str, rows: list[dict[str, Any]], federation: dict[str, Any] | None
) -> dict[str, Any]:
    """A summary.json that fits the evaluations."""
    last, silos = rows[-1], [silo("bank", 100, holds_labels=True), silo("insurer", 3)]
    up, down = int(last["bytes"] * 0.55), int(last["bytes"] * 0.35)
    links = {"client-hub up": up, "client-hub down": down, "hub-hub across": last["bytes"] - up - down}
    return {
        "name": name, "algorithm": algorithm, "rounds": last["round"], "iterations": last["iteration"],
        "final": {"auc": last["auc"], "loss": last["loss"]}, "bytes": last["bytes"], "messages": last["messages"],
        "sim_seconds": last["sim_seconds"], "wall_seconds": last["wall_seconds"],
        "bytes_by_link": {link: {"bytes": size, "messages": 400} for link, size in links.items()} if up else {},
        "bytes_by_exchange": {"average": up, "share": last["bytes"] - up} if up else {},
        "targets": {}, "strategy": {"bank": "gram", "insurer": "stacked"},
        "federation": federation or {"silos": silos, "tiers": "V(10) H(10)"},
        "seed": 7, "threads": 1, "precision": "float32", "versions": {"crosshatch": "0.1.0", "torch": "2.13.0"},
    }  # fmt: skip


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """`write_run(name, q=..., bytes_per_round=...)` writes a run and returns its directory."""

    def write(
        name: str,
        *,
        algorithm: str = "tdcd",
        directory: str | None = None,
        q: int = 10,
        bytes_per_round: int = 80_000,
        rows: list[dict[str, Any]] | None = None,
        finished: bool = True,
        federation: dict[str, Any] | None = None,
        **summary: Any,
    ) -> Path:
        path = tmp_path / (directory or "".join(c if c.isalnum() else "_" for c in name))
        path.mkdir()
        rows = curve(q, bytes_per_round) if rows is None else rows
        config = CONFIG.format(algorithm=algorithm, q=q, name=json.dumps(name))
        (path / "config.toml").write_text(config)
        (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if finished:
            written = summarise(name, algorithm, rows, federation) | summary
            (path / "summary.json").write_text(json.dumps(written))
        return path

    return write


def write_seed(write_run: WriteRun, name: str, seed: int, called: str = "", **given: Any) -> Path:
    """A run in `NAME-sSEED`, and called so, whose config differs from those of other seeds in nothing but that."""
    path = write_run(called or f"{name}-s{seed}", directory=f"{name}-s{seed}", **given)
    config = path / "config.toml"
    config.write_text(config.read_text().replace("seed = 7", f"seed = {seed}"))
    return path
