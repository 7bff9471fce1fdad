"""Codecs on the exchanges: nothing changes where they lose nothing, bytes are those really written, memory resumes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from crosshatch import wire
from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import AnyCodec, ErrorFeedback, Half, Identity, parse_codec
from crosshatch.data.federated import FederatedData, merge_clients
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm
from crosshatch.protocol.names import CODED
from crosshatch.simulator.simulator import Simulator
from tests.equivalence.hospitals import distance, hospitals, model, one_group, simulate
from tests.simulator.message_log import log_messages

ONE = hospitals([24], per_device=3)
HELD = hospitals([24], per_device=3, labels="hospital")
PARTIES = merge_clients(ONE)

RUNS: list[tuple[FederatedData, Algorithm, str]] = [
    (ONE, TDCD(3, 0.05, 10), "sum"),
    (ONE, TDCD(3, 0.05, 10, batches="fresh"), "head"),
    (HELD, TDCD(2, 0.05, 10), "sum"),
    (HELD, TDCD(2, 0.05, 10, derivatives="each_round"), "head"),
    (merge_clients(HELD), FedBCD(2, 0.05, 10), "sum"),
    (PARTIES, FedBCD(2, 0.05, 10, order="sequential"), "head"),
    (merge_clients(HELD), FedBCD(2, 0.05, 10, order="sequential"), "sum"),
    (hospitals([8, 12]), HSGD(4, 2, 0.05, 0.5), "head"),
]


def everywhere(codec: AnyCodec) -> dict[str, AnyCodec]:
    return dict.fromkeys(CODED, codec)


@pytest.mark.parametrize(("data", "algorithm", "fusion"), RUNS)
@pytest.mark.parametrize("codec", [Identity(), ErrorFeedback(Identity())])
def test_what_loses_nothing_changes_nothing(
    data: FederatedData, algorithm: Algorithm, fusion: str, codec: AnyCodec
) -> None:
    plain = simulate(data, algorithm, fusion=fusion)
    coded = simulate(data, algorithm, fusion=fusion, codecs=everywhere(codec))
    assert distance(plain, coded) < 1e-14  # a client's block is sent as how far it moved
    assert coded.meter.messages == plain.meter.messages


@pytest.mark.parametrize(("data", "algorithm", "fusion"), RUNS)
def test_all_entries_on_very_many_levels_is_no_codec(data: FederatedData, algorithm: Algorithm, fusion: str) -> None:
    plain = simulate(data, algorithm, fusion=fusion)
    codecs = {name: parse_codec("topk(1.0) | quantise(16777216)") for name in ("share", "derivatives")}
    assert distance(plain, simulate(data, algorithm, fusion=fusion, codecs=codecs)) < 1e-6


@pytest.mark.parametrize(("data", "algorithm", "fusion"), RUNS[:-1])
@pytest.mark.parametrize("text", ["half", "topk(0.3) | quantise(16)", "ef(topk(0.2))", "randomk(0.5)"])
def test_bytes_are_those_written(data: FederatedData, algorithm: Algorithm, fusion: str, text: str) -> None:
    codecs = everywhere(parse_codec(text))
    simulator = Simulator(data, model(fusion), algorithm, precision=torch.float64, threads=1, codecs=codecs)
    messages = log_messages(simulator)
    for _ in range(2):
        simulator.run_round()
    lengths = [
        len(wire.encode("0badcafe", r, exchange, tuple(torch.zeros(s, dtype=d) for d, s in specs), use=step))
        for _, _, r, exchange, step, specs in messages
    ]
    assert sum(lengths) == simulator.meter.bytes
    assert len(lengths) == simulator.meter.messages
    assert simulator.meter.bytes < simulate(data, algorithm, fusion=fusion, rounds=2).meter.bytes


def test_a_coded_message_has_the_length_of_what_the_codec_writes() -> None:
    codec = parse_codec("topk(0.3) | quantise(16)")
    simulator = simulate(
        merge_clients(hospitals([24])), FedBCD(1, 0.1), rounds=1, fusion="sum", codecs={"share": codec}
    )
    assert not isinstance(codec, ErrorFeedback)
    written = len(codec.encode(torch.randn(24, 1, dtype=torch.float64)))
    message = wire.encode("0badcafe", 0, "share", (torch.zeros(written, dtype=torch.uint8),))
    assert simulator.meter.bytes == 2 * len(message)


@pytest.mark.parametrize(("data", "algorithm", "fusion"), RUNS)
def test_memory_is_part_of_a_snapshot(data: FederatedData, algorithm: Algorithm, fusion: str) -> None:
    codecs = everywhere(parse_codec("ef(topk(0.3))"))
    straight = simulate(data, algorithm, fusion=fusion, rounds=5, codecs=codecs)
    first = simulate(data, algorithm, fusion=fusion, rounds=2, codecs=codecs)
    second = simulate(data, algorithm, fusion=fusion, rounds=0, codecs=codecs)
    second.restore(*first.snapshot())
    for _ in range(3):
        second.run_round()
    assert distance(straight, second) == 0
    assert second.meter.bytes == straight.meter.bytes


def test_error_feedback_finds_the_optimum_that_plain_sparsity_misses() -> None:
    """Full batch: the compressed run with a memory keeps up with the uncompressed one, without it stays behind."""
    data = merge_clients(hospitals([40]))
    texts: tuple[dict[str, AnyCodec], ...] = (
        {},
        {"share": parse_codec("ef(topk(0.1))")},
        {"share": parse_codec("topk(0.1)")},
    )
    best, fed_back, sparse = (
        simulate(data, FedBCD(2, 0.1), rounds=800, fusion="sum", codecs=codecs).objective() for codecs in texts
    )
    assert fed_back < best * 1.01
    assert sparse > best * 1.1


def test_a_codec_on_an_exchange_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="codecs has 'shares': the exchanges are share, head, derivatives"):
        simulate(ONE, TDCD(), codecs={"shares": Half()})


def test_random_positions_repeat() -> None:
    runs = [simulate(ONE, TDCD(2, 0.05, 10), codecs={"share": parse_codec("randomk(0.5)")}) for _ in range(2)]
    assert distance(*runs) == 0
    assert np.isfinite(runs[0].objective())


def test_a_codec_on_the_average_works_in_every_group() -> None:
    """No average over groups in four rounds: the model is the mean of what each group does alone."""
    algorithm, codecs = HSGD(100, 2, 0.05), {"average": parse_codec("topk(0.3)")}
    both = hospitals([8, 12])
    ours = torch.cat(simulate(both, algorithm, codecs=codecs).weights)
    alone = [torch.cat(simulate(one_group(both, g), algorithm, codecs=codecs).weights) for g in (0, 1)]
    torch.testing.assert_close(ours, (8 * alone[0] + 12 * alone[1]) / 20, rtol=0, atol=1e-13)
    assert (ours - torch.cat(simulate(both, algorithm).weights)).abs().max() > 1e-3


@pytest.mark.parametrize(("tiers", "shape"), [("H(2) V(2) H(2)", ()), ("H(4) H(2) V(2) H(2)", (2, 2))])
def test_the_average_of_the_groups_is_encoded_both_ways(tiers: str, shape: tuple[int, ...]) -> None:
    """What hubs hold after it are numbers of half precision, and a resumed run goes on with both ways' memories."""
    data = hospitals([6, 8, 4, 6], shape=shape)
    for codec in (Half(), parse_codec("ef(half)"), parse_codec("ef(topk(0.5))")):
        simulator = simulate(data, Tiered(tiers, 0.05), codecs={"average_groups": codec})
        if isinstance(codec, Half):
            weights = torch.cat(simulator.weights)
            assert torch.equal(weights, weights.half().double())
        again = simulate(data, Tiered(tiers, 0.05), codecs={"average_groups": codec}, rounds=0)
        again.restore(*simulator.snapshot())
        for one in (simulator, again):
            for _ in range(4):
                one.run_round()
        assert distance(simulator, again) == 0


