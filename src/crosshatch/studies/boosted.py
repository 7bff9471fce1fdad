"""A yardstick from another family: gradient-boosted trees of scikit-learn, so that nobody is fooled by a weak model.

Learning rate, leaves and the number of trees are those with the lowest loss on the validation rows; with these fixed,
fitting has nothing random in it, so one seed is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save
from torch import Tensor

from crosshatch.data.federated import FederatedData, unweighted_labels
from crosshatch.runs.files import write_whole
from crosshatch.task.losses import Loss, unweighted

RATES, LEAVES, MOST_TREES = (0.03, 0.1), (4, 31), 200


def boosted(data: FederatedData, loss: Loss, silos: Sequence[str], path: Path) -> None:
    """Write scores of trees on the columns of these silos into a file."""
    assert data.y_validation is not None
    held = [silo for silo in data.silos if silo.name in silos]
    train, test, validation = (
        np.concatenate([silo.rows(part).cpu().numpy() for silo in held], axis=1)
        for part in ("train", "test", "validation")
    )
    labels = unweighted_labels(data).cpu().numpy()
    best, lowest = (test[:, :0], validation[:, :0]), np.inf
    for rate, leaves in product(RATES, LEAVES):
        model = _model(data.target, rate, leaves).fit(train, labels)
        staged = model.staged_predict if data.target == "regression" else model.staged_decision_function
        losses = [_loss(scores, data.y_validation, loss) for scores in staged(validation)]
        trees = int(np.argmin(losses))
        if losses[trees] < lowest:
            lowest = losses[trees]
            best = (_at(staged(test), trees), _at(staged(validation), trees))
    kept = {name: _tensor(scores) for name, scores in zip(("test", "validation"), best, strict=True)}
    write_whole(path, save(kept))


def _model(target: str, rate: float, leaves: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor  # late: a second

    kind = HistGradientBoostingRegressor if target == "regression" else HistGradientBoostingClassifier
    return kind(learning_rate=rate, max_leaf_nodes=leaves, max_iter=MOST_TREES, early_stopping=False, random_state=0)


def _loss(scores: npt.NDArray[np.float64], y: Tensor, loss: Loss) -> float:
    labels = y.double() if y.is_floating_point() else y
    return float(unweighted(loss).value(_tensor(scores), labels).mean())


def _at(stages: Any, trees: int) -> npt.NDArray[np.float64]:
    return next(np.array(scores) for number, scores in enumerate(stages) if number == trees)


def _tensor(scores: npt.NDArray[np.float64]) -> Tensor:
    found = torch.as_tensor(np.ascontiguousarray(scores), dtype=torch.float64)
    return found if found.dim() == 2 else found[:, None]
