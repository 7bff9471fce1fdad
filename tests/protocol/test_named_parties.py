"""The network's settings speak of parties that are there: by silo, by group, by client, on graphs too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.errors import ConfigError
from crosshatch.network import BandwidthNetwork, ConstantNetwork, Link, Network
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from tests.equivalence.hospitals import hospitals, model
from tests.simulator.small import small


def grouped(network: Network) -> Simulator:
    """Two groups of a hospital and three or four devices."""
    algorithm = HSGD(global_steps=4, local_steps=2)
    return Simulator(hospitals((3, 4)), model(), algorithm, network=network, precision=torch.float64, threads=1)


def seconds(network: Network) -> float:
    simulator = grouped(network)
    for _ in range(2):
        simulator.run_round()
    return simulator.seconds


def slow(**factors: float) -> ConstantNetwork:
    return ConstantNetwork(slow={name.replace("_at_", "@").replace("_client_", "/"): f for name, f in factors.items()})


def test_a_plain_name_is_the_silo_in_every_group() -> None:
    usual, everywhere = seconds(slow()), seconds(slow(hospital=50.0))
    assert everywhere > usual
    assert everywhere == seconds(slow(hospital_at_0=50.0, hospital_at_1=50.0))
    assert seconds(slow(devices_client_2=50.0)) == seconds(slow(devices_at_0_client_2=50.0, devices_at_1_client_2=50.0))
    assert seconds(slow(devices_client_2=50.0)) > usual


def test_a_name_with_its_group_goes_before_one_without() -> None:
    assert seconds(slow(hospital=50.0, hospital_at_0=1.0)) == seconds(slow(hospital_at_1=50.0))
    assert seconds(slow(hospital_at_0=1.0, hospital_at_1=1.0, hospital=50.0)) == seconds(slow())


def test_links_of_parties_are_those_of_every_group_too() -> None:
    links, poor = {"group-server": Link(0.1, 8.0, 8.0)}, Link(9.0, 1.0, 1.0)
    everywhere = BandwidthNetwork(links=links, parties={"hospital": poor})
    both = BandwidthNetwork(links=links, parties={"hospital@0": poor, "hospital@1": poor})
    assert seconds(everywhere) == seconds(both) > seconds(BandwidthNetwork(links=links))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("hospital@99", r"groups of 'hospital' are hospital@0 to hospital@1, and 'hospital' means all of them"),
        ("hospital@x", r"groups of 'hospital' are hospital@0 to hospital@1"),
        ("devices@1/4", r"clients of 'devices@1' are devices@1/0 to devices@1/3"),
        ("devices@0/3", r"clients of 'devices@0' are devices@0/0 to devices@0/2"),
        ("devices/4", r"clients of 'devices' are devices/0 to devices/3"),
        ("devices@7/0", r"groups of 'devices' are devices@0 to devices@1, and 'devices/0' means all"),
        ("hospitel@0", r"no silo 'hospitel@0': did you mean 'hospital'"),
    ],
)
@pytest.mark.parametrize("key", ["slow", "parties"])
def test_a_party_that_is_in_no_group(name: str, reason: str, key: str) -> None:
    network = ConstantNetwork(slow={name: 2.0}) if key == "slow" else BandwidthNetwork(parties={name: Link()})
    with pytest.raises(ConfigError, match=f"network.{key} has '{name}'.*{reason}"):
        grouped(network)


def test_a_group_where_there_are_none() -> None:
    with pytest.raises(ConfigError, match=r"network.slow has 'a@0/1', but there are no groups: write 'a/1'"):
        small(clients=(2, 2)).prepare(TDCD(), network=ConstantNetwork(slow={"a@0/1": 2.0}))


@pytest.mark.parametrize("algorithm", [STCD(), MTCD(tokens=1), DCPA()])
@pytest.mark.parametrize(
    ("name", "reason"), [("nobody", "no silo 'nobody'"), ("a/0", "an agent of a graph has no clients: write 'a'")]
)
def test_an_agent_that_is_not_there(algorithm: Any, name: str, reason: str) -> None:
    data = replace(small(clients=(1, 1)).data, classes=0)
    task = Task((nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)), Sum(), Squared(), silos=("a", "b"))
    with pytest.raises(ConfigError, match=f"network.slow has '{name}'.*{reason}"):
        Simulator(data, task, algorithm, network=ConstantNetwork(slow={name: 2.0}))
    assert Simulator(data, task, algorithm, network=ConstantNetwork(slow={"a": 2.0})).round == 0
