"""Configs of runs that keep a ledger, and how it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from crosshatch import read_config, train

ROWS = 2000  # of which 1,600 are trained on


CONFIG = """
[data]
path = "table.csv"
id = "id"
label = "y"
[federation]
labels = "b"
silos = [{ name = "a", columns = ["c0", "c1", "c2", "c3"] }, { name = "b", columns = ["c4", "c5"] }]
[algorithm]
name = "fedbcd"
local_steps = 2
batch_size = 512
[privacy]
encryption = "paillier"
ledger = "labels.ledger"
[privacy.seconds]
encrypt = 0.001
[run]
rounds = 4
threads = 1
"""


def table(folder: Path, *, rare: tuple[int, ...] = ()) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, 6)).round(3)
    labels = (x[:, 0] + x[:, 4] + random.normal(size=ROWS) > 0).astype(int)
    kind = ["rare" if i in rare else "uv"[i % 2] for i in range(ROWS)]
    rows = [",".join(map(str, (i, *x[i], kind[i], i % 3, labels[i]))) for i in range(ROWS)]
    (folder / "table.csv").write_text("\n".join(["id,c0,c1,c2,c3,c4,c5,kind,three,y", *rows]))


def leakage(folder: Path, name: str, *changes: str, text: str = CONFIG, resume: bool = False) -> dict[str, Any]:
    if not (folder / "table.csv").exists():
        table(folder)
    (folder / "one.toml").write_text(text)
    train(read_config(folder / "one.toml", changes, name=name), out=folder / name, resume=resume)
    found: dict[str, Any] = json.loads((folder / name / "summary.json").read_text())["leakage"]
    return found
