"""Simulated time: the papers' formulas, stragglers and a bandwidth model by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch import wire
from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.network import BandwidthNetwork, ConstantNetwork, Link
from tests.equivalence.federations import ROUNDS, Case, cases
from tests.simulator.small import small

LINEAR = ("linear",)
seconds = st.integers(0, 40).map(lambda n: n / 4)  # sums of these are exact


@settings(max_examples=15)
@given(case=cases(kinds=LINEAR), comm=seconds, comp=seconds)
def test_a_tdcd_round_takes_three_round_trips_and_q_steps(case: Case, comm: float, comp: float) -> None:
    """`3 t_comm + Q t_comp`; with one silo there is nothing to share: one round trip."""
    found = case.simulate(TDCD(**case.settings), network=ConstantNetwork(comm, comp))
    trips = 3 if len(case.data.silos) > 1 else 1
    assert found.seconds == ROUNDS * (trips * comm + case.steps * comp)


@settings(max_examples=15)
@given(case=cases(kinds=LINEAR), comm=seconds, comp=seconds)
def test_fresh_batches_cost_a_client_only_the_steps_it_has_samples_for(case: Case, comm: float, comp: float) -> None:
    found = case.simulate(TDCD(**case.settings, batches="fresh"), network=ConstantNetwork(comm, comp), rounds=1)
    most = 0
    for silo in case.data.silos:
        for k in range(silo.clients):
            worked = [(silo.owners[case.ids(0, q)] == k).any() for q in range(case.steps)]
            most = max(most, int(np.sum(worked)))
    assert found.seconds == (3 if len(case.data.silos) > 1 else 1) * comm + most * comp
    assert most <= case.steps


@settings(max_examples=15)
@given(case=cases(clients=(1, 1), kinds=LINEAR), held=st.booleans(), comm=seconds, comp=seconds)
def test_fedbcd_in_parallel_takes_one_round_trip(case: Case, held: bool, comm: float, comp: float) -> None:
    case = case.with_labels(case.label_holder if held else None)
    found = case.simulate(FedBCD(**case.settings), network=ConstantNetwork(comm, comp))
    trips = 1 if len(case.data.silos) > 1 else 0
    assert found.seconds == ROUNDS * (trips * comm + case.steps * comp)


@settings(max_examples=15)
@given(case=cases(clients=(1, 1), silos=(2, 4), kinds=LINEAR), comm=seconds, comp=seconds)
def test_fedbcd_in_turn_takes_turns(case: Case, comm: float, comp: float) -> None:
    """K parties one after the other: K times the parallel round (the paper sees double the time with two)."""
    found = case.simulate(FedBCD(**case.settings, order="sequential"), network=ConstantNetwork(comm, comp))
    assert found.seconds == ROUNDS * len(case.data.silos) * (comm + case.steps * comp)


def test_turns_with_held_labels() -> None:
    """Holder c last. Round 1: up, down, a works; up, down, b works; up, c works. Later rounds: c answers at once."""
    case = small(clients=(1, 1, 1), label_silo="c", steps=5)
    algorithm = FedBCD(**case.settings, order="sequential")
    assert case.simulate(algorithm, network=ConstantNetwork(10, 1), rounds=1).seconds == 2.5 * 10 + 15
    assert case.simulate(algorithm, network=ConstantNetwork(10, 1), rounds=2).seconds == 4.5 * 10 + 30


@settings(max_examples=15)
@given(case=cases(silos=(2, 4), kinds=LINEAR), comm=seconds, comp=seconds)
def test_held_labels_add_a_round_trip_a_round_or_three_a_step(case: Case, comm: float, comp: float) -> None:
    """Blocks down and up: one round trip. Every exchange: three one-way legs to the holder's clients, three back."""
    held = case.with_labels(case.label_holder)
    steps, network = case.steps, ConstantNetwork(comm, comp)
    each_round = held.simulate(TDCD(**case.settings, derivatives="each_round"), network=network, rounds=1)
    assert each_round.seconds == 4 * comm + steps * comp
    each_step = held.simulate(TDCD(**case.settings), network=network, rounds=1)
    assert each_step.seconds == comm + steps * (3 * comm + comp)


@settings(max_examples=10)
@given(case=cases(kinds=LINEAR), comm=seconds, comp=seconds)
def test_central_only_computes(case: Case, comm: float, comp: float) -> None:
    found = case.simulate(Central(**case.settings), network=ConstantNetwork(comm, comp))
    assert found.seconds == ROUNDS * case.steps * comp


def test_one_silo_pays_one_round_trip() -> None:
    case = small(clients=(3,), steps=4)
    assert case.simulate(FedAvg(**case.settings), network=ConstantNetwork(10, 1), rounds=2).seconds == 2 * (10 + 4)


