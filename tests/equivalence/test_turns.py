"""Silos in turn with clients, client weights and derivatives that go on: against naive loops and each other."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.protocol.names import ClientWeights
from tests.equivalence import naive
from tests.equivalence.federations import ROUNDS, Case, Ids, assert_same, cases

orders = st.sampled_from(("parallel", "sequential"))
reused_or_fresh = st.sampled_from(("reused", "fresh"))
all_weights = st.sampled_from(("equal", "samples", "at_work"))


@settings(max_examples=30)
@given(case=cases(heads=False), order=orders, batches=reused_or_fresh, weights=all_weights)
def test_tdcd_in_turn_is_a_naive_loop(case: Case, order: Any, batches: Any, weights: ClientWeights) -> None:
    found = case.simulate(TDCD(**case.settings, order=order, batches=batches, weights=weights))
    wanted = tdcd(case, sequential=order == "sequential", fresh=batches == "fresh", weights=weights)
    assert_same(found.weights, wanted)


@settings(max_examples=10)
@given(case=cases(silos=(1, 3), clients=(3, 5), heads=False), weights=all_weights)
def test_so_it_is_where_some_clients_are_always_idle(case: Case, weights: ClientWeights) -> None:
    """At most two samples per step, of three clients or more."""
    few = case.batches[..., :2]
    case = replace(case, batches=few, batch_size=few.shape[-1])
    found = case.simulate(TDCD(**case.settings, weights=weights))
    assert_same(found.weights, tdcd(case, sequential=False, fresh=False, weights=weights))


@settings(max_examples=25)
@given(
    case=cases(clients=(1, 1), heads=False),
    held=st.booleans(),
    derivatives=st.sampled_from(("each_round", "continued")),
    weights=all_weights,
)
def test_one_client_per_silo_makes_tdcd_in_turn_fedbcd_in_turn(
    case: Case, held: bool, derivatives: Any, weights: ClientWeights
) -> None:
    case = case.with_labels(case.label_holder if held else None)
    tiered = case.simulate(TDCD(**case.settings, order="sequential", derivatives=derivatives, weights=weights))
    flat = case.simulate(FedBCD(**case.settings, order="sequential", derivatives=derivatives))
    assert_same(tiered.weights, flat.weights)


@settings(max_examples=25)
@given(case=cases(silos=(2, 4), heads=False), batches=reused_or_fresh, weights=all_weights)
def test_in_turn_too_derivatives_of_each_step_are_the_mathematics_of_shared_labels(
    case: Case, batches: Any, weights: ClientWeights
) -> None:
    algorithm = TDCD(**case.settings, order="sequential", batches=batches, weights=weights)
    held = case.with_labels(case.label_holder).simulate(algorithm)
    assert_same(held.weights, case.simulate(algorithm).weights)


@settings(max_examples=40)
@given(case=cases(silos=(2, 4), heads=False), order=orders, batches=reused_or_fresh, weights=all_weights)
def test_continued_derivatives_are_the_mathematics_of_shared_labels(
    case: Case, order: Any, batches: Any, weights: ClientWeights
) -> None:
    algorithm = TDCD(**case.settings, order=order, batches=batches, derivatives="continued", weights=weights)
    held = case.with_labels(case.label_holder).simulate(algorithm)
    assert_same(held.weights, case.simulate(algorithm).weights)


@settings(max_examples=40)
@given(
    case=cases(silos=(2, 4), clients=(1, 1), heads=False), order=orders, mu=st.sampled_from((0.0, 0.5)), silo=st.data()
)
def test_so_they_are_for_fedbcd_whoever_holds_the_labels(case: Case, order: Any, mu: float, silo: Any) -> None:
    algorithm = FedBCD(**case.settings, order=order, proximal=mu, derivatives="continued")
    holder = silo.draw(st.sampled_from([one.name for one in case.data.silos]))
    held = case.with_labels(holder).simulate(algorithm)
    assert_same(held.weights, naive.fedbcd(case, ROUNDS, sequential=order == "sequential", mu=mu))


@settings(max_examples=15)
@given(case=cases(silos=(2, 4), heads=False), order=orders)
def test_continued_derivatives_take_no_more_messages_than_kept_ones(case: Case, order: Any) -> None:
    held = case.with_labels(case.label_holder)
    kept = held.simulate(TDCD(**case.settings, order=order, derivatives="each_round"))
    continued = held.simulate(TDCD(**case.settings, order=order, derivatives="continued"))
    assert continued.meter == kept.meter
    assert continued.seconds == kept.seconds


@settings(max_examples=10)
@given(case=cases(silos=(2, 3)), order=orders)
def test_with_shared_labels_there_is_nothing_to_continue(case: Case, order: Any) -> None:
    if case.task.head is not None:
        order = "parallel"
    plain = case.simulate(TDCD(**case.settings, order=order))
    assert_same(case.simulate(TDCD(**case.settings, order=order, derivatives="continued")).weights, plain.weights, 0)


@pytest.mark.parametrize("strategy", ["stacked", "gram"])
@settings(max_examples=10)
@given(case=cases(silos=(2, 3), heads=False, kinds=("linear", "mlp"), steps=(2, 4)), order=orders)
def test_every_strategy_continues_derivatives(strategy: str, case: Case, order: Any) -> None:
    if strategy == "gram":
        case = case.with_task(regulariser=replace(case.task.regulariser, penalise_bias=True))
    algorithm = TDCD(**case.settings, order=order, derivatives="continued")
    held = case.with_labels(case.label_holder).simulate(algorithm, strategy=strategy)
    assert_same(held.weights, tdcd(case, sequential=order == "sequential", fresh=False, weights="equal"))


def tdcd(case: Case, *, sequential: bool, fresh: bool, weights: ClientWeights) -> list[torch.Tensor]:
    """TDCD with shared labels and a sum; every client has modules of its own, and all embed with what they have."""
    hubs = naive.Model.of(case.task)
    for r in range(ROUNDS):
        parts = [case.ids(r, q if fresh else 0) for q in range(case.steps)]
        clients = [[copy.deepcopy(hubs) for _ in range(silo.clients)] for silo in case.data.silos]
        start = copy.deepcopy(clients)
        for j, silo in enumerate(case.data.silos):
            others = copy.deepcopy(clients) if sequential else start
            for k, mine in enumerate(clients[j]):
                for zeta in parts:
                    ids = zeta[silo.owners[zeta] == k]
                    if len(ids):
                        rest = [embed(case, others, i, ids) for i in range(len(clients)) if i != j]
                        scores = torch.stack([mine.blocks[j](silo.train[ids]), *rest]).sum(0)
                        loss = naive.mean_loss(case, scores, case.data.y_train[ids])
                        naive.gradient_step(case, mine, mine.trained_by(j), loss, case.step_size(r))
        for j, silo in enumerate(case.data.silos):
            shares = client_shares(silo.owners, silo.clients, np.concatenate(parts), weights)
            with torch.no_grad():
                for place, target in enumerate(hubs.trained_by(j)):
                    values = [mine.trained_by(j)[place] * share for mine, share in zip(clients[j], shares, strict=True)]
                    target.copy_(torch.stack(values).sum(0))
    return hubs.flat()


def embed(case: Case, clients: list[list[naive.Model]], silo: int, ids: Ids) -> torch.Tensor:
    """Sample by sample, under the block of the client that holds it."""
    data = case.data.silos[silo]
    with torch.no_grad():
        return torch.cat([clients[silo][data.owners[i]].blocks[silo](data.train[i : i + 1]) for i in ids])


def client_shares(owners: Ids, clients: int, ids: Ids, weights: ClientWeights) -> list[float]:
    """All alike, by the samples they hold, or alike over those with a sample among these."""
    if weights == "equal":
        return [1 / clients] * clients
    if weights == "samples":
        return [float(np.mean(owners == k)) for k in range(clients)]
    at_work = sorted({int(owners[i]) for i in ids})
    return [1 / len(at_work) if k in at_work else 0.0 for k in range(clients)]


@settings(max_examples=15)
@given(case=cases(silos=(1, 1), heads=False), batches=reused_or_fresh, weights=all_weights)
def test_one_silo_makes_tdcd_fedavg_whatever_the_weights(case: Case, batches: Any, weights: ClientWeights) -> None:
    tiered = case.simulate(TDCD(**case.settings, batches=batches, weights=weights))
    averaged = case.simulate(FedAvg(**case.settings, batches=batches, weights=weights))
    assert_same(tiered.weights, averaged.weights, 0)
