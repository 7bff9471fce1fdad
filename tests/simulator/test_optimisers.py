"""Momentum and Adam in a federation: against torch.optim, against a naive FedAvg, in bytes, and over checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from crosshatch.algorithms.central import Central
from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import parse_codec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, ModelError
from crosshatch.protocol.batches import SeededBatches
from crosshatch.schedules import Adaptive
from crosshatch.simulator.cost import silo_costs
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Logistic
from crosshatch.task.optimisers import Adam, Momentum, Optimiser
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.testing.federations import make_data, make_task
from crosshatch.trees import flatten, load
from tests.local.problems import torch_optimiser

StateRule = Literal["reset", "kept", "averaged"]
OPTIMISERS: list[Optimiser] = [
    Momentum(state="kept"), Momentum(0.8, nesterov=True, state="kept"), Adam(state="kept"), Adam(state="averaged"),
]  # fmt: skip


def task_of(data: FederatedData, optimiser: Optimiser | None) -> Task:
    return replace(make_task(len(data.silos)), optimiser=optimiser)


def simulate(data: FederatedData, task: Task, algorithm: Any, **options: Any) -> Simulator:
    return Simulator(data, task, algorithm, seed=3, precision=torch.float64, threads=1, **options)


def loss_of(modules: Sequence[nn.Module], data: FederatedData, rows: Tensor, l2: float) -> Tensor:
    scores = sum(module(silo.train[rows]) for module, silo in zip(modules, data.silos, strict=True))
    assert isinstance(scores, Tensor)
    penalty = sum((p * p).sum() for module in modules for p in module.parameters())
    return functional.binary_cross_entropy_with_logits(scores[:, 0], data.y_train[rows]) + l2 / 2 * penalty


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("algorithm", [Central(3, 0.05), FedAvg(3, 0.05)])
def test_one_client_trains_as_torch_does(algorithm: Central | FedAvg, optimiser: Optimiser) -> None:
    data = make_data((1, 1) if algorithm.central else (1,))
    simulator = simulate(data, task_of(data, optimiser), algorithm)
    modules = [copy.deepcopy(block).double() for block in task_of(data, None).blocks]
    trained = [parameter for module in modules for parameter in module.parameters()]
    reference = torch_optimiser(optimiser, trained, 0.05)
    assert reference is not None
    for _ in range(40):
        simulator.run_round()
        for _ in range(3):
            reference.zero_grad()
            torch.autograd.backward(loss_of(modules, data, torch.arange(20), l2=0.01))
            reference.step()
    for weights, module in zip(simulator.weights, modules, strict=True):
        torch.testing.assert_close(weights, flatten(module), rtol=1e-10, atol=1e-10)


def naive_fedavg(data: FederatedData, rule: StateRule, *, rounds: int, steps: int, rate: float) -> Tensor:
    """Every client has a module and an optimiser of torch's own; all samples in every round."""
    (silo,) = data.silos
    (first,) = task_of(data, None).blocks
    hub = flatten(copy.deepcopy(first).double())
    modules = [copy.deepcopy(first).double() for _ in range(silo.clients)]
    adams = [torch.optim.Adam(module.parameters(), rate, (0.9, 0.99), 1e-7) for module in modules]
    held = [torch.as_tensor(np.flatnonzero(silo.owners == k)) for k in range(silo.clients)]
    shares = [len(rows) / len(silo.owners) for rows in held]
    for _ in range(rounds):
        if rule == "reset":
            adams = [torch.optim.Adam(module.parameters(), rate, (0.9, 0.99), 1e-7) for module in modules]
        for module, adam, rows in zip(modules, adams, held, strict=True):
            load(module, hub)
            for _ in range(steps):
                adam.zero_grad()
                torch.autograd.backward(loss_of([module], data, rows, l2=0.01))
                adam.step()
        hub = sum((share * flatten(module) for share, module in zip(shares, modules, strict=True)), torch.zeros(()))
        if rule == "averaged":
            _average_states(modules, adams, shares)
    return hub


def _average_states(modules: list[nn.Module], adams: list[torch.optim.Adam], shares: list[float]) -> None:
    for place, _ in enumerate(list(modules[0].parameters())):
        states = [adam.state[list(module.parameters())[place]] for adam, module in zip(adams, modules, strict=True)]
        for key in ("exp_avg", "exp_avg_sq", "step"):
            mean = sum(share * state[key].double() for share, state in zip(shares, states, strict=True))
            for state in states:
                state[key] = torch.as_tensor(mean).clone()


