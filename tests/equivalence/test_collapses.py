"""Where one algorithm must become another, over random federations.

The same operations in the same order are compared bit for bit; the same mathematics in another order to 1e-10.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.schedules import Constant
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from tests.equivalence import naive
from tests.equivalence.federations import ROUNDS, Case, assert_same, cases

reused_or_fresh = st.sampled_from(("reused", "fresh"))


@settings(max_examples=25)
@given(case=cases(clients=(1, 1)), held=st.booleans())
def test_one_client_a_silo_makes_tdcd_fedbcd(case: Case, held: bool) -> None:
    case = case.with_labels(case.label_holder if held else None)
    tiered = case.simulate(TDCD(**case.settings, derivatives="each_round"))
    flat = case.simulate(FedBCD(**case.settings))
    assert_same(tiered.weights, flat.weights)


@settings(max_examples=25)
@given(case=cases(silos=(1, 1)), batches=reused_or_fresh)
def test_one_silo_makes_tdcd_local_sgd(case: Case, batches: str) -> None:
    tiered = case.simulate(TDCD(**case.settings, batches=batches))  # type: ignore[arg-type]
    assert_same(tiered.weights, _local_sgd(case, fresh=batches == "fresh"))


@settings(max_examples=20)
@given(case=cases(silos=(1, 1)), batches=reused_or_fresh)
def test_one_silo_makes_tdcd_fedavg_with_equal_weights(case: Case, batches: str) -> None:
    tiered = case.simulate(TDCD(**case.settings, batches=batches))  # type: ignore[arg-type]
    averaged = case.simulate(FedAvg(**case.settings, batches=batches, weights="equal"))  # type: ignore[arg-type]
    assert_same(tiered.weights, averaged.weights, 0)
    assert averaged.meter == tiered.meter
    assert averaged.seconds == tiered.seconds


@settings(max_examples=20)
@given(case=cases(silos=(1, 1)), batches=reused_or_fresh)
def test_fedavg_weighs_clients_by_the_samples_they_hold(case: Case, batches: str) -> None:
    found = case.simulate(FedAvg(**case.settings, batches=batches))  # type: ignore[arg-type]
    assert_same(found.weights, _local_sgd(case, fresh=batches == "fresh", by_samples=True))


@settings(max_examples=25)
@given(case=cases(steps=(1, 1), equal_shares=True))
def test_one_step_and_equal_shares_make_tdcd_central(case: Case) -> None:
    tiered = case.simulate(TDCD(**case.settings))
    assert_same(tiered.weights, case.simulate(Central(**case.settings)).weights)


def test_unequal_shares_do_not() -> None:
    """The hub's average is unweighted: a client with one sample counts as much as one with three."""
    x = torch.tensor([[1.0], [0.0], [0.0], [0.0]], dtype=torch.float64)
    case = _one_column(x, np.array([0, 1, 1, 1]))
    tiered = case.simulate(TDCD(**case.settings), rounds=1).weights[0]
    central = case.simulate(Central(**case.settings), rounds=1).weights[0]
    assert tiered.tolist() == [0.5]  # half of client 0's full step to 1
    assert central.tolist() == [0.25]


def test_a_client_without_samples_counts_in_the_average() -> None:
    """Two clients, one with nothing in the batch: the hub moves half as far."""
    case = _one_column(torch.ones(4, 1, dtype=torch.float64), np.array([0, 0, 0, 0]), clients=2)
    assert case.simulate(TDCD(**case.settings), rounds=1).weights[0].tolist() == [0.5]


@settings(max_examples=20)
@given(case=cases(clients=(1, 1)), order=st.sampled_from(("parallel", "sequential")), held=st.booleans())
def test_no_pull_is_the_plain_method(case: Case, order: str, held: bool) -> None:
    case = case.with_labels(case.label_holder if held else None)
    plain = case.simulate(FedBCD(**case.settings, order=order))  # type: ignore[arg-type]
    pulled = case.simulate(FedBCD(**case.settings, order=order, proximal=0.0))  # type: ignore[arg-type]
    nearly = case.simulate(FedBCD(**case.settings, order=order, proximal=1e-13))  # type: ignore[arg-type]
    assert_same(pulled.weights, plain.weights, 0)
    assert_same(nearly.weights, plain.weights)


