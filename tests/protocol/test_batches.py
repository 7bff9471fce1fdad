"""Batches: the same ids for everyone who knows the seed, shared out by who holds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings
from crosshatch.protocol.batches import SeededBatches, draw


@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**63), round=st.integers(0, 10**6), part=st.integers(0, 100), samples=st.integers(1, 300),
    data=st.data(),
)  # fmt: skip
def test_ids_agree_and_are_distinct(seed: int, round: int, part: int, samples: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, samples))
    ids = SeededBatches(seed).ids(round, part, size, samples)
    assert np.array_equal(ids, SeededBatches(seed).ids(round, part, size, samples))
    assert ids.dtype == np.int64
    assert len(set(ids.tolist())) == size
    assert ids.min() >= 0
    assert ids.max() < samples


def test_rounds_parts_and_seeds_draw_different_ids() -> None:
    drawn = {
        tuple(SeededBatches(seed).ids(round, part, 20, 10_000).tolist())
        for seed in range(3)
        for round in range(4)
        for part in range(5)
    }
    assert len(drawn) == 3 * 4 * 5


def test_further_parts_go_on_where_the_first_ones_ended() -> None:
    every = [SeededBatches(3).ids(4, part, 10, 100) for part in range(5)]
    later = draw(SeededBatches(3), samples=100, size=10, round=4, parts=2, first=3)
    assert [ids.tolist() for ids in later] == [ids.tolist() for ids in every[3:]]


def test_every_sample_is_drawn_equally_often() -> None:
    """2000 batches of 5 from 20: each sample about 500 times (standard deviation 19)."""
    counts = np.bincount(np.concatenate([SeededBatches(3).ids(r, 0, 5, 20) for r in range(2000)]), minlength=20)
    assert counts.sum() == 10_000
    assert np.abs(counts - 500).max() < 5 * 19.4


@pytest.mark.parametrize("clients", [2, 5])
def test_silos_divide_the_samples_differently(clients: int) -> None:
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=3, clients=clients), seed=1)
    again = federate(load_dataset("breast_cancer"), FederationSettings(silos=3, clients=clients), seed=1)
    other = federate(load_dataset("breast_cancer"), FederationSettings(silos=3, clients=clients), seed=2)
    for j, silo in enumerate(data.silos):
        assert set(silo.owners.tolist()) == set(range(clients))
        assert np.array_equal(silo.owners, again.silos[j].owners)
        assert not np.array_equal(silo.owners, other.silos[j].owners)
        for later in data.silos[j + 1 :]:
            assert not np.array_equal(silo.owners, later.owners)
