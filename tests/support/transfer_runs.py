"""Configs of transfer runs."""

from __future__ import annotations

from typing import Any

from crosshatch.runs.config import Config, decode_config

ALGORITHMS: dict[str, dict[str, Any]] = {
    "fedsgd": {"name": "fedsgd", "step_size": 0.3, "batch_size": 20},
    "fedbcd": {"name": "fedbcd", "local_steps": 3, "proximal": 0.1},
    "in turn": {"name": "fedbcd", "local_steps": 3, "batch_size": 20, "order": "sequential"},
    "abcd": {"name": "abcd", "local_steps": 4, "batch_size": 20, "anticipation": "silos", "window": 2},
}


def config(algorithm: str = "fedbcd", **sections: dict[str, Any]) -> Config:
    """A run on data that ships with the package; sections are added to those of the standard one."""
    tables: dict[str, dict[str, Any]] = {
        "data": {"name": "breast_cancer"},
        "federation": {"common": 60, "silos": 2, "labels": "silo1"},
        "model": {"fusion": "transfer", "block": "mlp", "hidden": [6], "outputs": 5, "mean_samples": 200},
        "algorithm": ALGORITHMS[algorithm],
        "run": {"rounds": 6, "threads": 1, "name": "transfer"},
    }
    for name, changes in sections.items():
        tables[name] = {key: value for key, value in (tables.get(name, {}) | changes).items() if value is not None}
    return decode_config(tables)