@pytest.mark.parametrize("rule", ["reset", "kept", "averaged"])
def test_fedavg_with_adam_is_the_naive_loop(rule: StateRule) -> None:
    data = make_data((5,))
    simulator = simulate(data, task_of(data, Adam((0.9, 0.99), 1e-7, rule)), FedAvg(4, 0.05))
    for _ in range(10):
        simulator.run_round()
    wanted = naive_fedavg(data, rule, rounds=10, steps=4, rate=0.05)
    torch.testing.assert_close(simulator.weights[0], wanted, rtol=1e-10, atol=1e-10)


def test_idle_clients_count_with_the_moments_of_their_hub() -> None:
    """Adam written out, four samples per round of five clients: who has none counts with what the hub has."""
    data, (b1, b2, eps, eta) = make_data((5,)), (0.9, 0.99, 1e-7, 0.05)
    simulator = simulate(data, task_of(data, Adam((b1, b2), eps, "averaged")), FedAvg(2, eta, 4, batches="reused"))
    silo, module = data.silos[0], copy.deepcopy(task_of(data, None).blocks[0]).double()
    zero = torch.zeros_like(flatten(module))
    hub = [flatten(module), zero, zero, zero[:1]]  # w, m, v, and the number of steps
    for r in range(6):
        simulator.run_round()
        ids = SeededBatches(3).ids(r, 0, 4, 20)
        after = [torch.zeros_like(one) for one in hub]
        for k in range(5):
            w, m, v, t = hub
            rows = torch.as_tensor(ids[silo.owners[ids] == k])
            for _ in range(2 if len(rows) else 0):
                load(module, w)
                loss = loss_of([module], data, rows, l2=0.01)
                g = torch.cat([one.flatten() for one in torch.autograd.grad(loss, list(module.parameters()))])
                m, v, t = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g, t + 1
                w = w - eta * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
            share = float((silo.owners == k).mean())
            after = [total + share * one for total, one in zip(after, (w, m, v, t), strict=True)]
        hub = after
    torch.testing.assert_close(simulator.weights[0], hub[0], rtol=1e-10, atol=1e-10)


