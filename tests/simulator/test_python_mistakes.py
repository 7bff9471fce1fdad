"""Mistakes that only Python allows: a config cannot make them, or is refused earlier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings
from crosshatch.errors import ConfigError, ModelError
from crosshatch.graphs import Graph
from crosshatch.network import ConstantNetwork
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import CrossEntropy, Squared
from crosshatch.task.task import Task
from tests.simulator.small import small


class Counting(nn.Module):
    """Has a parameter of whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 1)
        self.places = nn.Parameter(torch.arange(2), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.linear(x[:, self.places])
        return out


def test_parameters_are_floating_point_numbers() -> None:
    with pytest.raises(ModelError, match=r"block of silo 'silo2' has a parameter 'places' of int64: .* as a buffer"):
        Task((nn.Linear(2, 1), Counting()), Sum(), Squared())


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_scripts_are_refused_inside_a_block_too() -> None:
    traced = torch.jit.trace(nn.Linear(2, 1), torch.zeros(3, 2))  # type: ignore[no-untyped-call]
    for block in (traced, nn.Sequential(nn.Linear(2, 2), traced)):
        with pytest.raises(ModelError, match=r"block of silo 'silo1' is scripted or traced .* it was made from"):
            Task((block, nn.Linear(2, 1)), Sum(), Squared())


@pytest.mark.parametrize("device", ["warp", "cuda:77", "meta", 3.5])
def test_a_device_that_is_not_there(device: Any) -> None:
    with pytest.raises(ConfigError, match=f"^device = {device!r} .*: use 'cpu'"):
        small().prepare(TDCD(), device=device)


@pytest.mark.parametrize("algorithm", [MTCD, STCD, DCPA])
def test_a_graph_is_no_string(algorithm: Any) -> None:
    with pytest.raises(ConfigError, match=r"algorithm.graph = 'path': give a Graph, such as Graph\('path'\)"):
        algorithm(graph="path")
    kind: Any = "pth"
    with pytest.raises(ConfigError, match=r"algorithm.graph.kind = 'pth': must be one of path, ring"):
        Graph(kind)


def test_a_task_without_names_has_those_of_the_data() -> None:
    data = federate(load_dataset("wine"), FederationSettings(silos=2), seed=0)
    blocks = tuple(nn.Linear(silo.train.shape[1], 3) for silo in data.silos)
    assert Task(blocks, Sum(), CrossEntropy()).names == tuple(silo.name for silo in data.silos) == ("silo1", "silo2")
    renamed = replace(data, silos=tuple(replace(silo, name=name) for silo, name in zip(data.silos, "xy", strict=True)))
    assert Simulator(renamed, Task(blocks, Sum(), CrossEntropy()), FedBCD()).task.names == ("x", "y")


def test_a_silo_that_is_one_party_has_no_clients_to_be_slow() -> None:
    slow = ConstantNetwork(slow={"a/0": 3.0})
    with pytest.raises(ConfigError, match=r"network.slow has 'a/0': 'a' is one party on V\(2\): write 'a'"):
        small(clients=(1, 1)).prepare(FedBCD(2, 0.1), network=slow)
    plain, slower = (
        small(clients=(1, 1)).simulate(FedBCD(2, 0.1), rounds=1, network=ConstantNetwork(slow=table)).seconds
        for table in ({}, {"a": 3.0})
    )
    assert slower > plain  # what the message says to write does it
    small(clients=(2, 2)).prepare(TDCD(2, 0.1), network=slow)
    small(clients=(1, 2)).prepare(TDCD(2, 0.1), network=slow)  # a client with a link to its hub
