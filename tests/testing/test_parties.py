"""Parties in turn learn of each other by bytes alone, and know nothing of the simulator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.parties.line import Name
from crosshatch.parties.post import Post
from crosshatch.protocol.message_contents import Call
from crosshatch.testing.federations import FederationCase, all_cases
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.parties.turns import TurnLine, Turns
from tests.architecture.modules import imports, modules

CASES = {case.name: case for case in all_cases()}


def make(case: FederationCase) -> PartyByParty:
    return PartyByParty(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)


def test_a_message_is_counted_by_its_bytes_and_shares_no_memory() -> None:
    turns, sent = Turns(), torch.arange(6.0).reshape(2, 3)
    one, other = Post(torch.float32), Post(torch.float32)
    one.line, other.line = TurnLine("hub-0-0", turns), TurnLine("client-0-0-0", turns)
    other.send("hub-0-0", "client-hub up", Call("share", 3, 1), sent)
    (arrived,) = one.recv("client-0-0-0", Call("share", 3, 1))
    assert torch.equal(arrived, sent)
    assert arrived.data_ptr() != sent.data_ptr()
    size = 4 + len(b"\x95\xa80badcafe\x03\xa5share\x01\x91\x92\xa2f4\x92\x02\x03") + 24
    assert other.meter.links == {"client-hub up": [size, 1]}
    other.send("hub-0-0", None, Call("share", 3, 1), sent)
    assert (one.meter.messages, other.meter.messages) == (0, 1)


@pytest.mark.parametrize("link", ["client-hub up", "client-hub down", "hub-hub across"])
def test_nothing_goes_round_the_post(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros in place of what a link carries change what is trained: nobody knows better from elsewhere."""
    usual = make(CASES["TDCD"])
    send = Post.send

    def spoilt(self: Post, to: Name, which: str | None, call: Call, *given: Tensor) -> None:
        send(self, to, which, call, *(torch.zeros_like(one) if which == link else one for one in given))

    usual.run_round()
    monkeypatch.setattr(Post, "send", spoilt)
    other = make(CASES["TDCD"])
    other.run_round()
    assert all(not torch.equal(a, b) for a, b in zip(usual.weights, other.weights, strict=True))
    assert usual.meter == other.meter


def test_a_block_nobody_sent_is_noticed() -> None:
    party = make(CASES["TDCD"]).parties["client-0-0-0"]
    role: Any = party.role
    with pytest.raises(ConfigError, match="clients of silo number 0 have samples of the batch and were not sent"):
        role.embed(party.blocks, role.draw_batch(None, round=0))


def test_who_waits_for_what_nobody_sends_is_told() -> None:
    turns = Turns()
    lines = {name: TurnLine(name, turns) for name in ("hub", "client")}
    with pytest.raises(RuntimeError, match=r"nobody can go on: hub waits for \(0, 'share', 0\) of client"):
        turns.run({"hub": lambda: lines["hub"].recv("client", (0, "share", 0)), "client": lambda: b""})


@pytest.mark.parametrize("name", ["ABCD, clients, coded", "HSGD, Adam averaged", "JFL, Adam averaged", "MTCD", "DCPA"])
def test_a_state_is_all_that_rounds_to_come_depend_on(name: str) -> None:
    first, again = make(CASES[name]), make(CASES[name])
    for _ in range(3):
        first.run_round()
    for one, other in zip(first.parties.values(), again.parties.values(), strict=True):
        other.load(one.state())
    for engine in (first, again):
        for _ in range(3):
            engine.run_round()
    assert all(map(torch.equal, first.weights, again.weights))
    assert first.meter == again.meter


def test_parties_know_nothing_of_the_simulator() -> None:
    named = [module for module in modules() if module.name.startswith(("crosshatch.testing.", "crosshatch.parties."))]
    of_simulator = ("crosshatch.testing.golden", "crosshatch.testing.check_values")
    ours = [module for module in named if module.name not in of_simulator]
    assert len(ours) > 20
    assert not [(m.place, name) for m in ours for _, name in imports(m) if name.startswith("crosshatch.simulator")]
