"""What clients really hold where a codec builds on earlier messages, or loses something on its way down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.jfl import JFL
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import Quantise, TopK, parse_codec
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm
from crosshatch.protocol.batches import SeededBatches
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.federations import make_data, make_task
from tests.equivalence.hospitals import distance, hospitals, model, simulate
from tests.exchanges.texts import Text
from tests.simulator.parties import Parties
from tests.support.exchanging import STEP, begin

DATA = hospitals([24], per_device=2)
CODECS = [
    {"broadcast": "ef(topk(0.3))"},
    {"broadcast": "quantise(16)"},
    {"broadcast": "ef(topk(0.3), accumulate)"},
    {"head": "ef(topk(0.2))"},
    {"head": "topk(0.2)"},
    {"broadcast": "ef(quantise(4))", "head": "ef(topk(0.2))"},
]


@pytest.mark.parametrize("texts", CODECS, ids=str)
@pytest.mark.parametrize("fusion", ["sum", "head"])
@pytest.mark.parametrize("steps", [1, 3])
def test_clients_that_were_idle_hold_what_the_simulator_computes_with(
    texts: dict[str, str], fusion: str, steps: int
) -> None:
    """Five samples a round, so most of the twelve devices miss most messages; every party has a memory of its own."""
    codecs = {name: parse_codec(text) for name, text in texts.items()}
    ours = simulate(DATA, TDCD(steps, 0.05, 5), rounds=8, fusion=fusion, codecs=codecs)
    naive = Parties(DATA, model(fusion), codecs)
    for r in range(8):
        naive.run_round(r, SeededBatches(0).ids(r, 0, 5, 24), steps, 0.05, everyone=True)
    torch.testing.assert_close(torch.cat(ours.weights), torch.cat(naive.blocks), rtol=0, atol=1e-12)
    assert {name: size for name, (size, _) in ours.meter.exchanges.items()} == naive.bytes


def test_who_missed_a_message_is_remembered_in_a_checkpoint() -> None:
    codecs = {"broadcast": parse_codec("ef(topk(0.3))"), "head": parse_codec("ef(topk(0.2))")}
    straight = simulate(DATA, TDCD(2, 0.05, 5), rounds=8, codecs=codecs)
    first, second = (simulate(DATA, TDCD(2, 0.05, 5), rounds=r, codecs=codecs) for r in (3, 0))
    second.restore(*first.snapshot())
    for _ in range(5):
        second.run_round()
    assert distance(straight, second) == 0
    assert second.meter == straight.meter
    assert second.seconds == straight.seconds


@pytest.mark.parametrize("algorithm", [HSGD(2, 2, 0.05, 0.2), JFL(1, 0.05, 0.2)], ids=["hsgd", "jfl"])
def test_catching_up_costs_bytes(algorithm: Algorithm) -> None:
    """With a fifth of the devices at work error feedback saves far less than with all of them."""
    codecs = {"broadcast": parse_codec("ef(topk(0.1))"), "head": parse_codec("ef(topk(0.1))")}
    plain = parse_codec("topk(0.1)")
    rare = simulate(DATA, algorithm, rounds=6, codecs=codecs).meter
    cheap = simulate(DATA, algorithm, rounds=6, codecs=dict.fromkeys(codecs, plain)).meter
    full = simulate(DATA, algorithm, rounds=6).meter
    assert cheap.bytes < rare.bytes < full.bytes
    assert cheap.messages == rare.messages == full.messages


@pytest.mark.parametrize("text", ["quantise(16)", "half", "ef(topk(0.3))"])
def test_a_lossy_broadcast_leaves_the_block_of_idle_clients_alone(text: str) -> None:
    """One of 100 devices at work and hardly a step: 99 hundredths of the hub's block stay as they are."""
    data = hospitals([100])
    before = model("sum").to("cpu", torch.float64).initial()[1]
    batch = Tiered("V(1) H(1)", 1e-12, batch_size=1)
    after = simulate(data, batch, rounds=1, fusion="sum", codecs={"broadcast": parse_codec(text)}).weights[1]
    assert 0 < (after - before).norm() < 0.011 * before.norm()


def test_every_receiver_has_a_memory_of_the_head_of_its_own() -> None:
    """The head of silo 0 goes to silo 1 and, in an exchange of its own, to silo 2; m <- m + C(x - m) for each."""
    memory = dict.fromkeys((1, 2), torch.zeros(()))

    def text(fed: Any, blocks: Any, r: int) -> Any:
        batch, blocks, now = begin(fed, blocks, r)
        frozen = fed.exchange(now, batch, to=0)
        for silo in (1, 2):
            frozen = fed.exchange(now, batch, known=frozen, to=silo)
            memory[silo] = memory[silo] + TopK(0.3).roundtrip(now.head - memory[silo])
            torch.testing.assert_close(frozen.heads[silo], memory[silo], rtol=0, atol=1e-15)
            assert not torch.equal(frozen.heads[silo], now.head)
        return fed.descend(blocks, batch, frozen, STEP)

    codecs = {"head": parse_codec("ef(topk(0.3))")}
    task = make_task(3, holder=0)
    simulator = Simulator(make_data((1, 1, 1)), task, Text(text, "V(2)"), precision=torch.float64, codecs=codecs)
    for _ in range(3):
        simulator.run_round()


def test_error_feedback_on_the_way_through_branches_is_refused() -> None:
    data = replace(DATA, branches=(2,))
    with pytest.raises(ConfigError, match=r"codecs.broadcast = 'ef\(topk\(0.3\)\)': .* use 'topk\(0.3\)'"):
        simulate(data, Tiered("V(4) H(4) H(2)", 0.05), codecs={"broadcast": parse_codec("ef(topk(0.3))")})


@pytest.mark.parametrize("depth_first", ["V(4) H(4) H(2)", "V(4) H(4) H(1)"])
def test_a_lossy_broadcast_through_branches_leaves_idle_ones_alone(depth_first: str) -> None:
    """One sample at work below one of four branches: an idle branch's share is the hub's own block."""
    data = replace(hospitals([100]), branches=(4,))
    before = model("sum").to("cpu", torch.float64).initial()[1]
    coded, plain = (
        simulate(data, Tiered(depth_first, 1e-12, batch_size=1), rounds=1, fusion="sum", codecs=codecs).weights[1]
        for codecs in ({"broadcast": parse_codec("quantise(4)")}, {})
    )
    torch.testing.assert_close(plain, before, rtol=0, atol=1e-9)
    # The one branch at work, a quarter of all, holds what it got.
    arrived = Quantise(4).roundtrip(before)
    torch.testing.assert_close(coded, 0.75 * before + 0.25 * arrived, rtol=0, atol=1e-9)