@pytest.mark.parametrize("branches", [(), (2,)])
def test_what_does_not_travel_is_not_encoded(branches: tuple[int, ...]) -> None:
    """A hospital is one party: its block stays where it is. The devices' blocks travel."""
    data = replace(hospitals([8, 12]), branches=branches)
    tiers = "H(2) V(2) H(2) H(1)" if branches else "H(2) V(2) H(2)"
    plain, coded = (
        simulate(data, Tiered(tiers, 0.05), rounds=1, codecs=codecs) for codecs in ({}, {"average": Half()})
    )
    assert torch.equal(plain.weights[0], coded.weights[0])
    assert not torch.equal(plain.weights[1], coded.weights[1])
    still = simulate(data, Tiered(tiers, 1e-12), rounds=1, codecs={"broadcast": Half()})
    hospital, devices = model().to("cpu", torch.float64).initial()
    torch.testing.assert_close(still.weights[0], hospital, rtol=0, atol=1e-9)
    torch.testing.assert_close(still.weights[1], devices.half().double(), rtol=0, atol=1e-9)


def test_central_training_sends_nothing_to_encode() -> None:
    plain, coded = (simulate(ONE, Central(1, 0.1), codecs=codecs) for codecs in ({}, everywhere(Half())))
    assert distance(plain, coded) == 0
