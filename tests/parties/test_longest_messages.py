"""How long messages may be: all that parties send fits, nobody may send what is another's, and little more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from crosshatch import wire
from crosshatch.errors import MessageError
from crosshatch.parties.line import Key, Line, Name
from crosshatch.parties.longest_messages import longest_of
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.party import Party
from crosshatch.testing.federations import FederationCase, all_cases
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.transfer_federations import transfer_cases

CASES = {case.name: case for case in (*all_cases(), *transfer_cases()) if not case.name.startswith(("JFL", "branches"))}
INSIDE = ("own block", "class mean")
UNSAID = 1_000_000


@dataclass(frozen=True)
class Measuring:
    """A line that holds every message against what its receiver says is the most."""

    me: Name
    line: Line
    parties: dict[Name, Party]
    filled: dict[tuple[str, str, str], float]  # by kinds and exchange: the largest part of what is allowed

    def send(self, to: Name, key: Key, message: bytes) -> None:
        if self.parties[to].house != self.parties[self.me].house:
            most = longest_of(self.parties[to], lambda _: UNSAID)(self.me, key)
            assert len(message) <= most, f"{len(message)} bytes of {key} from {self.me} to {to}, {most} are the most"
            assert most < UNSAID or to.startswith("server"), key
            way = (self.me.partition("-")[0], to.partition("-")[0], key[1])
            self.filled[way] = max(self.filled.get(way, 0.0), len(message) / max(1, most))
        self.line.send(to, key, message)

    def recv(self, sender: Name, key: Key) -> bytes:
        return self.line.recv(sender, key)


def measured(case: FederationCase, rounds: int) -> dict[tuple[str, str, str], float]:
    engine = PartyByParty(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)
    filled: dict[tuple[str, str, str], float] = {}
    for party in engine.parties.values():
        party.join(Measuring(party.name, party.role.post.line, engine.parties, filled))
    for _ in range(rounds):
        engine.run_round()
    return filled


@pytest.mark.parametrize("name", CASES)
def test_all_that_is_sent_fits(name: str) -> None:
    assert measured(CASES[name], 3)


def test_nobody_sends_what_is_anothers() -> None:
    parties = parties_of(*(getattr(CASES["HSGD"], part) for part in ("data", "task", "algorithm")))
    longest = {name: longest_of(party, lambda _: UNSAID) for name, party in parties.items()}
    refused = [
        ("hub-0-1", "hub-0-0", "average_groups"),  # which only the server sends
        ("hub-0-1", "hub-0-0", "average"),
        ("client-0-1-0", "hub-0-1", "decide"),
        ("client-0-1-0", "hub-0-1", "broadcast"),
        ("server-0-0", "hub-0-1", "share"),
        ("hub-0-1", "server-0-0", "share"),
        ("hub-0-1", "client-0-1-0", "average"),
    ]
    for sender, to, exchange in refused:
        assert longest[to](sender, (3, exchange, 0)) == 0, (sender, to, exchange)
    assert longest["hub-0-1"]("server-0-0", (3, "average_groups", 0)) > 0
    assert longest["hub-0-1"]("client-0-1-0", (3, "a user's own", 0)) == UNSAID


def test_large_blocks_do_not_let_rows_be_long() -> None:
    case = CASES["TDCD"]
    hub = parties_of(case.data, case.task, case.algorithm, seed=case.seed)["hub-0-0"]
    longest = longest_of(hub, lambda _: UNSAID)
    samples, steps = len(case.data.y_train), case.algorithm.local_steps
    assert longest("hub-0-1", (0, "share", 0)) <= 1024 + 8 * samples * steps * 2
    assert longest("client-0-0-0", (0, "share", 0)) < longest("hub-0-1", (0, "share", 0))
    assert longest("client-0-0-0", (0, "average", 0)) == 1024 + 8 * 4


@dataclass(frozen=True)
class Bending:
    """A line that changes the tensors of one message on its way."""

    line: Line
    exchange: str
    bend: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]

    def send(self, to: Name, key: Key, message: bytes) -> None:
        if key[1] == self.exchange:
            header, tensors = wire.decode(message)
            message = wire.encode(header.run, *key[:2], self.bend(tensors), use=key[2])
        self.line.send(to, key, message)

    def recv(self, sender: Name, key: Key) -> bytes:
        return self.line.recv(sender, key)


def first(change: Callable[[Tensor], Tensor]) -> Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]:
    return lambda tensors: (change(tensors[0]), *tensors[1:])


def run(engine: PartyByParty, rounds: int) -> None:
    for _ in range(rounds):
        engine.run_round()


BENT = {
    "one row for all": ("TDCD", "client-0-0-0", "share", first(lambda one: one[:1])),
    "other numbers": ("TDCD", "client-0-0-0", "share", first(Tensor.float)),
    "a row less from a hub": ("TDCD", "hub-0-0", "share", first(lambda one: one[1:])),
    "a longer block": ("TDCD", "client-0-0-0", "average", first(lambda one: torch.cat([one, one]))),
    "a block as a column": ("TDCD", "hub-0-0", "broadcast", first(lambda one: one[:, None])),
    "no block": ("TDCD", "client-0-0-0", "average", lambda _: ()),
    "one answer for all": ("TDCD, labels held, each step", "hub-0-0", "derivatives", first(lambda one: one[:1])),
    "from a server": ("HSGD", "server-0-0", "average_groups", first(lambda one: one[:1])),
    "to a server": ("HSGD", "hub-0-1", "average_groups", first(lambda one: one[:1])),
    "moments cut off": ("TDCD, fresh batches, Adam averaged", "client-0-0-0", "average", lambda tensors: tensors[:1]),
    "a token": ("MTCD", None, "pass token", first(lambda one: one[:1])),
    "a dual": ("DCPA", "agent-1", "compare duals", first(lambda one: one[:1])),
}


@pytest.mark.parametrize("what", BENT)
def test_other_shapes_than_are_due_end_the_run_with_a_line(what: str) -> None:
    name, who, exchange, bend = BENT[what]
    case = CASES[name]
    engine = PartyByParty(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)
    for party in engine.parties.values():
        if who in (None, party.name):
            party.join(Bending(party.role.post.line, exchange, bend))
    with pytest.raises(MessageError, match=f"{who or 'agent'}.* sent .* as '{exchange}' of round ., use .* is due"):
        run(engine, 4)