@settings(max_examples=20)
@given(case=cases(clients=(1, 1), steps=(1, 1)), held=st.booleans(), proximal=st.sampled_from((0.0, 2.0)))
def test_fedbcd_with_one_step_is_fedsgd(case: Case, held: bool, proximal: float) -> None:
    case = case.with_labels(case.label_holder if held else None)
    blocks = case.simulate(FedBCD(**case.settings, proximal=proximal))  # the first of Q steps feels no pull
    steps = case.simulate(FedSGD(step_size=case.step_size, batch_size=case.batch_size))
    assert_same(blocks.weights, steps.weights, 0 if proximal == 0 else 1e-12)
    assert blocks.meter == steps.meter
    assert blocks.seconds == steps.seconds


@settings(max_examples=25)
@given(case=cases(silos=(2, 4)), batches=reused_or_fresh, l1=st.booleans())
def test_asking_for_derivatives_each_step_is_the_mathematics_of_shared_labels(
    case: Case, batches: str, l1: bool
) -> None:
    if l1:
        case = case.with_task(regulariser=replace(case.task.regulariser, l1=0.05))
    shared = case.simulate(TDCD(**case.settings, batches=batches))  # type: ignore[arg-type]
    held = case.with_labels(case.label_holder).simulate(TDCD(**case.settings, batches=batches))  # type: ignore[arg-type]
    assert_same(held.weights, shared.weights)


@settings(max_examples=15)
@given(case=cases(silos=(2, 4), steps=(2, 4)))
def test_remark_2_costs_more_bytes(case: Case) -> None:
    held = case.with_labels(case.label_holder)
    each_step = held.simulate(TDCD(**case.settings))
    each_round = held.simulate(TDCD(**case.settings, derivatives="each_round"))
    assert each_step.meter.bytes > each_round.meter.bytes
    assert each_step.meter.messages > each_round.meter.messages
    assert each_step.seconds > each_round.seconds


def _local_sgd(case: Case, *, fresh: bool, by_samples: bool = False) -> list[torch.Tensor]:
    """Local SGD as in a textbook: everybody steps on its own samples, then the models are averaged."""
    (silo,) = case.data.silos
    model = naive.Model.of(case.task)
    held = np.bincount(silo.owners, minlength=silo.clients)
    shares = held / held.sum() if by_samples else np.full(silo.clients, 1 / silo.clients)
    for r in range(ROUNDS):
        average = [torch.zeros_like(p) for p in model.trained_by(0)]
        for k in range(silo.clients):
            mine = model.copy_for(0)
            for q in range(case.steps):
                zeta = case.ids(r, q if fresh else 0)
                ids = zeta[silo.owners[zeta] == k]
                if len(ids):
                    scores = mine.scores([mine.blocks[0](silo.train[ids])])
                    loss = naive.mean_loss(case, scores, case.data.y_train[ids])
                    naive.gradient_step(case, mine, mine.trained_by(0), loss, case.step_size(r))
            for total, parameter in zip(average, mine.trained_by(0), strict=True):
                total.add_(parameter.detach(), alpha=float(shares[k]))
        with torch.no_grad():
            for parameter, total in zip(model.trained_by(0), average, strict=True):
                parameter.copy_(total)
    return model.flat()


def _one_column(x: torch.Tensor, owners: np.ndarray[tuple[int], np.dtype[np.int64]], clients: int = 2) -> Case:
    """One silo with one column, labels 1, a linear block that starts from zero, full batches and step size 1."""
    block = torch.nn.Linear(1, 1, bias=False).double()
    torch.nn.init.zeros_(block.weight)
    y = torch.ones(len(x), dtype=torch.float64)
    silo = SiloData("a", x, x, ("x",), owners, clients)
    data = FederatedData((silo,), y, y, "regression", 1)
    task = Task((block,), Sum(), Squared())
    return Case(data, task, 1, Constant(1.0), np.zeros((1, 1, 1), dtype=np.int64), None, "auto")
