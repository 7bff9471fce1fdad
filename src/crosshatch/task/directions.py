"""For everything measured, whether higher is better; without torch, which reports need not wait for."""

from __future__ import annotations

from types import MappingProxyType

HIGHER_IS_BETTER = MappingProxyType(
    {
        "auc": True,
        "accuracy": True,
        "top5": True,
        "f1": True,
        "precision": True,
        "recall": True,
        "r2": True,
        "loss": False,
        "train_loss": False,
        "rmse": False,
        "suboptimality": False,
    }
)
