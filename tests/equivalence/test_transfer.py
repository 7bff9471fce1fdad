"""Transfer between two silos against plain torch, written from the papers' formulas without anything of the package."""

from __future__ import annotations

import copy
import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import Algorithm
from crosshatch.protocol.batches import GivenBatches
from crosshatch.schedules import InverseSqrt
from crosshatch.simulator.listening import Heard
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.losses import Logistic, TaylorLogistic
from crosshatch.task.task import Task
from crosshatch.testing.check_federation import check_purity, check_rounds
from crosshatch.testing.federations import FederationCase
from crosshatch.testing.transfer_federations import transfer_cases, transfer_data, transfer_task
from crosshatch.transfer.objective import Transfer

ETA, GAMMA, L2, ROUNDS = 0.3, 0.1, 0.01, 5
Form = Literal["exact", "taylor"]


class Plain:
    """Silo A with its rows, labels and network, silo B with its rows and network; one batch per round."""

    def __init__(self, data: FederatedData, task: Task, form: Form, alignment: str) -> None:
        self.form, self.alignment = form, alignment
        self.a, self.b = (copy.deepcopy(block).double() for block in task.blocks)
        self.x_a, self.x_b = (silo.train.double() for silo in data.silos)
        self.y = 2 * data.y_train.double() - 1
        assert data.alone is not None
        self.all_x = torch.cat([self.x_a, data.alone.x.double()])
        self.all_y = torch.cat([self.y, 2 * data.alone.y.double() - 1])

    def mean(self, net: nn.Module, rows: Tensor | None = None) -> Tensor:
        """Phi_A."""
        x, y = (self.all_x, self.all_y) if rows is None else (self.all_x[rows], self.all_y[rows])
        mean: Tensor = (y[:, None] * net(x)).mean(0)
        return mean

    def objective(self, u_a: Tensor, u_b: Tensor, phi: Tensor, y: Tensor) -> Tensor:
        """Without the penalty."""
        scores = u_b @ phi
        if self.form == "exact":
            value = torch.log(1 + torch.exp(-y * scores)).mean()
        else:
            value = (math.log(2) - y * scores / 2 + scores**2 / 8).mean()
        if self.alignment == "product":
            return value - GAMMA * (u_a * u_b).sum(1).mean()
        return value + GAMMA * ((u_a - u_b) ** 2).sum(1).mean()

    def step(self, net: nn.Module, start: nn.Module, value: Tensor, eta: float, mu: float) -> None:
        gradients = torch.autograd.grad(value, list(net.parameters()))
        with torch.no_grad():
            for weight, before, gradient in zip(net.parameters(), start.parameters(), gradients, strict=True):
                weight.sub_(eta * (gradient + L2 * weight + mu * (weight - before)))

    def round(self, ids: Tensor, steps: int, eta: float, mu: float, rows: Tensor | None = None) -> None:
        """Both sides take their steps on what the other was at the round's start."""
        y = self.y[ids]
        start_a, start_b = copy.deepcopy(self.a), copy.deepcopy(self.b)
        with torch.no_grad():
            u_a, u_b, phi = self.a(self.x_a[ids]), self.b(self.x_b[ids]), self.mean(self.a, rows)
        for _ in range(steps):
            value = self.objective(self.a(self.x_a[ids]), u_b, self.mean(self.a, rows), y)
            self.step(self.a, start_a, value, eta, mu)
        for _ in range(steps):
            self.step(self.b, start_b, self.objective(u_a, self.b(self.x_b[ids]), phi, y), eta, mu)

    def joint(self, ids: Tensor, eta: float) -> None:
        """One step of gradient descent on everything at once."""
        value = self.objective(self.a(self.x_a[ids]), self.b(self.x_b[ids]), self.mean(self.a), self.y[ids])
        every = [*self.a.parameters(), *self.b.parameters()]
        value = value + sum(L2 / 2 * (weight**2).sum() for weight in every)
        gradients = torch.autograd.grad(value, every)
        with torch.no_grad():
            for weight, gradient in zip(every, gradients, strict=True):
                weight.sub_(eta * gradient)

    @property
    def weights(self) -> list[Tensor]:
        """As the simulator has them: of A the network, and behind it Phi_A."""
        flat = [torch.cat([weight.reshape(-1) for weight in net.parameters()]) for net in (self.a, self.b)]
        return [torch.cat([flat[0], self.mean(self.a)]).detach(), flat[1].detach()]