def test_a_straggler_delays_as_computed_by_hand() -> None:
    """t_comm 10, t_comp 1, Q = 2; client a/1 three times slower in everything.

    Round 1: a/1 has its block at 15, its embeddings reach hub a at 30 (hub b is ready at 10); hub b hears of a at 40;
    a/1 hears at 45, works till 51, its block arrives at 66 (b is done at 52).
    Round 2: hub a has its embeddings at 96, hub b hears at 106; a/1: 111, 117, 132 (b: 118).
    """
    case = small(clients=(2, 2))
    network = ConstantNetwork(10, 1, slow={"a/1": 3.0})
    assert case.simulate(TDCD(**case.settings), network=network, rounds=1).seconds == 66
    assert case.simulate(TDCD(**case.settings), network=network, rounds=2).seconds == 132


def test_a_slow_hub_delays_the_others() -> None:
    """Hub a needs 40 for the exchange, so b hears at 10 + 40; after that all goes at its pace: 5 + 2 + 5."""
    case = small(clients=(2, 2))
    found = case.simulate(TDCD(**case.settings), network=ConstantNetwork(10, 1, slow={"a": 4.0}), rounds=1)
    assert found.seconds == 10 + 40 + 12


def test_an_idle_straggler_delays_nobody() -> None:
    """Client 1 of silo a holds samples 1, 3, 5; the batches take the others."""
    case = small(clients=(2, 1), batches=[[[0, 2], [4, 0]]] * 3)
    for batches in ("reused", "fresh"):
        algorithm = TDCD(**case.settings, batches=batches)
        slow = case.simulate(algorithm, network=ConstantNetwork(10, 1, slow={"a/1": 1000.0})).seconds
        assert slow == ROUNDS * (3 * 10 + 2)


def test_a_straggler_that_rests_takes_no_time_for_it() -> None:
    """Client 1 of silo a, five times slower, has a sample in the first of two fresh batches and none in the second.

    Its block arrives at 25, its embeddings reach hub a at 50, hub b's are there before; told at 75 it takes one step,
    not two, till 80, and its block arrives at 105. Silo b is told at 60 and done long before.
    """
    case = small(clients=(2, 1), batches=[[[0, 1], [2, 4]]])
    network = ConstantNetwork(10, 1, slow={"a/1": 5.0})
    assert case.simulate(TDCD(**case.settings, batches="fresh"), network=network, rounds=1).seconds == 105


def test_a_slow_party_of_fedbcd_is_named_by_its_silo() -> None:
    case = small(clients=(1, 1), steps=5)
    found = case.simulate(FedBCD(**case.settings), network=ConstantNetwork(0, 1, slow={"b": 2.0}), rounds=1)
    assert found.seconds == 10


LAN = Link(latency=0.25, up=0.008, down=0.016)  # 1000 and 2000 bytes a second
WAN = Link(latency=1.0, up=0.004, down=0.002)  # 500 and 250


def size(exchange: str, *shape: int) -> int:
    return wire.size(0, exchange, ((torch.float64, shape),))


def test_bandwidth_by_closed_form() -> None:
    """Two silos of two clients, three samples each, blocks of three numbers, one score a sample."""
    case = small(clients=(2, 2), steps=3)
    network = BandwidthNetwork(links={"client-hub": LAN, "hub-hub": WAN}, step_seconds=0.5)
    block_down = 0.25 + size("broadcast", 3) / 2000
    block_up = 0.25 + size("average", 3) / 1000
    rows_up = 0.25 + size("share", 3, 1) / 1000
    across = 1.0 + size("share", 6, 1) / 500
    rows_down = 0.25 + size("share", 3, 1) / 2000
    wanted = block_down + rows_up + across + rows_down + 3 * 0.5 + block_up
    assert case.simulate(TDCD(**case.settings), network=network, rounds=1).seconds == pytest.approx(wanted, rel=1e-12)
    slow = Link(latency=7.0, up=0.0008, down=0.0016)  # ten times less, and 7 seconds
    network = BandwidthNetwork(
        links={"client-hub": LAN, "hub-hub": WAN}, step_seconds=0.5, parties={"b/1": slow}, slow={"b/1": 2.0}
    )
    wanted = 7 + size("broadcast", 3) / 200 + 7 + size("share", 3, 1) / 100  # hub b hears of its slow client; hub a had
    wanted += 7 + size("share", 3, 1) / 200 + 3 * 1.0 + 7 + size("average", 3) / 100  # its embeddings there long before
    assert case.simulate(TDCD(**case.settings), network=network, rounds=1).seconds == pytest.approx(wanted, rel=1e-12)


def test_the_answer_of_the_labels_holder_goes_down() -> None:
    case = small(clients=(1, 1), steps=1, label_silo="b")
    found = case.simulate(FedBCD(**case.settings), network=BandwidthNetwork(links={"hub-hub": WAN}), rounds=1)
    wanted = 1.0 + size("share", 6, 1) / 500 + 1.0 + size("derivatives", 6, 1) / 250
    assert found.seconds == pytest.approx(wanted, rel=1e-12)


def test_a_partys_own_link_counts_both_ways() -> None:
    """As between client and hub: `up` is what the lower party sends, `down` what it gets."""
    case = small(clients=(1, 1), steps=1, label_silo="b")
    network = BandwidthNetwork(links={"hub-hub": Link()}, parties={"a": Link(latency=5.0)})
    assert case.simulate(FedBCD(**case.settings), network=network, rounds=1).seconds == pytest.approx(10)
