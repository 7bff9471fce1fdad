"""A small federation laid out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.schedules import Constant
from crosshatch.task.losses import Squared
from crosshatch.task.regulariser import Regulariser
from tests.equivalence.federations import ROUNDS, Case, make_task


def small(
    *,
    clients: Sequence[int] = (2, 3),
    owners: Sequence[Sequence[int]] | None = None,
    samples: int = 6,
    steps: int = 2,
    label_silo: str | None = None,
    holder: int | None = None,
    batches: Sequence[Sequence[Sequence[int]]] | None = None,
) -> Case:
    """Silos `a`, `b`, ... of two columns each; samples go round the clients unless `owners` are given.

    With a head, silo j has embeddings of width `1 + j`. `batches[round][step]` lists ids; without them a round takes
    all samples.
    """
    rng = np.random.default_rng(5)
    names = "abcdef"[: len(clients)]
    silos = []
    for j, (name, count) in enumerate(zip(names, clients, strict=True)):
        held = np.arange(samples) % count if owners is None else np.asarray(owners[j])
        x = torch.as_tensor(rng.normal(size=(samples, 2)))
        silos.append(SiloData(name, x, x, ("x", "y"), held.astype(np.int64), count))
    y = torch.as_tensor(rng.normal(size=samples))
    data = FederatedData(tuple(silos), y, y, "regression", 1, label_silo)
    task = make_task(0, ["linear"] * len(silos), [2] * len(silos), Squared(), holder, Regulariser())
    ids = np.zeros((ROUNDS, steps, samples), dtype=np.int64) if batches is None else np.asarray(batches)
    size = None if batches is None else ids.shape[-1]
    return Case(data, task, steps, Constant(0.1), ids, size, "auto")
