"""Metrics on the test samples of every client by itself, and how they spread over a silo's clients.

All clients are measured with the common model. Those with few test samples are left out, and so are, for metrics that
compare labels, those whose test samples all have the same label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.dataset import Indices
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.errors import ConfigError
from crosshatch.task.losses import Loss
from crosshatch.task.metrics import evaluate
from crosshatch.task.own_metric import OwnMetric

LEAST = 5
"""Test samples of a client that is measured: of fewer a metric says next to nothing."""
WORST = 5
"""Clients that are named."""
# What one label is enough for. A user's own metric may need several.
_ON_ANY_LABELS = ("loss", "accuracy", "top5", "rmse")
_PLACE = "evaluate.per_client = true"


def require_clients(data: FederatedData, metrics: Sequence[str | OwnMetric]) -> None:
    """Refuse a federation in which no client can be measured by itself, or metrics that are not of samples."""
    silos = _silos(data)
    if not silos:
        raise ConfigError(
            f"{_PLACE}: every silo is a single client, so there is nothing to compare: set federation.clients, or "
            "leave it out"
        )
    if not _of_samples(metrics):
        raise ConfigError(f"{_PLACE}: suboptimality is about the training objective: add another of evaluate.metrics")
    if any(silo.test_owners is None for silo in silos):
        raise ConfigError("the test samples are not divided among the clients: call federate with per_client=True")
    most = max(len(rows) for silo in silos for rows in _held(silo).values())
    if most < LEAST:
        raise ConfigError(
            f"{_PLACE}: no client has {LEAST} test samples, the most are {most}: take fewer clients or more test "
            "samples (data.test_fraction), or leave it out"
        )


def spread_over_clients(
    data: FederatedData,
    metrics: Sequence[str | OwnMetric],
    scores: Tensor,
    loss: Loss,
    higher_is_better: Mapping[str, bool],
) -> dict[str, Any]:
    """For each silo with several clients the spread of each metric, given scores (n_test, c); ready for JSON."""
    require_clients(data, metrics)
    found = {}
    for silo in _silos(data):
        held = _held(silo)
        large = {client: torch.as_tensor(rows) for client, rows in held.items() if len(rows) >= LEAST}
        alike = {client for client, rows in large.items() if bool((data.y_test[rows] == data.y_test[rows[0]]).all())}
        sizes = [len(rows) for rows in held.values()]
        spreads = {}
        for metric in _of_samples(metrics):
            name = metric if isinstance(metric, str) else metric.name
            values = {
                client: evaluate([metric], scores[rows], data.y_test[rows], loss)[name]
                for client, rows in large.items()
                if name in _ON_ANY_LABELS or client not in alike
            }
            if values:
                worst = sorted(values, key=lambda client: values[client], reverse=not higher_is_better[name])[:WORST]
                named = [
                    {"client": client_called(data, silo, client)}
                    | ({"value_of_column": silo.client_names[client]} if silo.client_names else {})
                    | {"samples": len(large[client]), "value": values[client]}
                    for client in worst
                ]
                spreads[name] = {**_spread(list(values.values())), "worst": named}
        found[silo.name] = {
            "clients": silo.clients,
            "measured": len(large),
            "too_small": silo.clients - len(large),
            "one_label": len(alike),
            "samples": {"least": min(sizes), "most": max(sizes), "of_nobody": len(data.y_test) - sum(sizes)},
            "metrics": spreads,
        }
    return found


def _silos(data: FederatedData) -> tuple[SiloData, ...]:
    return tuple(silo for silo in data.silos if silo.clients > 1)


def _of_samples(metrics: Sequence[str | OwnMetric]) -> list[str | OwnMetric]:
    return [metric for metric in metrics if metric != "suboptimality"]


def _held(silo: SiloData) -> dict[int, Indices]:
    """The test samples of every client, none perhaps."""
    assert silo.test_owners is not None
    order = np.argsort(silo.test_owners, kind="stable")
    edges = np.searchsorted(silo.test_owners[order], np.arange(silo.clients + 1))
    return {client: order[edges[client] : edges[client + 1]] for client in range(silo.clients)}


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Of one value or more; quartiles between values are interpolated, the deviation is that of a sample.

    >>> _spread([1.0, 2.0, 4.0])["upper_quartile"]
    3.0
    """
    names = ("min", "lower_quartile", "median", "upper_quartile", "max")
    quantiles = dict(zip(names, np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist(), strict=True))
    deviation = stdev(values) if len(values) > 1 else 0.0
    return {"clients": len(values), **quantiles, "mean": fmean(values), "deviation": deviation}


def client_called(data: FederatedData, silo: SiloData, client: int) -> str:
    """A client as settings of the network call it."""
    own = silo.owners == client
    if data.groups is None or not own.any():
        return f"{silo.name}/{client}"
    group = int(data.groups[own][0])
    return f"{silo.name}@{group}/{np.unique(silo.owners[data.groups == group]).tolist().index(client)}"
