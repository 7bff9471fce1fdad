"""Rows from few messages of each sample: what batches left out follows, since columns stay and weights change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from crosshatch.audit.on_rows.completion import SentDirections, all_rounds
from crosshatch.audit.on_rows.decoder_attack import decode_often
from crosshatch.simulator.listening import Heard
from tests.audit.random_runs import Matrix


def sent_of(rows: Matrix, weights: Matrix, counts: npt.NDArray[np.int64], precision: str = "float64") -> SentDirections:
    """Of rows (m, d), times weights (t, d + 1, c) with a bias, so many messages each, at times of its own."""
    draw = np.random.default_rng(5)
    values = np.einsum("md,tdc->mtc", np.column_stack([rows, np.ones(len(rows))]), weights).astype(precision)
    there = draw.permuted(np.arange(len(weights)) < counts[:, None], axis=1)
    messages = [
        Heard(t, "share", 0, 0, (1,), 0, np.flatnonzero(there[:, t]), torch.from_numpy(values[there[:, t], t]))
        for t in range(len(weights))
    ]
    found = all_rounds(messages, 0, rank=rows.shape[1] + 1, linear=True, precision=precision, draw=draw)
    assert found is not None
    assert found.share == pytest.approx(counts.mean() / len(weights))
    return found


def decode(sent: SentDirections, rows: Matrix, known: int) -> float:
    return float(decode_often(sent, rows, known, draws=1, linear=True, seed=0)[0])


def walk(times: int, columns: int, width: int = 1) -> Matrix:
    return np.cumsum(np.random.default_rng(2).normal(size=(times, columns + 1, width)), axis=0)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("numbers", "width"), [(9, 1), (7, 1), (9, 2)])
def test_ten_known_rows_give_all_others(numbers: int, width: int, precision: str) -> None:
    """Seven of 100 messages are two more than a sample's own five numbers; weights are told by all samples together."""
    rows = np.random.default_rng(0).normal(size=(4000, 4))
    sent = sent_of(rows, walk(100, 4, width), np.full(len(rows), numbers), precision)
    assert sent.directions.shape == (3000, 4)  # the bias is the same for all
    assert decode(sent, rows[sent.samples], 10) > 0.999


@pytest.mark.parametrize("smallest", [1e-6, 1e-7])
def test_directions_far_below_the_largest_count(smallest: float) -> None:
    """A direction is made of all of a sample's messages, so that it is told below the rounding of a single one."""
    rows = np.random.default_rng(0).normal(size=(800, 6)) * np.geomspace(1, smallest, 6)
    sent = sent_of(rows, walk(150, 6), np.full(len(rows), 150), "float32")
    assert sent.sizes.min() < smallest
    assert decode(sent, rows[sent.samples], 20) > 0.99


def test_more_messages_than_are_solved_for_at_once() -> None:
    rows = np.random.default_rng(0).normal(size=(600, 4))
    sent = sent_of(rows, walk(1500, 4), np.full(len(rows), 40))
    assert decode(sent, rows[sent.samples], 10) > 0.999


def test_of_a_sample_with_few_messages_the_likeliest_row_is_taken() -> None:
    """Columns go together by two, so that three messages tell more than three of four numbers."""
    mixed = np.array([[1, 0.8, 0, 0], [0, 0.6, 0, 0], [0, 0, 1, 0.8], [0, 0, 0, 0.6]])
    rows = np.random.default_rng(0).normal(size=(4000, 4)) @ mixed
    sent = sent_of(rows, walk(80, 4), np.where(np.arange(len(rows)) % 2, 9, 3))
    assert sent.doubt == pytest.approx(np.where(sent.samples % 2, 0, 1), abs=1e-3)
    assert decode(sent, rows[sent.samples], 40) > 0.85
    sure = np.flatnonzero(sent.samples % 2)
    known = sent.take(sure)
    assert decode(known, rows[known.samples], 10) > 0.999


def test_known_rows_with_few_messages_tell_as_much_as_others() -> None:
    """Ten known rows with three messages each are 30 equations for the 4 x 5 numbers that make directions of rows."""
    rows = np.random.default_rng(0).normal(size=(4000, 4))
    sent = sent_of(rows, walk(80, 4), np.where(np.arange(len(rows)) % 2, 9, 3))
    few, sure = np.flatnonzero(sent.samples % 2 == 0)[:10], np.flatnonzero(sent.samples % 2)
    sent = sent.take(np.concatenate([few, sure]))
    assert sent.doubt[:10].min() > 0.9
    assert decode(sent, rows[sent.samples], 10) > 0.999


