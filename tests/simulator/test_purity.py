"""A round is a pure function of the state, the round number and the seed."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.exchanges import Algorithm
from crosshatch.protocol.batches import GivenBatches
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.losses import Squared
from crosshatch.task.regulariser import Regulariser
from tests.equivalence.federations import Case, assert_same, cases, make_task
from tests.simulator.small import small

SEEDED: dict[str, Any] = {"batches": None}


def algorithms(case: Case) -> list[Algorithm]:
    """Every algorithm that takes this federation."""
    found: list[Algorithm] = [
        TDCD(**case.settings),
        TDCD(**case.settings, batches="fresh"),
        TDCD(**case.settings, derivatives="each_round"),
        Central(**case.settings),
        Central(**case.settings, batches="fresh"),
    ]
    if all(silo.clients == 1 for silo in case.data.silos):
        found += [FedBCD(**case.settings), FedBCD(**case.settings, order="sequential", proximal=0.5)]
        found += [FedSGD(step_size=case.step_size, batch_size=case.batch_size)]
    if len(case.data.silos) == 1:
        found += [FedAvg(**case.settings)]
    return found


def assert_equal(ours: Simulator, theirs: Simulator) -> None:
    """Same weights bit for bit, same bytes, same time."""
    assert_same(ours.weights, theirs.weights, 0)
    assert ours.meter == theirs.meter
    assert ours.seconds == theirs.seconds
    assert ours.round == theirs.round


@settings(max_examples=15)
@given(case=cases(clients=(1, 3)), held=st.booleans(), seed=st.integers(0, 2**40), data=st.data())
def test_a_run_goes_on_from_a_snapshot_bit_for_bit(case: Case, held: bool, seed: int, data: st.DataObject) -> None:
    case = case.with_labels(case.label_holder if held else None)
    algorithm = data.draw(st.sampled_from(algorithms(case)))
    whole = case.simulate(algorithm, rounds=4, seed=seed, **SEEDED)
    first = case.simulate(algorithm, rounds=2, seed=seed, **SEEDED)
    tensors, plain = copy.deepcopy(first.snapshot())
    second = case.simulate(algorithm, rounds=1, seed=seed, **SEEDED)  # has a past of its own
    second.restore(tensors, plain)
    for simulator in (first, second):
        simulator.run_round()
        simulator.run_round()
        assert_equal(simulator, whole)
    assert second.iteration == whole.iteration


@settings(max_examples=15)
@given(case=cases(clients=(1, 3)), seed=st.integers(0, 2**40), data=st.data())
def test_equal_seeds_agree_bit_for_bit(case: Case, seed: int, data: st.DataObject) -> None:
    algorithm = data.draw(st.sampled_from(algorithms(case)))
    assert_equal(
        case.simulate(algorithm, seed=seed, **SEEDED),
        case.simulate(algorithm, seed=seed, **SEEDED),
    )


def test_different_seeds_do_not() -> None:
    case = small(clients=(2, 3), batches=[[[0, 1, 2]] * 2])  # three of six samples
    first, second = (case.simulate(TDCD(**case.settings), seed=seed, **SEEDED) for seed in (0, 1))
    assert not torch.equal(first.weights[0], second.weights[0])


def test_a_snapshot_stands_still() -> None:
    case = small()
    simulator = case.simulate(TDCD(**case.settings), rounds=1)
    tensors, plain = simulator.snapshot()
    before = copy.deepcopy((tensors, plain))
    simulator.run_round()
    assert plain == before[1]
    assert all(torch.equal(tensors[name], before[0][name]) for name in tensors)


def test_a_restored_simulator_leaves_the_snapshot_alone() -> None:
    case = small()
    tensors, plain = copy.deepcopy(case.simulate(TDCD(**case.settings), rounds=1).snapshot())
    before = copy.deepcopy((tensors, plain))
    second = case.prepare(TDCD(**case.settings))
    second.restore(tensors, plain)
    second.run_round()
    assert plain == before[1]
    assert all(torch.equal(tensors[name], before[0][name]) for name in tensors)


@settings(max_examples=15)
@given(case=cases(clients=(1, 3)), seed=st.integers(0, 99), data=st.data())
def test_the_order_of_a_batch_does_not_matter(case: Case, seed: int, data: st.DataObject) -> None:
    algorithm = data.draw(st.sampled_from(algorithms(case)))
    shuffled = np.random.default_rng(seed).permuted(case.batches, axis=-1)
    ours = case.simulate(algorithm)
    theirs = case.simulate(algorithm, batches=GivenBatches(shuffled))
    assert_same(ours.weights, theirs.weights, 1e-12)
    assert ours.meter == theirs.meter


@settings(max_examples=15)
@given(case=cases(clients=(1, 3)), data=st.data())
def test_training_leaves_the_tasks_modules_alone(case: Case, data: st.DataObject) -> None:
    before = [weights.clone() for weights in case.task.initial()]
    simulator = case.simulate(data.draw(st.sampled_from(algorithms(case))))
    simulator.objective()
    assert_same(case.task.initial(), before, 0)
    for module in case.task.blocks:
        assert all(isinstance(p, torch.nn.Parameter) and p.requires_grad for p in module.parameters())


def test_a_simulator_leaves_the_callers_modules_in_their_precision() -> None:
    task = make_task(0, ["linear", "linear"], [2, 2], Squared(), 0, Regulariser())
    Simulator(small().data, task, TDCD(), precision=torch.float32, threads=1)
    assert task.blocks[0].get_parameter("weight").dtype == torch.float64


@settings(max_examples=10)
@given(case=cases())
def test_looking_changes_nothing(case: Case) -> None:
    """Objective and evaluation between rounds leave no trace."""
    algorithm = TDCD(**case.settings)
    quiet = case.simulate(algorithm)
    watched = case.prepare(algorithm)
    for _ in range(quiet.round):
        watched.objective()
        watched.evaluate(["loss"])
        watched.snapshot()
        watched.run_round()
    assert_equal(watched, quiet)
