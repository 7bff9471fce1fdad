"""Batches of one division: both engines draw the same ones, with every algorithm that draws samples."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.errors import ConfigError
from crosshatch.exchanges import DrawsBatches, batch_source, declared, with_division
from crosshatch.protocol.batches import DividedBatches, divide, smallest_batch
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.check_federation import check_purity, check_rounds
from crosshatch.testing.federations import FederationCase, make_data, make_task, vertical_cases

simulate = partial(Simulator, precision=torch.float64, threads=1)

CASES = [
    replace(case, algorithm=replace(case.algorithm, draw="partition", division_seed=11))
    for case in vertical_cases()
    if isinstance(case.algorithm, DrawsBatches) and case.algorithm.batch_size is not None and not case.codecs
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_engines_agree(case: FederationCase) -> None:
    check_rounds(simulate, case, rounds=4)
    check_purity(simulate, case)


def test_all_kinds_of_algorithms_are_tried() -> None:
    assert {type(case.algorithm).__name__ for case in CASES} == {"ABCD", "FedAvg", "FedBCD", "FedSGD", "TDCD", "Tiered"}


@given(st.integers(1, 400), st.data(), st.integers(0, 2**63 - 1))
def test_a_division_has_every_sample_once_in_batches_that_are_large_enough(
    samples: int, data: st.DataObject, seed: int
) -> None:
    size = data.draw(st.integers(1, samples))
    batches = divide(samples, size, seed=seed)
    assert sorted(chain.from_iterable(batch.tolist() for batch in batches)) == list(range(samples))
    sizes = {len(batch) for batch in batches}
    assert min(sizes) == smallest_batch(samples, size) >= size
    assert max(sizes) - min(sizes) <= 1
    assert len(batches) == samples // size


@given(st.integers(0, 50), st.integers(1, 4), st.integers(1, 30), st.integers(0, 9))
def test_every_epoch_has_every_batch_once(epoch: int, parts: int, size: int, seed: int) -> None:
    source = DividedBatches(seed, 5, parts=parts)
    batches = {tuple(batch) for batch in divide(30, size, seed=5)}
    places = range(epoch * len(batches), (epoch + 1) * len(batches))
    seen = [tuple(source.ids(*divmod(place, parts), size, 30)) for place in places]
    assert set(seen) == batches
    assert len(seen) == len(batches)


def test_the_order_is_the_runs_and_the_division_is_not() -> None:
    runs = [[DividedBatches(seed, 5).ids(r, 0, 2, 40) for r in range(20)] for seed in (1, 2)]
    assert any(not np.array_equal(one, other) for one, other in zip(*runs, strict=True))
    assert len({frozenset(map(tuple, run)) for run in runs}) == 1


def test_every_epoch_has_an_order_of_its_own() -> None:
    taken = [DividedBatches(1, 5).ids(r, 0, 2, 40).tolist() for r in range(40)]
    assert taken[:20] != taken[20:]
    assert sorted(taken[:20]) == sorted(taken[20:])


def test_a_seed_that_is_left_out_is_random_and_one_that_is_given_stays() -> None:
    drawn = {with_division(FedBCD(batch_size=8, draw="partition")).division_seed for _ in range(3)}
    assert len(drawn) == 3
    assert None not in drawn
    assert with_division(FedBCD(batch_size=8, draw="partition", division_seed=4)).division_seed == 4


def test_samples_are_drawn_anew_unless_something_is_encrypted() -> None:
    plain = FedBCD(batch_size=8)
    assert with_division(plain) is plain
    assert with_division(plain, encrypts=True).draw == "partition"
    assert with_division(replace(plain, draw="anew"), encrypts=True).division_seed is None
    whole = with_division(FedBCD(), encrypts=True)
    assert (whole.draw, whole.division_seed) == ("partition", None)  # one batch needs no seed


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (Tiered(fraction=0.5, draw="partition"), "algorithm.fraction = 0.5: a fraction draws clients, not samples"),
        (FedBCD(batch_size=8, division_seed=4), "algorithm.division_seed = 4 has no effect on samples drawn anew"),
        (FedBCD(batch_size=8, draw="partition", division_seed=-1), "algorithm.division_seed = -1: must be at least 0"),
        (TDCD(batch_size=8, draw="again"), "algorithm.draw = 'again': must be 'anew' or 'partition'"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused(algorithm: DrawsBatches, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        with_division(algorithm)
    assert words in str(refused.value)


def test_groups_divide_their_own_samples_each_in_its_own_way() -> None:
    algorithm = Tiered("H(4) V(2) H(2)", 0.1, batch_size=4, draw="partition", division_seed=3)
    one, other = (batch_source(algorithm, seed=1, group=group) for group in (0, 1))
    assert any(not np.array_equal(one.ids(r, 0, 4, 16), other.ids(r, 0, 4, 16)) for r in range(4))


def test_a_simulator_tells_the_division_it_drew() -> None:
    algorithm = FedBCD(2, 0.1, 8, draw="partition")
    simulator = Simulator(make_data((1, 1)), make_task(2), algorithm)
    assert declared(simulator.algorithm).division_seed is not None
