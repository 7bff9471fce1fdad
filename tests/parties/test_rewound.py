"""A party that is set back: it says the same again, and told something else it covers its numbers with other noise."""

from __future__ import annotations

import runpy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from crosshatch import wire
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.parties.line import Key, Line, Name
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.packed_state import StoredState, pack, unpack
from crosshatch.parties.seeing_all import model_of, total
from crosshatch.private_randomness import PrivateSeed
from crosshatch.testing.federations import make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.run_disturbed import run_disturbed
from tests.architecture.modules import ROOT

Noise: Any = runpy.run_path(str(ROOT / "examples" / "noise.py"))["Noise"]
ME, SEED = "client-0-0-1", PrivateSeed.fresh("0badcafe")
FEDERATION: tuple[Any, ...] = (make_data((2, 2), samples=24), make_task(2), TDCD(2, 0.1, None))


@dataclass
class Played:
    """A line that was listened to, or one that plays what was heard, the blocks moved by `shift`."""

    line: Line | None = None
    shift: float = 0.0
    heard: dict[tuple[Name, Key], bytes] = field(default_factory=dict)
    said: dict[Key, bytes] = field(default_factory=dict)

    def send(self, to: Name, key: Key, message: bytes) -> None:
        self.said[key] = message
        if self.line is not None:
            self.line.send(to, key, message)

    def recv(self, sender: Name, key: Key) -> bytes:
        if self.line is not None:
            self.heard[sender, key] = self.line.recv(sender, key)
        header, tensors = wire.decode(self.heard[sender, key])
        moved = tuple(one + self.shift if header.exchange == "broadcast" else one for one in tensors)
        return wire.encode(header.run, header.round, header.exchange, moved, use=header.use)


def listened(deviation: float) -> tuple[Party, bytes, Played]:
    """A client as it was made, its state before the last of three rounds, and what it heard and said in that round."""
    codecs = {"average": Noise(deviation, SEED)}
    engine = PartyByParty(*FEDERATION, codecs=codecs)
    for _ in range(2):
        engine.run_round()
    party = engine.parties[ME]
    state = pack(StoredState(SEED.run, ME, 2, party.state(), secret=SEED.secret))
    party.join(played := Played(party.role.post.line))
    engine.run_round()
    return parties_of(*FEDERATION, codecs=codecs)[ME], state, played


def said_again(party: Party, state: bytes, heard: dict[tuple[Name, Key], bytes], shift: float) -> Tensor:
    """What a party that goes on from its state tells its hub of how far it moved."""
    stored = unpack(state, run=SEED.run, party=ME)
    assert stored.secret == SEED.secret
    party.load(stored.value)
    party.join(played := Played(shift=shift, heard=heard))
    party.run_round()
    ((content,),) = (wire.decode(one)[1] for key, one in played.said.items() if key[1] == "average")
    return torch.frombuffer(bytearray(content.numpy().tobytes()), dtype=torch.float64)


def test_set_back_and_told_another_block() -> None:
    noisy, clean = listened(1.0), listened(0.0)
    heard = noisy[2].heard
    covered = [said_again(*noisy[:2], heard, shift) for shift in (0.0, 0.0, 0.25)]
    plain = [said_again(*clean[:2], heard, shift) for shift in (0.0, 0.0, 0.25)]
    assert torch.equal(covered[0], covered[1])  # the round that is run again says the same
    assert not torch.equal(plain[0], plain[2])
    noise = [one - other for one, other in zip(covered, plain, strict=True)]
    assert float((noise[0] - noise[2]).abs().max()) > 0.1  # under the same key, for other numbers, other noise
    assert all(0.2 < float(one.abs().max()) < 6 for one in noise)


def test_noise_comes_through_crashes_bit_for_bit() -> None:
    codecs = {"average": Noise(0.01, SEED)}
    engine = PartyByParty(*FEDERATION, codecs=codecs)
    for _ in range(6):
        engine.run_round()
    fresh = parties_of(*FEDERATION, codecs=codecs)
    peers = {name: [other for other in fresh if other != name] for name in fresh}
    for seed in range(5):
        end = run_disturbed(fresh, peers, rounds=6, seed=seed)
        assert all(map(torch.equal, model_of(end.parties), engine.weights))
        assert total(party.meter for party in end.parties.values()) == engine.meter
