"""The tables of a small config."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crosshatch.runs.config import Config

TABLES: dict[str, Any] = {
    "data": {"name": "breast_cancer"},
    "federation": {"silos": [{"name": "a", "groups": ["mean"]}, {"name": "b", "groups": ["worst"]}], "clients": 3},
    "model": {"block": "linear"},
    "algorithm": {"name": "tdcd", "local_steps": 4, "step_size": 0.3, "batch_size": 48},
    "evaluate": {"every": 2, "targets": ["auc=0.9"]},
    "run": {"name": "small", "rounds": 6, "threads": 1},
}


MakeConfig = Callable[..., Config]
