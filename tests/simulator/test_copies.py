"""Listening, reading, copying and going back change nothing of what is counted."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch import FederationSettings, SiloSettings, federate, load_dataset
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import parse_codec
from crosshatch.exchanges import Algorithm
from crosshatch.graphs import Graph
from crosshatch.network import BandwidthNetwork, Link
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Logistic, Squared
from crosshatch.task.task import Task
from tests.simulator.agents_case import make
from tests.simulator.message_log import log_messages

ROUNDS = 15
KINDS = ("tdcd", "hsgd", "branches", "stcd", "mtcd", "logistic mtcd")
LINKS = {
    "client-hub": Link(0.01, 1.0, 2.0), "hub-hub": Link(0.02, 3.0, 4.0), "branch-hub": Link(0.03, 5.0, 6.0),
    "agent-agent": Link(0.01, 1.0, 2.0), "agent-server": Link(0.02, 3.0, 4.0),
}  # fmt: skip
Read = Callable[[Simulator], object]
READS: tuple[Read, ...] = (
    lambda simulator: simulator.seconds,
    lambda simulator: simulator.meter.bytes,
    lambda simulator: simulator.meter.links,
    lambda simulator: simulator.snapshot(),
    lambda simulator: simulator.weights,
)


def build(kind: str) -> Simulator:
    """A federation with bandwidths and stragglers; groups, branches and error feedback, or tokens."""
    slow = "a1" if kind.endswith("tcd") else "a/1"
    network = BandwidthNetwork(links=LINKS, step_seconds=0.004, slow={slow: 5.0})
    if kind.endswith("tcd"):
        ring = Graph("ring")
        walking = STCD(2, graph=ring) if kind == "stcd" else MTCD(3, 2, 0.01, 4, ring)
        return make(walking, loss=Logistic() if "logistic" in kind else Squared(), network=network)
    algorithm: Algorithm = TDCD(local_steps=2, batch_size=16)
    options: dict[str, Any] = {}
    if kind == "hsgd":
        algorithm, options = HSGD(global_steps=4, local_steps=2, fraction=0.5), {"groups": 3}
    if kind == "branches":
        algorithm, options = Tiered(tiers="V(4) H(2) H(1)", batch_size=16), {"branches": 2}
    silos = (SiloSettings("a", span=(0, 10)), SiloSettings("b", span=(10, 30)))
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=silos, clients=4, **options), seed=1)
    blocks = []
    for silo in data.silos:
        block = torch.nn.Linear(silo.train.shape[1], 1)
        torch.nn.init.zeros_(block.weight)
        torch.nn.init.zeros_(block.bias)
        blocks.append(block)
    codecs = {"average": parse_codec("ef(topk(0.5))")} if kind == "branches" else {}
    return Simulator(data, Task(tuple(blocks), Sum(), Logistic()), algorithm, network=network, codecs=codecs)


def run(simulator: Simulator, rounds: int = ROUNDS) -> Simulator:
    for _ in range(rounds):
        simulator.run_round()
    return simulator


def totals(simulator: Simulator) -> tuple[float, dict[str, Any]]:
    return simulator.seconds, simulator.meter.snapshot()


@pytest.fixture(scope="module")
def heard_totals() -> dict[str, tuple[float, dict[str, Any]]]:
    """The totals where somebody listens to every message."""
    found = {}
    for kind in KINDS:
        simulator = build(kind)
        heard = log_messages(simulator)
        found[kind] = totals(run(simulator))
        assert simulator.meter.messages == len(heard)
    return found


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3)
@given(data=st.data())
def test_read_at_any_time_in_any_order(kind: str, heard_totals: dict[str, Any], data: st.DataObject) -> None:
    simulator = build(kind)
    for _ in range(ROUNDS):
        simulator.run_round()
        for read in data.draw(st.permutations(READS))[: data.draw(st.integers(0, 2))]:
            read(simulator)
    assert totals(simulator) == heard_totals[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda simulator: pickle.loads(pickle.dumps(simulator))])
def test_a_copy_goes_on_from_what_happened_before(
    kind: str, copied: Callable[[Simulator], Simulator], heard_totals: dict[str, Any]
) -> None:
    simulator = run(build(kind), 3)
    other = copied(simulator)
    run(simulator, ROUNDS - 3)
    assert totals(run(other, ROUNDS - 3)) == heard_totals[kind]
    assert totals(simulator) == heard_totals[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_back_to_a_snapshot(kind: str, heard_totals: dict[str, Any]) -> None:
    """What was counted after it belongs to rounds that are undone."""
    simulator = run(build(kind), 4)
    snapshot = copy.deepcopy(simulator.snapshot())
    run(simulator, 5).restore(*snapshot)
    assert totals(run(simulator, ROUNDS - 4)) == heard_totals[kind]
