"""The regulariser is about the blocks: a trained head goes without, and biases may, however steps are computed."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Head
from crosshatch.task.losses import Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.trees import flatten
from tests.local.problems import FEATURES, block

SAMPLES, ETA, ROUNDS = 18, 0.2, 3
WAYS = (
    *((kind, strategy) for kind in ("linear", "mlp", "cnn") for strategy in ("auto", "loop", "stacked", "gram")),
    *(("lstm", strategy) for strategy in ("auto", "loop", "stacked")),
    ("gated", "auto"),
)
L2, BOTH = (0.2, 0.0), (0.2, 0.05)  # Gram form, and one pass for several clients, are without l1
CASES = [
    *((*way, L2, True) for way in WAYS if way[1] in ("auto", "gram")),
    *((*way, BOTH, True) for way in WAYS if way[1] != "gram"),
    *((*way, weights, False) for way in WAYS if way[1] != "gram" for weights in (L2, BOTH)),
]


def federation(kind: str, algorithm: str) -> FederatedData:
    """Silos "hospital", one client a group or two in all, and "devices", five a group or in all."""
    rng = np.random.default_rng(3)
    shape = (2, 5, 6) if kind == "cnn" else (FEATURES,)
    groups = (np.arange(SAMPLES) >= 8).astype(np.int64) if algorithm == "hsgd" else None
    devices = np.arange(SAMPLES) % 5 + (0 if groups is None else 5 * groups)
    owners = {"hospital": np.arange(SAMPLES) % 2 if groups is None else groups, "devices": devices}
    silos = []
    for name, mine in owners.items():
        x = torch.as_tensor(rng.normal(size=(SAMPLES, *shape)))
        silos.append(SiloData(name, x, x, ("x",), mine.astype(np.int64), int(mine.max()) + 1))
    y = torch.as_tensor(rng.normal(size=SAMPLES))
    return FederatedData(tuple(silos), y, y, "regression", 1, None, groups)


def task(kind: str, regulariser: Regulariser) -> Task:
    """Two blocks of a kind under a head with a hidden layer, held by the hospital."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        head = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1)).double()
        return Task((block(kind, 3), block(kind, 2)), Head(head, 0), Squared(), regulariser, ("hospital", "devices"))


Models = list[nn.Module]  # hospital's block, devices' block, head


def naive(data: FederatedData, one: Task, steps: int) -> Models:
    """Client by client with autograd: Q steps, the mean of each silo's clients, and every round that of the groups."""
    assert isinstance(one.fusion, Head)
    model: Models = [copy.deepcopy(m) for m in (*one.blocks, one.fusion.module)]
    groups = np.zeros(SAMPLES, dtype=np.int64) if data.groups is None else data.groups
    for _ in range(ROUNDS):
        rows = [np.flatnonzero(groups == g) for g in np.unique(groups)]
        after = [_group(data, one, model, mine, steps) for mine in rows]
        model = _mean(after, [len(mine) / SAMPLES for mine in rows])
    return model


def _group(data: FederatedData, one: Task, start: Models, rows: np.ndarray, steps: int) -> Models:
    done: Models = list(start)
    for j, silo in enumerate(data.silos):
        clients = []
        for client in np.unique(silo.owners[rows]):
            ids = rows[silo.owners[rows] == client]
            mine = copy.deepcopy(start[j])
            head = copy.deepcopy(start[2])
            with torch.no_grad():
                other = start[1 - j](data.silos[1 - j].train[ids])
            for _ in range(steps):
                own = mine(silo.train[ids])
                scores = head(torch.cat([own, other] if j == 0 else [other, own], dim=1))
                loss = 0.5 * (scores[:, 0] - data.y_train[ids]).square().mean()
                _step(loss, mine, head if j == 0 else None, one.regulariser)
            clients.append([mine, head])
        done[j], head = _mean(clients, [1 / len(clients)] * len(clients))
        done[2] = head if j == 0 else done[2]
    return done


def _step(loss: Tensor, mine: nn.Module, head: nn.Module | None, regulariser: Regulariser) -> None:
    """Equation (3) of the HSGD paper: the penalty has the two blocks in it, and nothing else."""
    own = _weighed(mine, regulariser)
    loss = loss + 0.5 * regulariser.l2 * sum(p.square().sum() for p in own)
    trained = list(mine.parameters()) + ([] if head is None else list(head.parameters()))
    gradients = torch.autograd.grad(loss, trained)
    with torch.no_grad():
        for p, gradient in zip(trained, gradients, strict=True):
            p.sub_(gradient, alpha=ETA)
        for p in own:
            p.copy_(p.sign() * (p.abs() - ETA * regulariser.l1).clamp(min=0))


def _weighed(block: nn.Module, regulariser: Regulariser) -> list[nn.Parameter]:
    return [p for name, p in block.named_parameters() if regulariser.penalise_bias or "bias" not in name]


def _mean(many: list[Models], weights: list[float]) -> Models:
    found: Models = [copy.deepcopy(m) for m in many[0]]
    with torch.no_grad():
        for i, module in enumerate(found):
            for target, *values in zip(module.parameters(), *(one[i].parameters() for one in many), strict=True):
                target.copy_(torch.stack([w * v for w, v in zip(weights, values, strict=True)]).sum(0))
    return found


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(("kind", "strategy", "weights", "biases"), CASES)
@pytest.mark.parametrize("algorithm", ["tdcd", "hsgd"])
def test_the_head_is_not_regularised(
    algorithm: str, kind: str, strategy: str, weights: tuple[float, float], biases: bool, steps: int
) -> None:
    l2, l1 = weights
    data, one = federation(kind, algorithm), task(kind, Regulariser(l2, l1, penalise_bias=biases))
    chosen = HSGD(steps, steps, ETA) if algorithm == "hsgd" else TDCD(steps, ETA)
    simulator = Simulator(data, one, chosen, precision=torch.float64, threads=1, strategy=strategy)  # type: ignore[arg-type]
    for _ in range(ROUNDS):
        simulator.run_round()
    hospital, devices, head = naive(data, one, steps)
    wanted = (torch.cat([flatten(hospital), flatten(head)]), flatten(devices))
    for found, right in zip(simulator.weights, wanted, strict=True):
        torch.testing.assert_close(found, right, rtol=0, atol=1e-10)
    weighed = [p.detach() for block in (hospital, devices) for p in _weighed(block, one.regulariser)]
    blocks = torch.cat([p.flatten() for p in weighed])
    scores = head(torch.cat([hospital(data.silos[0].train), devices(data.silos[1].train)], dim=1))
    loss = 0.5 * (scores[:, 0] - data.y_train).square().mean()
    value = loss + 0.5 * l2 * blocks.square().sum() + l1 * blocks.abs().sum()
    assert simulator.objective() == pytest.approx(float(value.detach()), abs=1e-9)
