"""Every algorithm against a naive loop written from its paper, over random federations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.schedules import Constant
from crosshatch.task.losses import Squared
from crosshatch.task.regulariser import Regulariser
from tests.equivalence import naive
from tests.equivalence.federations import ROUNDS, Case, assert_same, cases, make_data, make_task


@settings(max_examples=20)
@given(case=cases(clients=(1, 1)), order=st.sampled_from(("parallel", "sequential")), mu=st.sampled_from((0.0, 0.5)))
def test_fedbcd_is_the_papers_loop(case: Case, order: str, mu: float) -> None:
    found = case.simulate(FedBCD(**case.settings, order=order, proximal=mu))  # type: ignore[arg-type]
    assert_same(found.weights, naive.fedbcd(case, ROUNDS, sequential=order == "sequential", mu=mu))


@settings(max_examples=20)
@given(case=cases(clients=(1, 1)), order=st.sampled_from(("parallel", "sequential")), mu=st.sampled_from((0.0, 0.5)))
def test_fedbcd_with_held_labels_is_the_papers_loop(case: Case, order: str, mu: float) -> None:
    case = case.with_labels(case.label_holder)
    holder = [silo.name for silo in case.data.silos].index(case.label_holder)
    found = case.simulate(FedBCD(**case.settings, order=order, proximal=mu))  # type: ignore[arg-type]
    wanted = naive.fedbcd(case, ROUNDS, sequential=order == "sequential", mu=mu, label_holder=holder)
    assert_same(found.weights, wanted)


@settings(max_examples=20)
@given(case=cases(), batches=st.sampled_from(("reused", "fresh")))
def test_tdcd_is_the_papers_loop(case: Case, batches: str) -> None:
    found = case.simulate(TDCD(**case.settings, batches=batches))  # type: ignore[arg-type]
    assert_same(found.weights, naive.tdcd(case, ROUNDS, fresh=batches == "fresh"))


@settings(max_examples=20)
@given(case=cases(), batches=st.sampled_from(("reused", "fresh")))
def test_tdcd_with_the_rounds_derivatives_is_a_naive_loop(case: Case, batches: str) -> None:
    case = case.with_labels(case.label_holder)
    holder = [silo.name for silo in case.data.silos].index(case.label_holder)
    found = case.simulate(TDCD(**case.settings, batches=batches, derivatives="each_round"))  # type: ignore[arg-type]
    assert_same(found.weights, naive.tdcd(case, ROUNDS, fresh=batches == "fresh", label_holder=holder))


@settings(max_examples=20)
@given(case=cases(l1=True), batches=st.sampled_from(("reused", "fresh")))
def test_l1_is_naive_proximal_gradient_descent_at_every_client(case: Case, batches: str) -> None:
    found = case.simulate(TDCD(**case.settings, batches=batches))  # type: ignore[arg-type]
    assert_same(found.weights, naive.tdcd(case, ROUNDS, fresh=batches == "fresh"))


@settings(max_examples=20)
@given(case=cases(clients=(1, 1), l1=True))
def test_l1_is_naive_proximal_gradient_descent_at_every_party(case: Case) -> None:
    found = case.simulate(FedBCD(**case.settings))
    assert_same(found.weights, naive.fedbcd(case, ROUNDS))


@settings(max_examples=20)
@given(case=cases(clients=(1, 1), steps=(1, 1)))
def test_fedsgd_is_joint_gradient_descent(case: Case) -> None:
    found = case.simulate(FedSGD(step_size=case.step_size, batch_size=case.batch_size))
    assert_same(found.weights, naive.joint(case, ROUNDS))


def test_a_single_step_keeps_double_precision() -> None:
    """One over five samples is no number of single precision."""
    data = make_data(np.random.default_rng(0), [2], [1], 5, Squared())
    task = make_task(0, ["linear"], [2], Squared(), None, Regulariser())
    case = Case(data, task, 1, Constant(0.1), np.zeros((ROUNDS, 1, 1), dtype=np.int64), None, "auto")
    assert_same(case.simulate(FedBCD(**case.settings)).weights, naive.joint(case, ROUNDS))


@settings(max_examples=20)
@given(case=cases(), l1=st.booleans(), batches=st.sampled_from(("reused", "fresh")))
def test_central_is_joint_gradient_descent(case: Case, l1: bool, batches: str) -> None:
    if l1:
        case = case.with_task(regulariser=type(case.task.regulariser)(l2=case.task.regulariser.l2, l1=0.05))
    found = case.simulate(Central(**case.settings, batches=batches))  # type: ignore[arg-type]
    assert_same(found.weights, naive.joint(case, ROUNDS, fresh=batches == "fresh"))


@settings(max_examples=10)
@given(case=cases(silos=(2, 3)))
def test_central_knows_the_labels_whoever_holds_them(case: Case) -> None:
    shared = case.simulate(Central(**case.settings))
    held = case.with_labels(case.label_holder).simulate(Central(**case.settings))
    assert_same(held.weights, shared.weights, 0)


@pytest.mark.parametrize("strategy", ["stacked", "gram"])
@settings(max_examples=15)
@given(case=cases(kinds=("linear", "mlp"), steps=(2, 4)))
def test_every_strategy_follows_the_naive_loop(strategy: str, case: Case) -> None:
    if strategy == "gram":
        case = case.with_task(regulariser=replace(case.task.regulariser, penalise_bias=True))
    found = case.simulate(TDCD(**case.settings), strategy=strategy)
    assert_same(found.weights, naive.tdcd(case, ROUNDS))
