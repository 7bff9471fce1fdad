"""Groups have samples, clients and seeds of their own; which silos are one party follows from the tiers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from crosshatch.protocol.members import members_of, one_party_silos, pair, tiers_of
from crosshatch.seeds import torch_seed
from crosshatch.testing.federations import make_data
from crosshatch.topology import Topology


def test_a_federation_without_groups_is_its_only_member() -> None:
    data = make_data((2, 3))
    (member,) = members_of(data, seed=7)
    assert member.data is data
    assert (member.suffix, member.batch_seed, member.codec_seed) == ("", 7, 7)


def test_groups_are_cut_out_and_numbered_anew() -> None:
    data = make_data((1, 3), groups=(6, 8))
    assert data.groups is not None
    members = members_of(data, seed=7)
    assert [member.suffix for member in members] == ["@0", "@1"]
    seeds = [seed for member in members for seed in (member.batch_seed, member.codec_seed)]
    assert seeds == [torch_seed(7, purpose, g) for g in (0, 1) for purpose in ("group", "codecs")]
    for g, member in enumerate(members):
        rows = np.flatnonzero(data.groups == g)
        assert torch.equal(member.data.y_train, data.y_train[rows])
        assert member.data.groups is None
        for silo, whole, clients in zip(member.data.silos, data.silos, (1, 3), strict=True):
            assert torch.equal(silo.train, whole.train[rows])
            assert silo.clients == clients
            assert np.array_equal(silo.owners, whole.owners[rows] - g * clients)


@pytest.mark.parametrize(
    ("tiers", "clients", "single"),
    [("V(2)", (1, 1), {0, 1}), ("V(2) H(2)", (1, 4), set()), ("H(2) V(2) H(2)", (1, 4), {0}), ("H(2)", (3,), set())],
)
def test_silos_of_one_party(tiers: str, clients: tuple[int, ...], single: set[int]) -> None:
    assert one_party_silos(Topology.parse(tiers), clients) == single


def test_tiers_nest() -> None:
    assert [tier.tolist() for tier in tiers_of(3, ())] == [[0, 0, 0]]
    assert [tier.tolist() for tier in tiers_of(4, (2, 2))] == [[0, 0, 0, 0], [0, 0, 1, 1]]


def test_pairs_follow_the_silo_with_the_most_clients() -> None:
    data = make_data((1, 4))
    paired = pair(data)
    assert [silo.clients for silo in paired.silos] == [4, 4]
    assert all(np.array_equal(silo.owners, data.silos[1].owners) for silo in paired.silos)
