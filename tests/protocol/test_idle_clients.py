"""The note on idle clients: its numbers against rounds really drawn, and when it is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.protocol.batches import SeededBatches
from crosshatch.protocol.client_weights import everyones_weights
from crosshatch.protocol.idle_clients import Drawn, _working, idle_note
from crosshatch.protocol.members import members_of

ROUNDS = 3000


@pytest.mark.parametrize("weights", ["equal", "samples"])
@pytest.mark.parametrize(("size", "parts"), [(1, 1), (3, 1), (3, 4), (18, 1), (20, 1)])
def test_what_is_expected_is_the_average_over_rounds(weights: Any, size: int, parts: int) -> None:
    owners = np.array([0] * 9 + [1] * 5 + [2] * 3 + [3, 3, 4])
    clients, source = 7, SeededBatches(3)  # two of them have nothing at all
    found = _working(owners, clients, Drawn(size, parts), weights, chosen=True)
    shares = everyones_weights(owners, clients, np.arange(clients), weights)
    at_work = [
        np.unique(owners[np.concatenate([source.ids(r, part, size, len(owners)) for part in range(parts)])])
        for r in range(ROUNDS)
    ]
    assert found.at_work == pytest.approx(np.mean([len(some) for some in at_work]), abs=0.05)
    assert found.weight == pytest.approx(np.mean([shares[some].sum() for some in at_work]), abs=0.02)


def data_of(*clients: int, samples: int = 1000, groups: Sequence[int] | None = None) -> FederatedData:
    x, y = torch.zeros(samples, 1), torch.zeros(samples)
    silos = tuple(
        SiloData(f"silo{j}", x, x[:1], ("a",), np.arange(samples) % count, count) for j, count in enumerate(clients)
    )
    where = None if groups is None else np.repeat(np.arange(len(groups)), groups)
    return FederatedData(silos, y, y[:1], "regression", 1, groups=where)


def groups_of(data: FederatedData) -> list[FederatedData]:
    return [member.data for member in members_of(data, seed=0)]


def test_the_line_names_silo_numbers_and_remedy() -> None:
    note = idle_note(groups_of(data_of(1, 1000)), Drawn(20), "equal")
    assert note == (
        "a round reaches about 20 of the 1,000 clients of silo 'silo1', and with algorithm.weights = 'equal' all "
        "others count in its average with the block they started from, which shrinks every step to 2% of its length: "
        "set algorithm.weights = 'at_work'"
    )


# With a sample per client the share at work is that of the samples: ten to one is a batch of 1000 / 11.
@pytest.mark.parametrize("weights", ["equal", "samples"])
@pytest.mark.parametrize(("size", "due"), [(1, True), (90, True), (91, False), (500, False), (None, False)])
def test_ten_to_one_is_the_limit(weights: Any, size: int | None, due: bool) -> None:
    assert (idle_note(groups_of(data_of(1000, 2)), Drawn(size), weights) is not None) is due
    assert idle_note(groups_of(data_of(1000, 2)), Drawn(size), "at_work") is None
    assert idle_note(groups_of(data_of(2, 1)), Drawn(size), weights) is None


def test_batches_of_all_steps_count() -> None:
    assert idle_note(groups_of(data_of(1000)), Drawn(50), "equal") is not None
    assert idle_note(groups_of(data_of(1000)), Drawn(50, parts=10), "equal") is None


def test_a_fraction_of_the_clients() -> None:
    assert idle_note(groups_of(data_of(100, 1)), Drawn(fraction=0.05), "equal") is not None
    assert idle_note(groups_of(data_of(100, 1)), Drawn(fraction=0.1), "equal") is None


def test_groups_have_clients_and_batches_of_their_own() -> None:
    whole = data_of(1000)
    assert idle_note(groups_of(whole), Drawn(20), "equal") is not None
    assert idle_note(groups_of(replace(whole, groups=np.arange(1000) // 100)), Drawn(20), "equal") is None
    uneven = replace(whole, groups=np.repeat([0, 1], [30, 970]))
    note = idle_note(groups_of(uneven), Drawn(20), "equal")
    assert note is not None
    assert "20 of the 970 clients" in note
