"""Owners: every sample has one, sizes are as asked, skew is as described, large numbers are no trouble."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import PartitionError
from crosshatch.partition.samples import (
    by_dirichlet,
    by_main_labels,
    by_permutation,
    by_value,
    client_sizes,
    within_groups,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@st.composite
def given_sizes(draw: st.DrawFn) -> list[int]:
    return draw(st.lists(st.integers(0, 30), min_size=1, max_size=20).filter(any))


@given(n=st.integers(1, 500), data=st.data(), seed=st.integers(0, 2**32))
def test_equal_blocks_of_a_permutation(n: int, data: st.DataObject, seed: int) -> None:
    clients = data.draw(st.integers(1, n))
    owners = by_permutation(n, clients, random=rng(seed))
    assert owners.dtype == np.int64
    assert sorted(np.bincount(owners, minlength=clients).tolist()) == sorted(
        len(part) for part in np.array_split(np.arange(n), clients)
    )
    assert (owners == by_permutation(n, clients, random=rng(seed))).all()


@given(sizes=given_sizes(), seed=st.integers(0, 2**32))
def test_given_sizes(sizes: list[int], seed: int) -> None:
    owners = by_permutation(sum(sizes), len(sizes), random=rng(seed), sizes=sizes)
    assert np.bincount(owners, minlength=len(sizes)).tolist() == sizes
    y = rng(seed).integers(0, 3, sum(sizes))
    y[:3] = [0, 1, 2][: len(y)]
    skewed = by_main_labels(y, len(sizes), random=rng(seed), main=1, sizes=sizes)
    assert np.bincount(skewed, minlength=len(sizes)).tolist() == sizes


def test_blocks_are_contiguous_in_the_permutation() -> None:
    owners = by_permutation(10, 3, random=rng(5))
    order = rng(5).permutation(10)
    naive = np.empty(10, dtype=int)
    for client, block in enumerate(np.array_split(order, 3)):
        for sample in block:
            naive[sample] = client
    assert (owners == naive).all()


@given(
    y=st.lists(st.integers(0, 4), min_size=1, max_size=200),
    alpha=st.sampled_from([0.01, 0.5, 100.0]),
    data=st.data(),
)
def test_dirichlet_gives_every_sample_one_owner(y: list[int], alpha: float, data: st.DataObject) -> None:
    clients = data.draw(st.integers(1, len(y)))
    owners = by_dirichlet(np.array(y), clients, random=rng(1), alpha=alpha)
    assert owners.shape == (len(y),)
    assert owners.min() >= 0
    assert owners.max() < clients


def test_dirichlet_skews_more_for_small_alpha() -> None:
    y = np.repeat(np.arange(10), 1000)

    def largest_share(alpha: float) -> float:
        owners = by_dirichlet(y, 10, random=rng(3), alpha=alpha)
        table = np.array([np.bincount(owners[y == label], minlength=10) for label in range(10)])
        return float((table.max(axis=1) / 1000).mean())

    assert largest_share(0.05) > 0.6 > 0.3 > largest_share(1000) > 0.0999


def test_dirichlet_proportions_are_those_drawn() -> None:
    y = np.zeros(100_000, dtype=int)
    owners = by_dirichlet(y, 5, random=rng(2), alpha=1.0)
    replay = rng(2)
    replay.permutation(np.arange(len(y)))
    expected = replay.dirichlet(np.ones(5))
    np.testing.assert_allclose(np.bincount(owners, minlength=5) / len(y), expected, atol=2e-5)


def test_main_labels_as_in_the_seizure_experiment() -> None:
    """10 groups of 920 samples: 700 of two labels, 220 of the others (HSGD, section V-A)."""
    y = rng().permutation(np.repeat(np.arange(5), 1840))
    owners = by_main_labels(y, 10, random=rng(1), main=2, share=700 / 920)
    for group in range(10):
        counts = np.sort(np.bincount(y[owners == group], minlength=5))
        assert counts.sum() == 920
        assert counts[-2:].tolist() == [350, 350]
        assert counts[:3].sum() == 220


@given(y=st.lists(st.integers(0, 5), min_size=2, max_size=150), share=st.floats(0, 1), data=st.data())
def test_main_labels_give_every_sample_one_owner(y: list[int], share: float, data: st.DataObject) -> None:
    clients = data.draw(st.integers(1, len(y)))
    main = data.draw(st.integers(1, len(set(y))))
    owners = by_main_labels(np.array(y), clients, random=rng(1), main=main, share=share)
    assert np.bincount(owners, minlength=clients).tolist() == client_sizes(len(y), clients).tolist()


def test_one_client_for_each_value() -> None:
    owners, values = by_value(np.array(["b", "a", "b", "c"]))
    assert owners.tolist() == [1, 0, 1, 2]
    assert values == ("a", "b", "c")


@given(groups=st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_clients_never_straddle_groups(groups: list[int]) -> None:
    of_sample = np.unique(np.array(groups), return_inverse=True)[1].astype(np.int64)
    random = rng(4)
    owners, clients = within_groups(of_sample, lambda rows: (by_permutation(len(rows), 1, random=random), 1))
    assert clients == of_sample.max() + 1
    assert (owners == of_sample).all()
    each, n = within_groups(of_sample, lambda rows: (by_permutation(len(rows), len(rows), random=random), len(rows)))
    assert n == len(groups)
    assert sorted(each.tolist()) == list(range(n))


def lines_run(what: Callable[[], object]) -> int:
    """How many lines of Python run; each turn of a loop counts again."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        what()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "divide",
    [
        lambda y, clients: by_permutation(len(y), clients, random=rng()),
        lambda y, clients: by_dirichlet(y, clients, random=rng(), alpha=0.5),
        lambda y, clients: by_main_labels(y, clients, random=rng()),
    ],
)
def test_no_loop_over_samples_or_clients(divide: Callable[[Any, int], Any]) -> None:
    """A million samples and a hundred thousand clients run far fewer lines of Python than there are of either."""
    y = rng().integers(0, 10, 1_000_000)
    assert len(divide(y, 100_000)) == len(y)  # and once, so that nothing is imported while lines are counted
    assert lines_run(lambda: divide(y, 100_000)) < 10_000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: by_permutation(5, 6, random=rng()), "6 clients for 5 training samples"),
        (lambda: by_permutation(5, 0, random=rng()), "0 clients"),
        (lambda: by_permutation(5, 2, random=rng(), sizes=[2, 2]), "sizes sum to 4 but there are 5"),
        (lambda: by_permutation(5, 2, random=rng(), sizes=[5]), "1 sizes for 2 clients"),
        (lambda: by_permutation(5, 2, random=rng(), sizes=[6, -1]), "a size of -1"),
        (lambda: by_dirichlet(np.zeros(3), 2, random=rng(), alpha=0), "alpha = 0"),
        (lambda: by_dirichlet(np.zeros(3), 4, random=rng(), alpha=1), "4 clients for 3 training samples"),
        (lambda: by_main_labels(np.array([0, 1]), 1, random=rng(), main=3), "there are 2 classes"),
        (lambda: by_main_labels(np.array([0, 1]), 1, random=rng(), share=1.5), "main_share = 1.5"),
    ],
)
def test_what_cannot_be_divided_is_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(PartitionError, match=message):
        call()
