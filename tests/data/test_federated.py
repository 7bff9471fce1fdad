"""Data divided by hand: what does not belong together is refused where it is put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.errors import PartitionError


def divided(
    *, owners: Any = (0, 0, 1, 1), clients: int = 2, rows: int = 4, test: int = 2, **rest: Any
) -> FederatedData:
    x = torch.zeros(rows, 2)
    silo = SiloData("bank", x, torch.zeros(test, 2), ("a", "b"), np.asarray(owners, dtype=np.int64), clients)
    return FederatedData((silo,), torch.zeros(4), torch.zeros(2), "binary", 2, **rest)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"owners": (0, 0, 1, 2)}, r"sample 3 of silo 'bank' has the owner 2, its clients are 0 to 1.*clients to 3"),
        ({"owners": (0, -1, 1, 1)}, r"sample 1 of silo 'bank' has the owner -1"),
        ({"owners": (0, 1, 1)}, "3 owners for 4 labels"),
        ({"rows": 5}, "5 training samples for 4 labels"),
        ({"test": 3}, "3 test samples for 2 labels"),
        ({"label_silo": "shop"}, "label_silo = 'shop' is not a silo: the silos are bank"),
        ({"groups": np.zeros(3, dtype=np.int64)}, "groups has 3 entries for 4 training samples"),
    ],
)
def test_what_does_not_belong_together(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(PartitionError, match=reason):
        divided(**change)


def test_clients_without_samples_are_fine() -> None:
    assert divided(clients=5).silos[0].clients == 5
