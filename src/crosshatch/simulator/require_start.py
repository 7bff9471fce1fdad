"""What is refused before parties are put together: labels and precisions that do not fit."""

from __future__ import annotations

import torch

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.exchanges import on_silos
from crosshatch.simulator.assemble import require_device
from crosshatch.task.losses import require_labels, unweighted
from crosshatch.task.task import Task

PRECISIONS = (torch.float16, torch.float32, torch.float64)


def require_start(data: FederatedData, task: Task, device: str, precision: torch.dtype) -> None:
    """Refuse labels that the loss cannot take, and numbers or devices that there are not."""
    require_labels(task.loss, data.y_train, data.classes, "training samples")
    require_labels(unweighted(task.loss), data.y_test, data.classes, "test samples")
    if data.y_validation is not None:
        require_labels(unweighted(task.loss), data.y_validation, data.classes, "validation samples")
    if precision not in PRECISIONS:
        raise ConfigError(f"precision = {precision}: numbers are sent as float32 or float64: give one of these")
    require_device(device)


def require_silos(algorithm: object, *, encrypts: bool) -> None:
    """Refuse to encrypt what goes along a graph."""
    if encrypts and not on_silos(algorithm):
        raise ConfigError(f"privacy.encryption is not for {type(algorithm).__name__}: use fedsgd or fedbcd")
