"""Labels held: the holder goes on with what it was last sent, and its clients compute with the heads they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from crosshatch.codecs import parse_codec
from crosshatch.errors import ConfigError
from crosshatch.exchanges import LocalSteps
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.check_federation import check_rounds
from crosshatch.testing.federations import FederationCase, make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.topology import Topology
from tests.support.senders import simulator


@dataclass(frozen=True)
class Moving:
    """All silos move after each of several exchanges with the holder, of which the later ones have some senders only.

    With `inner` the exchanges are those of local steps, around what was sent first.
    """

    senders: tuple[tuple[int, ...] | None, ...]
    inner: bool = False
    parts: int = 1
    tiers: str = "V(2) H(2)"
    local_steps: int = 2
    step_size: float = 0.3

    @property
    def topology(self) -> Topology:
        return Topology.parse(self.tiers)

    def run_round(self, fed: Any, blocks: Any, r: int) -> Any:
        batch = fed.draw_batch(8, round=r, parts=self.parts)
        blocks = fed.broadcast(blocks, batch)
        start = fed.embed(blocks, batch)
        frozen = None
        for q, some in enumerate((None, *self.senders)):
            now = fed.embed(blocks, batch) if q else start
            around, step = start if self.inner else None, q if self.inner else 0
            frozen = fed.share_derivatives(now, batch, known=frozen, around=around, step=step, senders=some)
            steps = 1 if self.inner else 2
            blocks = fed.descend(blocks, batch, frozen, LocalSteps(steps, self.step_size, first=q * self.inner))
        return fed.average(blocks, batch)


THREE = make_data((2, 5, 3), held=1)
TURNS = ((0,), (2, 0), (2,), ())
CODED = {"share": "ef(topk(0.5))", "derivatives": "randomk(0.5)"}
CASES: dict[str, tuple[Any, Any, int | None, dict[str, str]]] = {
    "senders": (THREE, Moving(TURNS), None, {}),
    "senders, coded": (THREE, Moving(TURNS), None, CODED),
    "senders, several parts": (THREE, Moving(TURNS, parts=2), None, {}),
    "senders, each step": (THREE, Moving(TURNS, inner=True), None, {}),
    "senders, one client per silo": (make_data((1, 1, 1), held=1), Moving(TURNS, tiers="V(2)"), None, {}),
    "heads that moved": (THREE, Moving((None, None)), 1, {}),
    "heads that moved, senders": (THREE, Moving(TURNS), 1, {}),
    "heads that moved, several parts": (THREE, Moving(TURNS, parts=2), 1, {}),
    "heads that moved, each step": (THREE, Moving(TURNS, inner=True), 1, {}),
    "heads that moved, coded": (THREE, Moving((None, (0,))), 1, CODED | {"broadcast": "half"}),
    "heads that moved, one client": (make_data((3, 1, 2), held=1), Moving((None, (0,))), 1, {}),
    "heads that moved, single steps": (THREE, Moving((None, (2,)), local_steps=1), 1, {}),
}


def case_of(name: str) -> FederationCase:
    data, algorithm, holder, codecs = CASES[name]
    coded = {exchange: parse_codec(text) for exchange, text in codecs.items()}
    return FederationCase(name, data, make_task(3, holder=holder), algorithm, coded)


@pytest.mark.parametrize("name", CASES)
def test_simulator_agrees_with_the_parties(name: str) -> None:
    assert check_rounds(simulator, case_of(name), rounds=4) < 1e-12


@dataclass(frozen=True)
class Stale(Moving):
    """Embeds the senders and the holder alone: of all others what was sent is what there is."""

    def run_round(self, fed: Any, blocks: Any, r: int) -> Any:
        batch = fed.draw_batch(8, round=r)
        blocks = fed.broadcast(blocks, batch)
        now, frozen = fed.embed(blocks, batch), None
        for some in (None, *self.senders):
            for silo in (*(some or ()), 1):
                now = fed.embed(blocks, batch, only=silo, known=now)
            frozen = fed.share_derivatives(now, batch, known=frozen, senders=some)
            blocks = fed.descend(blocks, batch, frozen, LocalSteps(2, self.step_size))
        return fed.average(blocks, batch)


@pytest.mark.parametrize("holder", [None, 1])
@pytest.mark.parametrize("engine", [Simulator, PartyByParty])
def test_what_was_not_sent_does_not_count(engine: Any, holder: int | None) -> None:
    """New embeddings of silos that do not send change nothing."""
    ends = []
    for algorithm in (Moving(TURNS), Stale(TURNS)):
        one = engine(THREE, make_task(3, holder=holder), algorithm, seed=3, precision=torch.float64)
        one.run_round()
        ends.append(one.weights)
    for mine, theirs in zip(*ends, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", [Simulator, PartyByParty])
def test_somebody_has_sent_nothing_yet(engine: Any) -> None:
    class Silent(Moving):
        def run_round(self, fed: Any, blocks: Any, r: int) -> Any:
            batch = fed.draw_batch(8, round=r)
            blocks = fed.broadcast(blocks, batch)
            fed.share_derivatives(fed.embed(blocks, batch), batch, senders=(0,))

    with pytest.raises(ConfigError, match="silo number 2 does not send, and nothing it sent of this batch is known"):
        engine(THREE, make_task(3), Silent(()), precision=torch.float64).run_round()
