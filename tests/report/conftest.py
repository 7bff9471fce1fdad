"""Synthetic run directories in the format of `crosshatch train`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.written_runs import WriteRun, curve, silo

CONFIG = """# resolved
[algorithm]
name = "{algorithm}"
local_steps = {q}

[run]
name = {name}
seed = 7
"""


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
