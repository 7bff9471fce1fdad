"""Training samples put aside for trials, which are judged by samples they were not fitted to; test samples never are.

A fifth of them, in proportion in every group and class, takes the place of the test samples. As those, they all count
the same where training samples have weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from crosshatch.data.federated import FederatedData, keep_samples, unweighted_labels
from crosshatch.data.split import split_rows
from crosshatch.errors import ConfigError, DataError
from crosshatch.seeds import torch_seed

SHARE = 0.2
MOST = 4096
"""No more samples than this are put aside: judging must not take longer than training."""


def put_aside(data: FederatedData, *, seed: int, key: str) -> FederatedData:
    """The data for trials, by which a key of [algorithm] is chosen; a ConfigError where the samples are too few."""
    samples = len(data.y_train)
    groups = np.zeros(samples, np.int64) if data.groups is None else data.groups
    y = unweighted_labels(data)
    labels = y.cpu().numpy() if data.target in ("binary", "multiclass") else np.zeros(samples)
    kinds = np.unique(np.stack([groups.astype(np.float64), labels.astype(np.float64)]), axis=1, return_inverse=True)[1]
    share = min(SHARE, MOST / samples)
    try:
        rest, aside = split_rows(kinds.reshape(-1), share, seed=torch_seed(seed, "trials"), stratify=True)
    except DataError:
        raise ConfigError(
            f"algorithm.{key}: {samples} training samples are too few to put some aside, by which trials are judged: "
            "give a number"
        ) from None
    rows = torch.as_tensor(aside, device=data.y_train.device)
    judged = tuple(silo.train.index_select(0, rows) for silo in data.silos)
    kept = keep_samples(data, rest)
    silos = tuple(replace(silo, test=test) for silo, test in zip(kept.silos, judged, strict=True))
    return replace(kept, silos=silos, y_test=y.index_select(0, rows))