def off(simulator: Simulator, plain: Plain) -> float:
    pairs = zip(simulator.weights, plain.weights, strict=True)
    return max(float((mine - theirs).abs().max()) for mine, theirs in pairs)


def batches(size: int, samples: int = 20) -> np.ndarray[tuple[int, int, int], np.dtype[np.int64]]:
    rng = np.random.default_rng(3)
    return np.stack([rng.choice(samples, (1, size), replace=False) for _ in range(ROUNDS)])


def simulate(data: FederatedData, task: Task, algorithm: Algorithm, size: int) -> Simulator:
    return Simulator(data, task, algorithm, batches=GivenBatches(batches(size)), precision=torch.float64)


@pytest.mark.parametrize("held", [False, True], ids=["labels shared", "labels held"])
@pytest.mark.parametrize("mu", [0.0, 0.5])
@pytest.mark.parametrize("size", [20, 6])
@pytest.mark.parametrize("alignment", ["product", "distance"])
@pytest.mark.parametrize("form", ["exact", "taylor"])
def test_every_round_is_that_of_plain_torch(form: Form, alignment: str, size: int, mu: float, held: bool) -> None:
    data = transfer_data(held=held)
    transfer = Transfer("product" if alignment == "product" else "distance", GAMMA)
    task = transfer_task(transfer, Logistic() if form == "exact" else TaylorLogistic())
    simulator = simulate(data, task, FedBCD(4, InverseSqrt(ETA), size, proximal=mu), size)
    plain = Plain(data, task, form, alignment)
    assert off(simulator, plain) < 1e-10
    for r in range(ROUNDS):
        simulator.run_round()
        plain.round(torch.as_tensor(batches(size)[r, 0]), 4, ETA / math.sqrt(r + 1), mu)
        assert off(simulator, plain) < 1e-10


@pytest.mark.parametrize("held", [False, True], ids=["labels shared", "labels held"])
@pytest.mark.parametrize("alignment", ["product", "distance"])
@pytest.mark.parametrize("form", ["exact", "taylor"])
@pytest.mark.parametrize("make", [lambda: FedSGD(ETA, 6), lambda: FedBCD(1, ETA, 6), lambda: Central(1, ETA, 6)])
def test_one_step_is_joint_gradient_descent(
    make: Callable[[], Algorithm], form: Form, alignment: str, held: bool
) -> None:
    data = transfer_data(held=held)
    transfer = Transfer("product" if alignment == "product" else "distance", GAMMA)
    task = transfer_task(transfer, Logistic() if form == "exact" else TaylorLogistic())
    simulator, plain = simulate(data, task, make(), 6), Plain(data, task, form, alignment)
    for r in range(ROUNDS):
        simulator.run_round()
        plain.joint(torch.as_tensor(batches(6)[r, 0]), ETA)
        assert off(simulator, plain) < 1e-10


def test_a_draw_for_the_class_mean_is_used_in_all_steps_of_a_round_and_the_model_has_that_of_all() -> None:
    data, task = transfer_data(), transfer_task(Transfer("product", GAMMA, mean_samples=7))
    simulator, plain = simulate(data, task, FedBCD(3, ETA, 6), 6), Plain(data, task, "exact", "product")
    for r in range(ROUNDS):
        simulator.run_round()
        words = np.array((0, zlib.crc32(b"class mean"), 1, r), dtype=np.uint32)
        rows = np.random.default_rng(words).choice(29, 7, replace=False, shuffle=False)
        plain.round(torch.as_tensor(batches(6)[r, 0]), 3, ETA, 0.0, torch.as_tensor(rows))
        assert off(simulator, plain) < 1e-10


