"""For everything measured, whether higher is better; without torch, which reports need not wait for."""

import math
from collections.abc import Mapping
from types import MappingProxyType

VALIDATION = "validation_"
"""Before the name of a metric that is measured on the validation rows."""

OF_TRAINING = ("train_loss", "suboptimality")
"""Measured on the training rows; what is neither this nor of validation rows is of test rows."""

_ON_ROWS = {
    "auc": True,
    "pr_auc": True,
    "gini": True,
    "ks": True,
    "brier": False,
    "accuracy": True,
    "top5": True,
    "f1": True,
    "precision": True,
    "recall": True,
    "r2": True,
    "loss": False,
    "rmse": False,
}

RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **dict.fromkeys(("auc", "pr_auc", "ks", "brier", "accuracy", "top5", "f1", "precision", "recall"), (0.0, 1.0)),
        "gini": (-1.0, 1.0),
        "r2": (-math.inf, 1.0),
        "rmse": (0.0, math.inf),
    }
)
"""The least and the largest value that a metric can have."""

HIGHER_IS_BETTER = MappingProxyType(
    {
        **_ON_ROWS,
        **dict.fromkeys(OF_TRAINING, False),
        **{f"{VALIDATION}{name}": higher for name, higher in _ON_ROWS.items()},
    }
)


def directions(own: Mapping[str, bool]) -> dict[str, bool]:
    """The same with a user's own metrics, which are measured on validation rows too.

    >>> directions({"lift": True})["validation_lift"]
    True
    """
    return {**HIGHER_IS_BETTER, **own, **{f"{VALIDATION}{name}": higher for name, higher in own.items()}}
