"""The cost of a local step against counts by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings, SiloSettings
from crosshatch.exchanges import Algorithm
from crosshatch.simulator.cost import SiloCost, silo_costs, step_cost
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.state import VerticalState
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.task.blocks import LSTM
from crosshatch.task.build_task import build_task
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import Logistic, Squared
from crosshatch.task.model_settings import ModelSettings
from crosshatch.task.task import Task


def test_linear_layer_by_hand() -> None:
    n, d, c = 6, 11, 1
    cost = step_cost(Task((nn.Linear(d, c, bias=False),), Sum(), Squared()), 0, torch.ones(n, d), torch.ones(n), (c,))
    assert cost.flops == 2 * n * d * c * 2  # outputs, and the weight's gradient
    assert cost.memory >= 4 * (2 * d * c + n * d + n)  # weights, gradients, samples, the others' sum


def test_lstm_is_seen_through() -> None:
    n, t, d, h = 5, 7, 3, 4
    cost = step_cost(Task((LSTM((t, d), 1, hidden=h),), Sum(), Logistic()), 0, torch.ones(n, t, d), torch.ones(n), (1,))
    forward = 2 * n * t * 4 * h * (d + h) + 2 * n * h
    assert 2 * forward < cost.flops < 3.1 * forward


def test_a_head_counts_where_it_is_used_and_more_where_it_is_trained() -> None:
    blocks = (nn.Linear(4, 3), nn.Linear(4, 3))
    task = Task(blocks, Head(nn.Linear(6, 1), holder=0), Squared())
    x, y = torch.ones(5, 4), torch.ones(5)
    holder, other = (step_cost(task, silo, x, y, (3, 3)) for silo in (0, 1))
    assert other.flops > step_cost(Task((nn.Linear(4, 1),), Sum(), Squared()), 0, x, y, (1,)).flops
    assert holder.flops > other.flops
    assert holder.memory > other.memory


def simulate(name: str, settings: FederationSettings, model: ModelSettings, algorithm: Algorithm) -> Simulator:
    data = federate(load_dataset(name), settings, seed=1)
    return Simulator(data, build_task(data, model, seed=1), algorithm, seed=1)


def costs_of(simulator: Simulator, iterations: int) -> dict[str, SiloCost]:
    assert isinstance(simulator.state, VerticalState)
    return silo_costs(simulator.state.groups, simulator.algorithm, iterations=iterations)


def test_a_silo_by_hand() -> None:
    """An MLP of d inputs, h units and c outputs, on m samples: 2 m (d h + h c) forward; h c twice and d h once back."""
    model = ModelSettings(block="mlp", hidden=(7,), bias=False)
    simulator = simulate("wine", FederationSettings(silos=2, clients=4), model, TDCD(local_steps=5, batch_size=30))
    federation = simulator.federation
    assert isinstance(federation, SimulatedFederation)
    counts = [held[0].counts for held in federation.draw_batch(30, round=0).held]
    found = costs_of(simulator, iterations=50)
    for j, (name, d) in enumerate({"silo1": 7, "silo2": 6}.items()):
        a_row = 2 * (2 * d * 7 + 3 * 7 * 3)
        m = int(counts[j].max())
        assert found[name].samples == m
        assert found[name].step_flops == m * a_row
        assert found[name].run_flops == 50 * 30 * a_row
        weights = 4 * (d * 7 + 7 * 3)
        assert found[name].step_memory >= 2 * weights + 4 * m * (d + 7 + 3)


@pytest.mark.parametrize("block", ["linear", "cnn", "lstm", "resnet18"])
def test_two_small_steps_tell_what_a_large_one_costs(block: str) -> None:
    images = block in ("cnn", "resnet18")
    settings = FederationSettings(split="halves") if images else FederationSettings(silos=2)
    small = {
        "linear": ModelSettings(block="linear"),
        "cnn": ModelSettings(block="cnn", channels=4, dense=6),
        "lstm": ModelSettings(block="lstm", hidden=(3,), steps=5),
        "resnet18": ModelSettings(block="resnet18", channels=4),
    }
    simulator = simulate("digits" if images else "breast_cancer", settings, small[block], FedSGD(batch_size=29))
    found = list(costs_of(simulator, iterations=3).values())[1]
    data, task = simulator.data, simulator.task
    widths = (10, 10) if images else (1, 1)
    whole = step_cost(task, 1, data.silos[1].train[:29].clone(), data.y_train[:29].clone(), widths)
    assert (found.samples, found.step_flops, found.step_memory) == (29, whole.flops, whole.memory)
    assert found.run_flops == 3 * whole.flops


def test_who_is_at_work() -> None:
    """Of 3 groups with 10 devices each, half; a hospital has the samples of all devices of its group."""
    silos = (SiloSettings("hospital", clients=1), SiloSettings("devices", clients=10))
    model = ModelSettings(block="linear", bias=False, fusion="head", outputs=2)
    simulator = simulate(
        "wine", FederationSettings(silos=silos, groups=3), model, HSGD(global_steps=4, local_steps=2, fraction=0.5)
    )
    found = costs_of(simulator, iterations=8)
    assert 4 <= found["devices"].samples <= 5  # 142 training samples over 30 devices
    assert 20 <= found["hospital"].samples <= 25
    ratio = found["hospital"].step_flops / found["hospital"].samples
    assert found["hospital"].run_flops % (8 * ratio) == 0
    assert 8 * ratio * 60 <= found["hospital"].run_flops <= 8 * ratio * 75
    everywhere = simulate("wine", FederationSettings(silos=2, clients=3), model, Central(batch_size=50))
    assert {cost.samples for cost in costs_of(everywhere, iterations=1).values()} == {50}
