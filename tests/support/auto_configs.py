"""Configs of HSGD whose settings are "auto"."""

from __future__ import annotations

from typing import Any

from crosshatch.runs.config import decode_config


def hsgd(**algorithm: object) -> dict[str, Any]:
    """Groups of a hospital and devices."""
    return {
        "federation": {"groups": 2, "clients": 1, "silos": [
            {"name": "a", "groups": ["mean"]}, {"name": "b", "groups": ["worst"], "clients": "each"},
        ]},
        "algorithm": {"name": "hsgd", "fraction": 0.2} | algorithm,
        "evaluate": {"every": 2},
    }  # fmt: skip


def make(tables: dict[str, Any]) -> Any:
    return decode_config(
        {"data": {"name": "breast_cancer"}, "run": {"name": "small", "rounds": 5, "threads": 1}} | tables
    )