def test_too_few_messages_tell_little() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 8))
    sent = sent_of(rows, walk(100, 8), np.full(len(rows), 4))
    assert decode(sent, rows[sent.samples], 10) < 0.5


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_samples_that_are_divided_into_batches(precision: str) -> None:
    """No round has scores of both batches; within each all rows follow from known ones, and weights hardly move."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(900, 4))
    times = np.linspace(0, 3, 200)[:, None, None]
    weights = np.cumsum(np.sin(times * draw.uniform(0.5, 2, (1, 5, 1)) + draw.uniform(0, 6, (1, 5, 1))), axis=0)
    scores = np.einsum("md,tdc->mtc", np.column_stack([rows, np.ones(len(rows))]), weights).astype(precision)
    batches = np.arange(0, 900, 2), np.arange(1, 900, 2)
    order = [batch for _ in range(100) for batch in draw.permutation(2)]
    messages = [
        Heard(t, "share", 0, 0, (1,), 0, batches[b], torch.from_numpy(scores[batches[b], t]))
        for t, b in enumerate(order)
    ]
    sent = all_rounds(messages, 0, rank=5, linear=True, precision=precision, draw=draw)
    assert sent is not None
    assert sent.share == 0.5
    assert len(np.unique(2 * sent.batch + sent.samples % 2)) == 2
    sent = sent.take(draw.permutation(len(sent.samples)))
    assert decode(sent, rows[sent.samples], 400) > 0.999
    assert decode(sent, rows[sent.samples], 10) > 0.9


def test_batches_of_a_division_have_one_scale() -> None:
    """Rows of the second batch are twice those of the first, and so are their directions."""
    rows = np.random.default_rng(0).normal(size=(100, 2))
    weights = np.stack([np.cos(np.linspace(0, 3, 60)), np.sin(np.linspace(0, 2, 60))])
    scores = np.concatenate([rows, 2 * rows]) @ weights
    messages = [
        Heard(t, "share", 0, 0, (1,), 0, batch, torch.from_numpy(scores[batch, t][:, None]))
        for t, batch in enumerate([np.arange(100), np.arange(100, 200)] * 30)
    ]
    draw = np.random.default_rng(1)
    sent = all_rounds(messages, 0, rank=2, linear=True, precision="float64", draw=draw)
    assert sent is not None
    first, second = sent.directions[:100, :2], sent.directions[100:, :2]
    assert np.median(np.linalg.norm(second, axis=1) / np.linalg.norm(first, axis=1)) == pytest.approx(2, rel=0.05)


def test_what_a_division_leaves_out_goes_by_time_alone_where_that_foretells_messages() -> None:
    """Six batches, and weights that move whichever comes: how often each came would be five numbers too many."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(600, 3))
    scores = np.column_stack([rows, np.ones(600)]) @ walk(60, 3)[..., 0].T
    order = [batch for _ in range(10) for batch in draw.permutation(6)]
    messages = [
        Heard(t, "share", 0, 0, (1,), 0, np.arange(b, 600, 6), torch.from_numpy(scores[b::6, t][:, None]))
        for t, b in enumerate(order)
    ]
    sent = all_rounds(messages, 0, rank=4, linear=True, precision="float64", draw=draw)
    assert sent is not None
    sent = sent.take(draw.permutation(len(sent.samples)))
    assert decode(sent, rows[sent.samples], 50) > 0.9999


def test_all_directions_of_a_network_count_and_by_their_sizes() -> None:
    """Sixty numbers of forty units, the first of them a hundred times as large as the others."""
    units = np.maximum(np.random.default_rng(0).normal(size=(300, 40)), 0)
    sent = np.column_stack([100 * units[:, 0], units @ np.random.default_rng(1).normal(size=(40, 59))])
    messages = [Heard(0, "share", 0, 0, (1,), 0, np.arange(300), torch.from_numpy(sent))]
    draw = np.random.default_rng(2)
    found = all_rounds(messages, 0, rank=24, linear=False, precision="float64", draw=draw)
    assert found is not None
    assert found.directions.shape == (300, 40)
    assert np.corrcoef(found.directions[:, 0], units[:, 0])[0, 1] ** 2 > 0.99
