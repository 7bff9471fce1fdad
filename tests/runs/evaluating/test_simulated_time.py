"""Hollow blocks cost what the real ones do: bytes, messages and simulated seconds of every federation of the suite."""

from __future__ import annotations

import pytest
import torch

from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import on_silos
from crosshatch.network import BandwidthNetwork, Link
from crosshatch.runs.evaluating.simulated_time import are_linear, hollow
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.task import Task
from crosshatch.testing.federations import all_cases
from crosshatch.testing.transfer_federations import transfer_cases

CASES = {
    case.name: case
    for case in (*all_cases(), *transfer_cases())
    if on_silos(case.algorithm) or are_linear(case.task)  # other blocks on a graph are simulated as they are
}
LINKS = ("client-hub", "hub-hub", "group-server", "agent-agent", "agent-server", "client-server", "branch-hub")
NETWORK = BandwidthNetwork(
    {kind: Link(0.01 * n, 1.0 + n, 2.0 + n) for n, kind in enumerate(LINKS, 1)}, step_seconds=0.2
)


@pytest.mark.parametrize("name", CASES)
def test_hollow_blocks_cost_the_same(name: str) -> None:
    case = CASES[name]

    def simulate(data: FederatedData, task: Task) -> Simulator:
        return Simulator(
            data, task, case.algorithm, seed=case.seed, codecs=case.codecs, network=NETWORK, precision=torch.float64,
            threads=1,
        )  # fmt: skip

    real = simulate(case.data, case.task)
    counted = simulate(*hollow(real.data, real.task, graph=not on_silos(case.algorithm)))
    for _ in range(4):
        real.run_round()
        counted.run_round()
        assert counted.meter == real.meter
        assert counted.seconds == pytest.approx(real.seconds, rel=1e-12)
        assert counted.communications == real.communications
