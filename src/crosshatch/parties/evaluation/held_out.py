"""Whose the validation and test rows are, not their labels: every one belongs to one client of each silo.

Of a silo whose test samples are divided, `SiloData.test_owners`, they are those clients'; otherwise they are dealt out,
one after the other. Clients without training rows hold none, for nobody tells them a block. With groups the rows are
dealt out to the first group, so that the scores and labels that a metric needs together are with one silo.
"""

from dataclasses import replace

import numpy as np
import torch

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.protocol.batches import Ids


def held_out(data: FederatedData) -> FederatedData:
    """The validation rows and behind them the test rows as the samples of a federation, that of the first group.

    >>> from crosshatch.testing.federations import make_data
    >>> [silo.owners.tolist() for silo in held_out(make_data((1, 3))).silos]
    [[0, 0], [0, 1]]
    """
    first = _first(data)
    silos = tuple(_silo(silo, first, clients_of_first(data, j)) for j, silo in enumerate(data.silos))
    y = data.y_test if data.y_validation is None else torch.cat([data.y_validation, data.y_test])
    return replace(
        data, silos=silos, y_train=y, y_validation=None, groups=None, group_shape=(), weighted=False, alone=None
    )


def validation_rows(data: FederatedData) -> int:
    """How many of the rows held out are validation rows; they come first."""
    return 0 if data.y_validation is None else len(data.y_validation)


def clients_of_first(data: FederatedData, silo: int) -> int:
    """How many clients of a silo there are in the first group, or in all."""
    owners = data.silos[silo].owners
    return data.silos[silo].clients if data.groups is None else len(np.unique(owners[_first(data)]))


def _first(data: FederatedData) -> Ids:
    return np.arange(len(data.y_train)) if data.groups is None else np.flatnonzero(data.groups == data.groups.min())


def _silo(silo: SiloData, first: Ids, clients: int) -> SiloData:
    """Its rows held out, and the clients of the first group numbered as that numbers them."""
    present = np.unique(silo.owners[first])
    holders = present if clients == silo.clients else np.arange(clients)
    test = np.resize(holders, len(silo.test))
    if silo.test_owners is not None and clients == silo.clients:
        test = np.where(np.isin(silo.test_owners, present), silo.test_owners, test)
    if silo.validation is None:
        rows, owners = silo.test, test
    else:
        rows = torch.cat([silo.validation, silo.test])
        owners = np.concatenate([np.resize(holders, len(silo.validation)), test])
    return replace(silo, train=rows, owners=owners, clients=clients, validation=None, test_owners=None, client_names=())