def test_the_training_loss_is_the_objective() -> None:
    data, task = transfer_data(), transfer_task(Transfer("distance", GAMMA))
    simulator, plain = simulate(data, task, FedSGD(ETA), 20), Plain(data, task, "exact", "distance")
    value = plain.objective(plain.a(plain.x_a), plain.b(plain.x_b), plain.mean(plain.a), plain.y)
    penalty = sum(L2 / 2 * (w**2).sum() for net in (plain.a, plain.b) for w in net.parameters())
    assert simulator.objective() == pytest.approx((value + penalty).item(), abs=1e-12)


def test_scores_are_the_class_mean_times_embeddings_of_b() -> None:
    data, task = transfer_data(), transfer_task(Transfer())
    simulator = simulate(data, task, FedBCD(2, ETA), 20)
    simulator.run_round()
    model = [silo.test.double() for silo in data.silos]
    block = simulator.task.embed(1, simulator.weights[1], model[1])
    phi = simulator.weights[0][-4:]
    assert torch.allclose(simulator.scores(model)[:, 0], block @ phi, atol=1e-12)


def test_anticipation_of_one_silo_is_none_at_all() -> None:
    """s = 1 and one batch: ABCD is FedBCD."""
    data, task = transfer_data(), transfer_task(Transfer("distance", GAMMA))
    one = simulate(data, task, ABCD(3, ETA, 6, 1.0, window=1), 6)
    other = simulate(data, task, FedBCD(3, ETA, 6), 6)
    for _ in range(ROUNDS):
        one.run_round()
        other.run_round()
        assert all(torch.equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))


@pytest.mark.parametrize("alignment", ["product", "distance"])
def test_with_anticipation_the_other_side_is_taken_to_move_along(alignment: str) -> None:
    """By hand: from the second step on the derivatives are taken twice as far from where the exchange found them."""
    data = transfer_data()
    transfer = Transfer("product" if alignment == "product" else "distance", GAMMA)
    task = transfer_task(transfer)
    simulator = simulate(data, task, ABCD(2, ETA, 6, 2.0, window=1), 6)
    plain, ids = Plain(data, task, "exact", alignment), torch.as_tensor(batches(6)[0, 0])
    simulator.run_round()
    y = plain.y[ids][:, None]
    with torch.no_grad():
        u_a, u_b, phi = plain.a(plain.x_a[ids]), plain.b(plain.x_b[ids]), plain.mean(plain.a)
    margin = y * (u_b @ phi)[:, None]
    for net in (plain.a, plain.b):
        start = copy.deepcopy(net)
        for _ in range(2):
            if net is plain.a:
                now_a, now_b, mean = net(plain.x_a[ids]), u_b, plain.mean(net)
            else:
                now_a, now_b, mean = u_a, net(plain.x_b[ids]), phi
            moved = y * (now_b @ mean)[:, None]
            ahead = (margin + 2 * (moved - margin)).detach()
            value = (-torch.sigmoid(-ahead) * moved).mean()
            if alignment == "product":
                value = value - GAMMA * (now_a * now_b).sum(1).mean()
            else:
                far = ((u_a - u_b) + 2 * ((now_a - now_b) - (u_a - u_b))).detach()
                value = value + GAMMA * (2 * far * (now_a - now_b)).sum(1).mean()
            plain.step(net, start, value, ETA, 0.0)
    assert off(simulator, plain) < 1e-10


@pytest.mark.parametrize("case", transfer_cases(), ids=lambda case: case.name)
def test_the_simulator_does_what_the_parties_do(case: FederationCase) -> None:
    def make(*args: object, **settings: object) -> Simulator:
        return Simulator(*args, **settings, precision=torch.float64)  # type: ignore[arg-type]

    check_rounds(make, case, rounds=6)
    check_purity(make, case)


