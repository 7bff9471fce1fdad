"""ABCD against a naive version from its formulas, and where it must become another method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.schedules import rate
from crosshatch.simulator.simulator import Simulator
from tests.equivalence.federations import ROUNDS, Case, assert_same, cases
from tests.equivalence.naive import Ids, Model, mean_loss

anticipations = st.sampled_from((1.0, 1.7, "silos", "0.5 silos"))


@settings(max_examples=25)
@given(case=cases(clients=(1, 1)))
def test_without_anticipation_and_window_it_is_fedbcd(case: Case) -> None:
    ours = case.simulate(ABCD(**case.settings, anticipation=1.0, window=1))
    theirs = case.simulate(FedBCD(**case.settings))
    assert_same(ours.weights, theirs.weights, 0)
    assert ours.meter == theirs.meter
    assert ours.seconds == theirs.seconds


@settings(max_examples=25)
@given(case=cases(clients=(2, 5)))
def test_without_anticipation_and_window_it_is_tdcd(case: Case) -> None:
    ours = case.simulate(ABCD(**case.settings, anticipation=1.0, window=1))
    theirs = case.simulate(TDCD(**case.settings))
    assert_same(ours.weights, theirs.weights, 0)
    assert ours.meter == theirs.meter


@settings(max_examples=25)
@given(case=cases(steps=(1, 1), clients=(1, 1)), s=anticipations)
def test_one_step_is_fedsgd_whatever_is_anticipated(case: Case, s: float | str) -> None:
    ours = case.simulate(ABCD(**case.settings, anticipation=s, window=1))
    theirs = case.simulate(FedSGD(case.step_size, case.batch_size))
    assert_same(ours.weights, theirs.weights, 0)


@settings(max_examples=15)
@given(case=cases(silos=(1, 1), clients=(2, 5)))
def test_one_silo_is_local_sgd(case: Case) -> None:
    assert_same(case.simulate(ABCD(**case.settings, window=1)).weights, case.simulate(TDCD(**case.settings)).weights, 0)


@settings(max_examples=40)
@given(case=cases(silos=(2, 6), heads=False), s=anticipations, window=st.integers(1, 3))
def test_derivatives_that_go_on_make_labels_held_equal_to_shared(case: Case, s: float | str, window: int) -> None:
    algorithm = ABCD(**case.settings, anticipation=s, window=window)
    shared = case.with_labels(None).simulate(algorithm)
    held = case.with_labels(case.label_holder).simulate(algorithm)
    assert_same(held.weights, shared.weights)


@settings(max_examples=60)
@given(case=cases(silos=(1, 6)), s=anticipations, window=st.integers(1, 3))
def test_naive(case: Case, s: float | str, window: int) -> None:
    found = case.simulate(ABCD(**case.settings, anticipation=s, window=window))
    assert_same(found.weights, naive_abcd(case, s, window))


@dataclass
class _Exchange:
    """One silo's knowledge of a batch: the samples, every silo's embeddings then, and the scores then."""

    ids: Ids
    embeddings: list[Tensor]
    scores: Tensor


def naive_abcd(case: Case, anticipation: float | str, window: int) -> list[Tensor]:
    """Client by client, step by step, with autograd."""
    model, silos = Model.of(case.task), case.data.silos
    shares = {"silos": float(len(silos)), "0.5 silos": max(1.0, 0.5 * len(silos))}
    s = shares[anticipation] if isinstance(anticipation, str) else anticipation
    kept: list[_Exchange] = []
    for r in range(ROUNDS):
        ids = case.ids(r, 0)
        embeddings = model.embed(case, ids)
        with torch.no_grad():
            kept = [_Exchange(ids, embeddings, model.scores(embeddings)), *kept][:window]
        after = []
        for j, silo in enumerate(silos):
            trained = []
            for client in range(silo.clients):
                mine = model.copy_for(j)
                if (silo.owners[ids] == client).any():  # at work
                    _descend(case, mine, j, client, kept, s, rate(case.step_size, r))
                trained.append([p.detach().clone() for p in mine.trained_by(j)])
            after.append([torch.stack(same).mean(0) for same in zip(*trained, strict=True)])
        with torch.no_grad():
            for j, means in enumerate(after):
                for parameter, mean in zip(model.trained_by(j), means, strict=True):
                    parameter.copy_(mean)
    return model.flat()


def _descend(case: Case, mine: Model, j: int, client: int, kept: list[_Exchange], s: float, step_size: float) -> None:
    silo, parameters = case.data.silos[j], mine.trained_by(j)
    regulariser, named = case.task.regulariser, mine.blocks[j].named_parameters()
    own = [p for name, p in named if regulariser.penalise_bias or "bias" not in name]
    for q in range(case.steps):
        exchange = kept[q % len(kept)]
        held = np.flatnonzero(silo.owners[exchange.ids] == client)
        if not len(held):  # the round's own batch instead
            exchange = kept[0]
            held = np.flatnonzero(silo.owners[exchange.ids] == client)
        ids = exchange.ids[held]
        every = [rows[held] for rows in exchange.embeddings]
        every[j] = mine.blocks[j](silo.train[ids])
        moved = mine.scores(every)
        start = exchange.scores[held]
        ahead = (start + s * (moved - start)).detach().requires_grad_()
        (derivative,) = torch.autograd.grad(mean_loss(case, ahead, case.data.y_train[ids]), ahead)
        gradients = torch.autograd.grad(moved, parameters, derivative)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                decay = regulariser.l2 if any(parameter is one for one in own) else 0.0
                parameter.sub_(step_size * (gradient + decay * parameter))


@settings(max_examples=15)
@given(case=cases(silos=(2, 3), steps=(2, 4)), window=st.integers(2, 4), held=st.booleans())
def test_a_restored_memory_gives_the_same_bits(case: Case, window: int, held: bool) -> None:
    if held and case.task.head is not None:
        held = False
    case = case.with_labels(case.label_holder if held else None)
    algorithm = ABCD(**case.settings, window=window)
    whole = case.simulate(algorithm)
    first = case.simulate(algorithm, rounds=ROUNDS - 1)
    first.align()
    second: Simulator = case.prepare(algorithm)
    second.restore(*first.snapshot())
    second.run_round()
    assert_same(second.weights, whole.weights, 0)
    assert second.meter == whole.meter
