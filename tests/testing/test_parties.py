"""Parties hold what is theirs, learn of each other by bytes alone, and know nothing of the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.errors import ConfigError
from crosshatch.meter import Meter
from crosshatch.protocol.message_contents import Call
from crosshatch.testing.federations import FederationCase, graph_cases, vertical_cases
from crosshatch.testing.parties.agreed import Agreed
from crosshatch.testing.parties.client import Client
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.parties.graph.dual_parties import DualParties
from crosshatch.testing.parties.graph.token_parties import TokenParties
from crosshatch.testing.parties.hub import Hub
from crosshatch.testing.parties.post import Post
from crosshatch.testing.parties.vertical_parties import VerticalParties
from tests.architecture.modules import imports, modules

CASES = {case.name: case for case in vertical_cases()}


def make(case: FederationCase) -> PartyByParty:
    return PartyByParty(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)


def vertical(engine: PartyByParty) -> VerticalParties:
    assert isinstance(engine.parties, VerticalParties)
    return engine.parties


def tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor that can be reached from a party."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from value.parameters()
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from tensors(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from tensors(inner)
    elif is_dataclass(value):
        for one in fields(value):
            yield from tensors(getattr(value, one.name))


def parties(engine: PartyByParty) -> Iterator[Hub | Client]:
    for group in vertical(engine).servers.groups:
        yield from group.parties.hubs
        for clients in group.parties.clients:
            yield from clients


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_party_has_anothers_rows_labels_or_weights(case: FederationCase) -> None:
    engine = make(case)
    for _ in range(2):
        engine.run_round()
    every = list(parties(engine))
    head = {p.data_ptr() for p in (case.task.head or nn.Identity()).parameters()}
    templates = [{p.data_ptr() for p in one.model.block.parameters()} for one in every]
    mine = [{t.data_ptr() for t in tensors(one) if t.numel()} - head for one in every]
    for i, one in enumerate(every):
        for k, other in enumerate(every):
            shared = mine[i] & mine[k]
            if other is not one and other.silo != one.silo:
                assert not shared - _heads(one), f"silos {one.silo} and {other.silo} have a tensor in common"
            elif other is not one:
                own = {one.model.first.data_ptr(), *_indices(one)} | templates[i] | _heads(one)
                assert shared <= own, f"parties of silo {one.silo} share more than where they start from"


@pytest.mark.parametrize("case", graph_cases(), ids=lambda case: case.name)
def test_no_agent_has_anothers_columns_blocks_or_scores(case: FederationCase) -> None:
    engine = make(case)
    for _ in range(5):
        engine.run_round()
    assert isinstance(engine.parties, TokenParties | DualParties)
    mine = [{t.data_ptr() for t in tensors(agent) if t.numel()} for agent in engine.parties.agents]
    assert all(not one & other for k, one in enumerate(mine) for other in mine[:k])
    held = [token for agent in engine.parties.agents for token in agent.held]
    assert sorted(held) == list(range(getattr(case.algorithm, "tokens", 0)))


def _heads(one: Hub | Client) -> set[int]:
    """The head's template: known to all, with first weights that only its holder trains."""
    return set() if one.model.head is None else {p.data_ptr() for p in one.model.head.parameters()} | _indices(one)


def _indices(one: Hub | Client) -> set[int]:
    return {t.data_ptr() for t in (one.model.trained, one.model.trained_head) if t is not None}


def test_a_client_has_its_own_samples_only() -> None:
    case = CASES["TDCD, labels held, each step"]
    (group,) = vertical(make(case)).servers.groups
    for silo, clients in zip(case.data.silos, group.parties.clients, strict=True):
        assert np.array_equal(np.sort(np.concatenate([c.ids for c in clients])), np.arange(len(silo.train)))
        for client in clients:
            assert torch.equal(client.x, silo.train[client.ids])
            if silo.name == case.data.label_silo:
                assert client.y is not None
                assert torch.equal(client.y, case.data.y_train[client.ids])
            else:
                assert client.y is None


def test_what_is_agreed_has_no_tensors() -> None:
    for case in CASES.values():
        for group in vertical(make(case)).servers.groups:
            assert isinstance(group.agreed, Agreed)
            assert not list(tensors(group.agreed))


def test_a_message_is_counted_by_its_bytes_and_shares_no_memory() -> None:
    post, sent = Post(Meter()), torch.arange(6.0).reshape(2, 3)
    (arrived,) = post.carry("client-hub up", Call("share", 3, 1), sent)
    assert torch.equal(arrived, sent)
    assert arrived.data_ptr() != sent.data_ptr()
    assert post.meter.links == {
        "client-hub up": [4 + len(b"\x95\xa80badcafe\x03\xa5share\x01\x91\x92\xa2f4\x92\x02\x03") + 24, 1]
    }
    post.carry(None, Call("share", 3, 1), sent)
    assert post.meter.messages == 1


@pytest.mark.parametrize("link", ["client-hub up", "client-hub down", "hub-hub across"])
def test_nothing_goes_round_the_post(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros in place of what a link carries change what is trained: nobody knows better from elsewhere."""
    usual = make(CASES["TDCD"])
    carry = Post.carry

    def spoilt(self: Post, which: str | None, call: Call, *given: Tensor) -> tuple[Tensor, ...]:
        arrived = carry(self, which, call, *given)
        return tuple(torch.zeros_like(one) for one in arrived) if which == link else arrived

    usual.run_round()
    monkeypatch.setattr(Post, "carry", spoilt)
    other = make(CASES["TDCD"])
    other.run_round()
    assert all(not torch.equal(a, b) for a, b in zip(usual.weights, other.weights, strict=True))
    assert usual.meter == other.meter


def test_a_block_nobody_sent_is_noticed() -> None:
    engine = make(CASES["TDCD"])
    (group,) = vertical(engine).servers.groups
    batch = group.draw_batch(6, round=0)
    with pytest.raises(ConfigError, match="were not sent their block"):
        group.embed(vertical(engine).blocks[0], batch)


def test_parties_know_nothing_of_the_simulator() -> None:
    named = [module for module in modules() if module.name.startswith("crosshatch.testing.")]
    of_simulator = ("crosshatch.testing.golden", "crosshatch.testing.check_values")
    ours = [module for module in named if module.name not in of_simulator]
    assert len(ours) > 10
    assert not [(m.place, name) for m in ours for _, name in imports(m) if name.startswith("crosshatch.simulator")]
