"""The parties' own clocks against the simulator's seconds: constant times and bandwidths, with stragglers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from crosshatch.graphs import Graph
from crosshatch.network import LINKS, BandwidthNetwork, ConstantNetwork, Link, Network
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.federations import FederationCase, graph_cases, vertical_cases
from tests.support.clocks_of_parties import parties_seconds

ROUNDS = 6
NAMED = {case.name: case for case in (*vertical_cases(), *graph_cases())}
CLIENTS = [
    "TDCD", "TDCD, fresh batches", "TDCD, labels held, each step", "TDCD in turn", "TDCD, every exchange coded",
    "ABCD, clients", "ABCD, clients, labels held", "ABCD, clients, coded", "JFL", "branches",
]  # fmt: skip
HOSPITALS = ["HSGD", "HSGD, labels held", "HSGD, coded", "ABCD in groups", "four tiers"]
PARTIES = ["FedBCD in turn, labels held", "ABCD", "ABCD, labels held", "STCD", "MTCD", "MTCD, small networks", "DCPA"]


def links() -> dict[str, Link]:
    """All others than each other, both ways."""
    return {kind: Link(0.05 + 0.1 * n, 0.01 * (n + 1), 0.02 * (n + 1)) for n, kind in enumerate(LINKS)}


def networks(slow: dict[str, float], own: dict[str, Link]) -> dict[str, Network]:
    return {
        "constant": ConstantNetwork(10.0, 1.0),
        "constant, stragglers": ConstantNetwork(10.0, 1.0, slow=slow),
        "bandwidth": BandwidthNetwork(links(), 0.3),
        "bandwidth, stragglers": BandwidthNetwork(links(), 0.3, parties=own, slow=slow),
    }


OF_CLIENTS = networks(
    {"silo0/0": 3.0, "silo1/1": 5.0, "silo1": 2.0},
    {"silo1/0": Link(2.0, 0.004, 0.001), "silo0": Link(1.0, 0.002, 0.03)},
)
OF_HOSPITALS = networks(
    {"silo0": 4.0, "silo1/1": 5.0, "silo1@1": 2.0},
    {"silo1/0": Link(2.0, 0.004, 0.001), "silo0@1": Link(1.0, 0.002, 0.03)},
)
OF_PARTIES = networks({"silo0": 3.0, "silo1": 2.0}, {"silo1": Link(2.0, 0.004, 0.001), "silo2": Link(1.0, 0.002, 0.03)})


def simulated(case: FederationCase, network: Network) -> float:
    simulator = Simulator(
        case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs, network=network,
        precision=torch.float64, threads=1,
    )  # fmt: skip
    for _ in range(ROUNDS):
        simulator.run_round()
    return simulator.seconds


@pytest.mark.parametrize("kind", OF_CLIENTS)
@pytest.mark.parametrize(
    ("name", "of"),
    [
        *((name, OF_CLIENTS) for name in CLIENTS),
        *((name, OF_HOSPITALS) for name in HOSPITALS),
        *((name, OF_PARTIES) for name in PARTIES),
    ],
)
def test_the_parties_take_as_long_as_the_simulator_says(name: str, of: dict[str, Network], kind: str) -> None:
    case = NAMED[name]
    assert parties_seconds(case, of[kind], ROUNDS) == pytest.approx(simulated(case, of[kind]), rel=1e-12)


def test_stragglers_are_felt() -> None:
    """Else the equalities above would say little."""
    for name, of in (("TDCD", OF_CLIENTS), ("HSGD", OF_HOSPITALS), ("MTCD", OF_PARTIES)):
        for kind in ("constant", "bandwidth"):
            assert simulated(NAMED[name], of[f"{kind}, stragglers"]) > 1.2 * simulated(NAMED[name], of[kind])


def test_tokens_that_meet_wait_for_each_other_at_a_party() -> None:
    """A party asks for all tokens of a round before it visits the first, in the simulator who comes first is served.

    So where tokens meet the parties are later, never earlier.
    """
    for network in OF_PARTIES.values():
        case = NAMED["MTCD, tokens that meet"]
        assert parties_seconds(case, network, ROUNDS) >= simulated(case, network)
        alone = replace(case, algorithm=replace(case.algorithm, tokens=1, graph=Graph("ring")))  # type: ignore[type-var]
        assert parties_seconds(alone, network, ROUNDS) == pytest.approx(simulated(alone, network), rel=1e-12)
