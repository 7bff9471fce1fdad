"""HSGD, JFL and general tiers: against a naive loop, and where they collapse into each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from crosshatch.algorithms.central import Central
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.jfl import JFL
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.network import ConstantNetwork
from crosshatch.protocol.batches import GivenBatches
from crosshatch.task.fusion import Head
from tests.equivalence.hospitals import distance, hospitals, model, one_group, simulate

Parameters = dict[str, Tensor]


def _average(many: list[Parameters], weights: list[float]) -> Parameters:
    return {name: sum(w * one[name] for w, one in zip(weights, many, strict=True)) for name in many[0]}  # type: ignore[misc]


def naive_hsgd(data: FederatedData, p: int, q: int, eta: float, iterations: int, chosen: list[np.ndarray]) -> Tensor:
    """Algorithm 1 of the HSGD paper, loop by loop: weights of hospital, head and devices, flat, at the end."""
    task = model()
    assert isinstance(task.fusion, Head)
    groups = data.groups if data.groups is not None else np.zeros(len(data.y_train), dtype=np.int64)
    x1, x2, y = data.silos[0].train, data.silos[1].train, data.y_train
    owners = data.silos[1].owners
    modules = (task.fusion.module.double(), task.blocks[0].double(), task.blocks[1].double())
    start = [{k: v.detach().clone() for k, v in m.named_parameters()} for m in modules]
    count = int(groups.max()) + 1
    size = [int((groups == m).sum()) for m in range(count)]
    theta = [[dict(part) for part in start] for _ in range(count)]

    def score(head: Parameters, e1: Tensor, e2: Tensor) -> Tensor:
        return functional_call(modules[0], head, (torch.cat([e1, e2], -1),)).squeeze(-1)  # type: ignore[no-any-return]

    def step(parts: list[Parameters], loss: Tensor) -> list[Parameters]:
        flat = [v for part in parts for v in part.values()]
        gradients = iter(torch.autograd.grad(loss, flat))
        return [{k: (v - eta * next(gradients)).detach() for k, v in part.items()} for part in parts]

    def fresh(part: Parameters) -> Parameters:
        return {k: v.detach().requires_grad_() for k, v in part.items()}

    for t in range(0, iterations, q):
        for m in range(count):
            rows = np.flatnonzero((groups == m) & np.isin(owners, chosen[t // q]))
            head, one, two = theta[m]
            stale1 = functional_call(modules[1], one, (x1[rows],)).detach()
            stale2 = functional_call(modules[2], two, (x2[rows],)).detach()
            stale_head = head
            for _ in range(q):
                head, one = fresh(head), fresh(one)
                e1 = functional_call(modules[1], one, (x1[rows],))
                head, one = step([head, one], (0.5 * (score(head, e1, stale2) - y[rows]) ** 2).mean())
            devices = []
            for device in np.unique(owners[rows]):
                own, mine = two, owners[rows] == device
                for _ in range(q):
                    own = fresh(own)
                    e2 = functional_call(modules[2], own, (x2[rows][mine],))
                    loss = (0.5 * (score(stale_head, stale1[mine], e2) - y[rows][mine]) ** 2).mean()
                    (own,) = step([own], loss)
                devices.append(own)
            theta[m] = [head, one, _average(devices, [1 / len(devices)] * len(devices))]
        if (t + q) % p == 0:
            mean = [_average([theta[m][i] for m in range(count)], [s / sum(size) for s in size]) for i in range(3)]
            theta = [[dict(part) for part in mean] for _ in range(count)]
    mean = [_average([theta[m][i] for m in range(count)], [s / sum(size) for s in size]) for i in range(3)]
    return torch.cat([v.reshape(-1) for i in (1, 0, 2) for v in mean[i].values()])


@pytest.mark.parametrize(("p", "q", "per_device"), [(1, 1, 1), (4, 2, 1), (3, 3, 2), (6, 2, 3)])
@pytest.mark.parametrize("everybody", [True, False])
def test_hsgd_follows_the_paper(p: int, q: int, per_device: int, everybody: bool) -> None:
    data = hospitals([12, 18], per_device=per_device)
    iterations = 12
    owners, groups = data.silos[1].owners, data.groups
    assert groups is not None
    random = np.random.default_rng(5)
    chosen, given = [], ([], [])  # type: tuple[list[np.ndarray], tuple[list[np.ndarray], list[np.ndarray]]]
    for _ in range(iterations // q):
        picks = []
        for g in (0, 1):
            devices = np.unique(owners[groups == g])
            pick = devices if everybody else np.sort(random.choice(devices, 3, replace=False))
            given[g].append((pick - devices[0])[None])
            picks.append(pick)
        chosen.append(np.concatenate(picks))
    sources = None if everybody else tuple(GivenBatches(np.stack(g)) for g in given)
    algorithm = HSGD(p, q, 0.05, 1.0 if everybody else 0.5)
    ours = simulate(data, algorithm, rounds=iterations // q, batches=sources)
    wanted = naive_hsgd(data, p, q, 0.05, iterations, chosen)
    torch.testing.assert_close(torch.cat(ours.weights), wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (2, 2), (4, 2)])
def test_a_group_with_a_single_device(p: int, q: int) -> None:
    data = hospitals([1, 8, 5])
    chosen = [data.silos[1].owners] * 4
    ours = simulate(data, HSGD(p, q, 0.05), rounds=4)
    wanted = naive_hsgd(data, p, q, 0.05, 4 * q, chosen)
    torch.testing.assert_close(torch.cat(ours.weights), wanted, rtol=0, atol=1e-10)
    assert ours.meter.exchanges["average"][1] == 4 * (8 + 5)  # who is alone has nobody to send to


def test_pairs_alone_in_their_groups_meet_at_the_server() -> None:
    data = hospitals([1, 1, 1])
    ours = simulate(data, JFL(1, 0.1))
    assert distance(ours, simulate(data, Central(1, 0.1))) < 1e-14
    assert ours.meter.exchanges["average"][1] == 4 * 2 * 3


def test_one_group_and_equal_intervals_is_tdcd_with_a_head() -> None:
    data = hospitals([20])
    assert distance(simulate(data, HSGD(3, 3, 0.1)), simulate(data, TDCD(3, 0.1))) == 0


@pytest.mark.parametrize("algorithm", [HSGD(1, 1, 0.1), JFL(1, 0.1)])
def test_every_step_with_all_devices_is_central(algorithm: HSGD | JFL) -> None:
    data = hospitals([10, 10, 10])
    assert distance(simulate(data, algorithm), simulate(data, Central(1, 0.1))) < 1e-14


@pytest.mark.parametrize("algorithm", [HSGD(1, 1, 0.1), JFL(1, 0.1)])
def test_so_it_is_where_the_hospital_alone_has_the_labels(algorithm: HSGD | JFL) -> None:
    data = hospitals([10, 10, 10], labels="hospital")
    ours = simulate(data, algorithm)
    assert distance(ours, simulate(data, Central(1, 0.1))) < 1e-14
    assert ours.meter.exchanges["derivatives"][1] > 0


@pytest.mark.parametrize("fraction", [1.0, 0.3])
@pytest.mark.parametrize("labels", [None, "hospital"])
def test_hsgd_is_a_setting_of_tiered(fraction: float, labels: str | None) -> None:
    data = hospitals([10, 15], labels=labels)
    tiers = Tiered("H(4) V(2) H(2)", 0.1, fraction=fraction, weights="at_work")
    assert distance(simulate(data, HSGD(4, 2, 0.1, fraction)), simulate(data, tiers)) == 0


@pytest.mark.parametrize(("size", "fusion"), [(None, "head"), (7, "sum")])
def test_tdcd_is_a_setting_of_tiered(size: int | None, fusion: str) -> None:
    data = hospitals([20], per_device=4)
    tdcd, tiers = TDCD(3, 0.1, size), Tiered("V(3) H(3)", 0.1, size)
    assert distance(simulate(data, tdcd, fusion=fusion), simulate(data, tiers, fusion=fusion)) == 0


def test_one_device_a_group_by_hand() -> None:
    """One sample a group: no average inside a group, so P = Q steps of each group and their mean."""
    data = hospitals([1, 1])
    ours = torch.cat(simulate(data, HSGD(2, 2, 0.1), rounds=1).weights)
    alone = [torch.cat(simulate(one_group(data, g), TDCD(2, 0.1), rounds=1).weights) for g in (0, 1)]
    torch.testing.assert_close(ours, (alone[0] + alone[1]) / 2, rtol=0, atol=1e-12)


def test_four_tiers_average_regions_before_the_server() -> None:
    """Regions {0, 1} and {2, 3} every 2 steps, everybody every 4: unequal regions end up weighted by samples."""
    data = hospitals([4, 8, 6, 6], shape=(2, 2))
    nested = simulate(data, Tiered("H(4) H(2) V(2) H(1)", 0.1), rounds=2)
    never = simulate(data, Tiered("H(4) H(4) V(2) H(1)", 0.1), rounds=2)
    assert distance(nested, never) > 1e-6
    assert nested.meter.exchanges["average_groups"][1] == 2 * (
        2 * 8 + 8
    )  # two rounds of regions, one of all; up and down
    finest = simulate(data, Tiered("H(2) H(2) V(2) H(1)", 0.1), rounds=2)
    flat = simulate(hospitals([4, 8, 6, 6]), Tiered("H(2) V(2) H(1)", 0.1), rounds=2)
    assert distance(finest, flat) < 1e-14


def test_a_round_takes_as_long_as_the_paper_says() -> None:
    """t_g + P/Q (t_l + t_e) + P t_c with t_comm = 2 a round trip, t_c = 1 (section VII-A).

    The hospital's embeddings travel while the devices' are gathered, so the exchange adds the devices' round trip only.
    """
    data = hospitals([5, 5])
    p, q = 6, 2
    ours = simulate(data, HSGD(p, q, 0.1), rounds=p // q, network=ConstantNetwork(t_comm=2.0, t_comp=1.0))
    local, exchange, server = 2.0, 2.0, 2.0
    assert ours.seconds == server + (p // q) * (local + exchange) + p * 1.0


def test_clients_are_counted_in_their_group() -> None:
    """A hospital a group, two or three devices: as many branches are needed in every group."""
    data = hospitals([2, 3])
    with pytest.raises(ConfigError, match="'devices' has 2 clients in group 0: every branch needs one"):
        simulate(replace(data, branches=(3,)), Tiered("H(2) V(2) H(2) H(1)", 0.1))
    simulate(replace(data, branches=(2,)), Tiered("H(2) V(2) H(2) H(1)", 0.1))
    with pytest.raises(ConfigError, match=r"'devices' has 2 in group 0: .* 'H\(4\) V\(2\) H\(2\)'"):
        simulate(data, Tiered("H(4) V(2)", 0.1))