def test_the_three_rules_differ() -> None:
    data = make_data((5,))
    rules: tuple[StateRule, ...] = ("reset", "kept", "averaged")
    ends = [naive_fedavg(data, rule, rounds=10, steps=4, rate=0.05) for rule in rules]
    assert all((ends[i] - ends[j]).abs().max() > 1e-3 for i, j in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.parametrize(("optimiser", "along"), [(Momentum(state="averaged"), 4), (Adam(state="averaged"), 9)])
def test_averaged_states_are_counted(optimiser: Optimiser, along: int) -> None:
    """A block of four numbers, with momentum four more, with Adam eight and the number of steps; 5 clients, 2 ways."""
    data = make_data((5,))
    blocks = (nn.Linear(3, 1),)
    plain = Task(blocks, Sum(), Logistic())
    sent = []
    for task in (
        plain,
        replace(plain, optimiser=replace(optimiser, state="kept")),
        replace(plain, optimiser=optimiser),
    ):
        simulator = simulate(data, task, FedAvg(2, 0.1))
        simulator.run_round()
        assert simulator.meter.messages == 10
        sent.append(simulator.meter.bytes)
    assert sent[0] == sent[1]
    extra = sent[2] - sent[0]
    assert 10 * 8 * along < extra < 10 * (8 * along + 32)  # and a line about the tensor in each message's header


@pytest.mark.parametrize("rule", ["reset", "kept", "averaged"])
@pytest.mark.parametrize("algorithm", [TDCD(3, 0.05, 6), HSGD(4, 2, 0.05, 0.5), FedBCD(2, 0.05, 6)])
def test_a_restored_run_goes_on_bit_for_bit(algorithm: Any, rule: StateRule) -> None:
    clients, groups = {"TDCD": ((2, 4), ()), "HSGD": ((1, 5), (12, 8))}.get(type(algorithm).__name__, ((1, 1), ()))
    data = make_data(clients, groups=groups)
    task = task_of(data, Adam(state=rule))
    whole, begun, goes_on = (simulate(data, task, algorithm) for _ in range(3))
    for _ in range(7):
        whole.run_round()
    for _ in range(4):
        begun.run_round()
    state = copy.deepcopy(begun.snapshot())
    begun.run_round()  # what is kept must not change the snapshot
    goes_on.restore(*state)
    for _ in range(3):
        goes_on.run_round()
    assert all(map(torch.equal, whole.weights, goes_on.weights))
    assert whole.meter == goes_on.meter


REFUSED: dict[str, tuple[Any, Any, dict[str, Any], type[Exception], str]] = {
    "stcd": (make_data((1, 1)), STCD(2), {}, ConfigError, "algorithm STCD has steps of its own.*set optimiser.name"),
    "mtcd": (make_data((1, 1)), MTCD(2), {}, ConfigError, "algorithm MTCD has steps of its own"),
    "dcpa": (make_data((1, 1)), DCPA(), {}, ConfigError, "algorithm DCPA has steps of its own"),
    "branches": (
        make_data((4, 4), branches=(2,)), Tiered("V(2) H(2) H(1)", 0.1), {}, ConfigError,
        "'averaged': algorithm Tiered averages in branches.*'kept' or 'reset'",
    ),
    "codecs": (
        make_data((2, 2)), TDCD(2, 0.1), {"codecs": {"average": parse_codec("half")}}, ConfigError,
        "codecs.average is about blocks alone: set optimiser.state = 'kept' or 'reset', or leave the codec out",
    ),
    "an adaptive schedule": (
        make_data((2, 2)), TDCD(2, Adaptive(0.1, 1.0, 1.0, 10)), {}, ConfigError, "adaptive schedule.*for plain steps",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    data, algorithm, options, error, words = REFUSED[name]
    task = replace(make_task(2, block=lambda _: nn.Linear(3, 1)), optimiser=Adam(state="averaged"))
    with pytest.raises(error, match=words):
        simulate(data, task, algorithm, **options)


def test_l1_is_for_plain_steps() -> None:
    task = replace(make_task(2), optimiser=Momentum(), regulariser=Regulariser(l1=0.1))
    with pytest.raises(ModelError, match=r"'momentum' with model.l1 = 0.1.*use model.l2, or optimiser.name = 'sgd'"):
        simulate(make_data((2, 2)), task, TDCD(2, 0.1))


def test_a_client_holds_its_moments() -> None:
    data = make_data((2, 2))
    plain, ball, adam = (simulate(data, task_of(data, one), TDCD(2, 0.1)) for one in (None, Momentum(), Adam()))
    memory = [silo_costs((one.federation,), one.algorithm, iterations=1) for one in (plain, ball, adam)]  # type: ignore[arg-type]
    numbers = len(plain.weights[0])
    assert [one["silo0"].step_memory - memory[0]["silo0"].step_memory for one in memory] == [
        0, 8 * numbers, 8 * (2 * numbers + 1),
    ]  # fmt: skip


@pytest.mark.parametrize("optimiser", [Momentum(state="kept"), Adam(state="kept"), Adam(state="averaged")])
def test_states_of_clients_that_are_not_at_work_stay(optimiser: Optimiser) -> None:
    """Few samples per round: whoever has none of them keeps its state to the bit."""
    data = make_data((6, 5), samples=40)
    simulator = simulate(data, task_of(data, optimiser), TDCD(local_steps=2, batch_size=4, step_size=0.1))
    federation: Any = simulator.federation
    idle = 0
    for round in range(12):
        states = federation.optimising.snapshot()
        at_work = federation.draw_batch(4, round=round).clients
        simulator.run_round()
        now = federation.optimising.snapshot()
        for j, silo in enumerate(data.silos):
            before = states.get(f"clients.{j}", torch.zeros_like(now[f"clients.{j}"]))
            resting = [client for client in range(silo.clients) if client not in at_work[j]]
            idle += sum(bool(before[client].any()) for client in resting)
            assert torch.equal(now[f"clients.{j}"][resting], before[resting])
            assert all(not torch.equal(now[f"clients.{j}"][i], before[i]) for i in at_work[j])
    assert idle > 10  # who had a state, and rested
