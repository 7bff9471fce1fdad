"""Federations with rows held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from crosshatch.data.federated import FederatedData


def with_held_out(data: FederatedData) -> FederatedData:
    """The same with seven validation and nine test rows."""
    rng = np.random.default_rng(5)
    silos = []
    for silo in data.silos:
        shape = silo.train.shape[1:]
        validation, test = (torch.as_tensor(rng.normal(size=(n, *shape))) for n in (7, 9))
        silos.append(replace(silo, validation=validation, test=test))
    kinds = data.y_train[..., :-1].squeeze(-1) if data.weighted else data.y_train
    labels = [kinds[torch.as_tensor(rng.integers(0, len(kinds), n))] for n in (7, 9)]
    return replace(data, silos=tuple(silos), y_validation=labels[0], y_test=labels[1])
