"""Silos with their clients' figures, as a summary has them."""

from __future__ import annotations

from typing import Any


def spread(low: float, high: float, **more: Any) -> dict[str, Any]:
    width = high - low
    return {
        "clients": 9, "min": low, "lower_quartile": low + width / 4, "median": low + width / 2,
        "upper_quartile": low + 3 * width / 4, "max": high, "mean": low + width / 2, "deviation": 0.01,
        "worst": [{"client": "bank/3", "samples": 12, "value": low}], **more,
    }  # fmt: skip


def silos(**metrics: Any) -> dict[str, Any]:
    one = {
        "clients": 10,
        "measured": 9,
        "too_small": 1,
        "one_label": 2,
        "samples": {"least": 2, "most": 40, "of_nobody": 0},
    }
    return {"round": 40, "silos": {"bank": one | {"metrics": metrics}}}