class _NoChain(nn.Module):
    """What no engine looks into."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(3, 5), nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.other(torch.tanh(self.one(x)))
        return out


@pytest.mark.parametrize(
    "block",
    [
        nn.Linear(3, 4),
        nn.Sequential(nn.Linear(3, 5, bias=False), nn.ReLU(), nn.Linear(5, 4, bias=False)),
        nn.Sequential(nn.Linear(3, 5), nn.Sigmoid(), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4)),
        nn.Sequential(nn.Linear(3, 4), nn.Tanh()),  # the class mean is not that of a linear layer
        _NoChain(),
    ],
    ids=["one layer", "no biases", "three layers", "an activation at the end", "no chain"],
)
def test_blocks_of_other_forms_do_what_the_parties_do(block: nn.Module) -> None:
    case = next(one for one in transfer_cases() if one.name == "transfer, FedBCD, the second silo's labels, distance")
    blocks = (copy.deepcopy(block), copy.deepcopy(block))
    for i, module in enumerate(blocks):
        for parameter in module.parameters():
            parameter.data = torch.linspace(-1 - i, 1, parameter.numel()).reshape(parameter.shape)

    def make(*args: object, **settings: object) -> Simulator:
        return Simulator(*args, **settings, precision=torch.float64)  # type: ignore[arg-type]

    check_rounds(make, replace(case, task=replace(case.task, blocks=blocks)), rounds=3)


def test_labels_held_take_the_way_of_shared_ones() -> None:
    task, algorithm = transfer_task(Transfer("distance", GAMMA)), FedBCD(4, ETA, 6)
    shared, held = (simulate(transfer_data(held=one), task, algorithm, 6) for one in (False, True))
    for _ in range(ROUNDS):
        shared.run_round()
        held.run_round()
    for mine, theirs in zip(shared.weights, held.weights, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-12)


def test_messages_hold_the_components() -> None:
    task, algorithm = transfer_task(Transfer()), FedBCD(2, ETA, 6)
    shared, held = (simulate(transfer_data(held=one), task, algorithm, 6) for one in (False, True))
    shared.run_round()
    held.run_round()
    # u_A (6, 4) with Phi_A (4,), u_B (6, 4); held: u_B up, u_A and y Phi_A (6, 8) down; 8 bytes per number
    numbers = {"shared": 24 + 4 + 24, "held": 24 + 48}
    assert 8 * numbers["shared"] < shared.meter.bytes < 8 * numbers["shared"] + 200
    assert 8 * numbers["held"] < held.meter.bytes < 8 * numbers["held"] + 200
    assert set(shared.meter.links) == {"hub-hub across"}
    assert set(held.meter.links) == {"hub-hub up", "hub-hub down"}


def test_samples_of_its_own_change_what_the_silo_with_labels_learns() -> None:
    task = transfer_task(Transfer())
    with_own, without = (simulate(transfer_data(alone=n), task, FedBCD(2, ETA, 6), 6) for n in (9, 0))
    with_own.run_round()
    without.run_round()
    assert not torch.allclose(with_own.weights[1], without.weights[1])


def test_who_listens_hears_the_components() -> None:
    task, algorithm = transfer_task(Transfer()), FedBCD(2, ETA, 6)
    heard: dict[bool, list[Heard]] = {False: [], True: []}
    for held, messages in heard.items():
        simulator = simulate(transfer_data(held=held), task, algorithm, 6)
        simulator.listen(messages.append)
        start = simulator.weights
        simulator.run_round()
    ids = torch.as_tensor(batches(6)[0, 0])
    u_a, u_b = (simulator.task.embed(j, start[j], simulator.data.silos[j].train[ids]) for j in (0, 1))
    phi, signs = start[0][-4:], 2 * simulator.data.y_train[ids] - 1
    shared = {(one.exchange, one.sender): one.values for one in heard[False]}
    assert set(shared) == {("share", 0), ("head", 0), ("share", 1)}
    assert torch.allclose(shared["share", 0], u_a)
    assert torch.allclose(shared["head", 0], phi)
    assert torch.allclose(shared["share", 1], u_b)
    told = {(one.exchange, one.sender): one.values for one in heard[True]}
    assert set(told) == {("share", 1), ("derivatives", 0)}
    assert torch.allclose(told["share", 1], u_b)
    assert torch.allclose(told["derivatives", 0], torch.cat([u_a, signs[:, None] * phi], dim=1))
