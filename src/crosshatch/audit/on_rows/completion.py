"""What a silo sent of all samples in all rounds as one matrix, and what is missing in it put in.

A silo with a linear block sends one number per sample and round that is the same few columns of its own, times weights
that change: the matrix of all samples and rounds has no larger rank than the silo has columns, and one for the bias.
So what batches left out follows from the rest, once there is enough of it; and of a sample that was in too few batches
what is likeliest, if it is like the others. Of other blocks it follows nearly. Where samples are divided into batches
that come again and again, no round has numbers of two of them: what a sample sent in the rounds before and after is
put in then, since weights move little from one to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from crosshatch.audit.on_rows.low_rank import columns_behind, in_turns, padded
from crosshatch.audit.other_data import Matrix
from crosshatch.protocol.batches import Ids
from crosshatch.simulator.listening import Heard

SAMPLES = 3000  # that are looked at, at most, drawn from all
NUMBERS = 400  # per sample that are put in or used, at most, spread over all rounds
_SCORES = 2000  # the same of linear blocks with gaps
_ALL = 4 * 10**6  # numbers of all samples, at most
_MOST = 64  # the rank up to which what is missing is put in: time and memory go with its square
_SMALL = 1e-7  # relative: what varies less between samples is the bias, which is the same for all
_CHUNK = 250  # samples
_TINY = float(np.finfo(float).tiny)
_EQUATIONS = 2 * 10**7  # numbers of all equations about how rows make directions, at most


@dataclass(frozen=True)
class ToldNumbers:
    """What was really sent of samples (m, k), and `columns` (k, r) of which it is combinations, by their directions."""

    numbers: csr_array
    columns: Matrix

    def directions_of(self, rows: Matrix) -> Matrix | None:
        """Of the first samples, whose rows (n, d) are known: all their numbers together say how rows make directions.

        None where they are too few for that.
        """
        known = np.column_stack([rows, np.ones(len(rows))])
        known = known / np.maximum(abs(known).max(axis=0), _TINY)
        unknown = known.shape[1] * self.columns.shape[1]
        mine, most = csr_array(self.numbers[: len(rows)]), _EQUATIONS // unknown
        of = np.repeat(known, np.diff(mine.indptr), axis=0)[:most]
        equations = (self.columns[mine.indices[:most], :, None] * of[:, None, :]).reshape(len(of), unknown)
        solved, _, rank, _ = np.linalg.lstsq(equations, mine.data[:most], rcond=_SMALL)
        return known @ solved.reshape(-1, known.shape[1]).T if rank == unknown else None


@dataclass(frozen=True)
class SentDirections:
    """All a silo sent of `samples` (m,), as `directions` (m, r) of mean square 1, each with its size (r,).

    `doubt` (m,) is how many of a sample's directions were not told by what was sent of it. `share` is how much of the
    matrix of all samples and rounds was sent; the rest was put in. `batch` (m,) is the one of a division that a sample
    is in: the same combination of directions is a column in each, but in another of them only nearly.
    """

    samples: Ids
    directions: Matrix
    sizes: Matrix
    doubt: Matrix
    batch: Ids
    share: float
    told: ToldNumbers | None = None

    def take(self, which: Ids) -> SentDirections:
        """Some of the samples, in this order."""
        told = self.told and ToldNumbers(csr_array(self.told.numbers[which]), self.told.columns)
        return SentDirections(
            self.samples[which], self.directions[which], self.sizes, self.doubt[which], self.batch[which], self.share,
            told,
        )  # fmt: skip

    def with_known(self, rows: Matrix) -> SentDirections:
        """The same, with the directions of the first samples by their rows (n, d), which are known."""
        found = None if self.told is None else self.told.directions_of(rows)
        if found is None:
            return self
        rest = slice(len(rows), None)
        directions, doubt = np.concatenate([found, self.directions[rest]]), self.doubt.copy()
        doubt[: len(rows)] = 0
        return replace(self, directions=directions, doubt=doubt)


def all_rounds(
    messages: Sequence[Heard], silo: int, *, rank: int, linear: bool, precision: str, draw: np.random.Generator
) -> SentDirections | None:
    """What a silo sent in all rounds; None where it sent nothing.

    Of a `linear` block the rank is at most `rank`. What is missing of another one, or of one that is wider than 64 or
    of which too little was sent, is put in roughly, by as many directions.
    """
    heard = [one for one in messages if one.exchange == "share" and one.sender == silo and bool(one.values.any())]
    if not heard:
        return None  # a block that begins at zero tells nothing at first
    width = heard[0].values.shape[1]
    heard = heard[:: max(1, -(-len(heard) * width // (_SCORES if linear else NUMBERS)))]
    samples = np.unique(np.concatenate([one.ids for one in heard]))
    count = _ALL * len(samples) // sum(one.values.numel() for one in heard)
    if len(samples) > max(SAMPLES, count):
        samples = np.sort(draw.choice(samples, max(SAMPLES, count), replace=False))
    numbers = _table(heard, samples)
    share = numbers.nnz / (numbers.shape[0] * numbers.shape[1])
    some = np.sort(draw.permutation(len(samples))[:SAMPLES])
    precise = 10 * float(np.finfo(precision).eps)
    batch = _division(heard, samples[some])
    batches = int(batch.max()) + 1
    if batches == 1:
        numbers = csr_array(numbers.multiply(1 / _sizes(numbers, each=linear)))
    if share < 1 and linear and rank <= _MOST and batches == 1:
        found = columns_behind(numbers, rank, width, draw)
        if found is not None:
            directions, sizes, doubt, told = _likeliest(csr_array(numbers[some]), *found, precise)
            return SentDirections(samples[some], directions, sizes, doubt, batch, share, told)
    every = -(-numbers.shape[1] // NUMBERS) if linear else 1
    few = csr_array(csr_array(numbers[some])[:, np.arange(numbers.shape[1]) // width % every == 0])
    values = few.toarray()
    if batches > 1:
        rank *= batches
        values = _between(few, width, batch)
        values /= _sizes(csr_array(values), each=linear)  # of all batches: each by itself would have another scale
    elif share < 1:
        rank = min(rank, _MOST, max(2, int(np.median(np.diff(few.indptr))) // 2), *few.shape)
        sizes, right = (one[..., ::-1][..., :rank] for one in np.linalg.eigh((few.T @ few).toarray()))
        start = right * np.sqrt(np.sqrt(np.maximum(sizes, 0)) / share)  # as if zeros had been sent
        rows, columns = in_turns(few, start, least=1e-2)
        there = csr_array((np.ones_like(few.data), few.indices, few.indptr), shape=few.shape).toarray() > 0
        values = np.where(there, values, rows @ columns.T)
    left, sizes, _ = np.linalg.svd(values, full_matrices=False)
    least = precise * sum(1 / np.sqrt(values.shape)) * sizes[0]  # rounding of a direction, which is many numbers
    if linear and len(sizes) > rank:
        least = min(least, 2 * sizes[rank])  # what is beyond the rank is rounding, as it is
    count = int((sizes[: rank if linear else None] > least).sum())
    directions = left[:, :count] * np.sqrt(len(left))
    return SentDirections(samples[some], directions, sizes[:count] / sizes[0], np.zeros(len(some)), batch, share)


def _division(heard: Sequence[Heard], samples: Ids) -> Ids:
    """Which batch each sample (m,) is in, by its place among all; zeros where batches have samples in common."""
    batches = list({one.ids.tobytes(): one.ids for one in heard}.values())
    divided = len(batches) < len(heard) and sum(map(len, batches)) == len(np.unique(np.concatenate(batches)))
    found = np.zeros(len(samples), np.int64)
    for number, ids in enumerate(batches if divided else ()):
        found[np.isin(samples, ids)] = number
    return found


def _between(numbers: csr_array, width: int, batch: Ids) -> Matrix:
    """All numbers (m, k), `width` of each time, with those that a row lacks by a curve through its nearest own ones.

    Weights move with time, and a step by how often each batch came until then: the curve is one of both, or of time
    alone, whichever is nearer to numbers that are there when each is left out.
    """
    values = numbers.toarray().reshape(numbers.shape[0], -1, width)
    steps, rows = np.arange(values.shape[1]), [np.flatnonzero(batch == b) for b in np.unique(batch)]
    there = np.stack([abs(values[here, :, 0]).sum(axis=0) > 0 for here in rows], axis=1)
    came = np.cumsum(np.vstack([np.zeros(len(rows)), there[:-1]]), axis=0)
    both = np.column_stack([steps, came - came.mean(axis=1, keepdims=True)])
    parts = [(here, np.flatnonzero(own)) for here, own in zip(rows, there.T, strict=True)]
    ways = (both, both[:, :1])
    by = min(ways, key=lambda by: sum(_missed(values[here][:, own], own, by) for here, own in parts))
    for here, own in parts:
        rest = np.setdiff1d(steps, own)
        values[np.ix_(here, rest)] = np.einsum("mow,ot->mtw", values[here][:, own], _curves(by, own, rest))
    found: Matrix = values.reshape(numbers.shape)
    return found


def _missed(values: Matrix, own: Ids, by: Matrix) -> float:
    """How far curves through all others are from each time's numbers (m, n, w) of a batch: a sum of logarithms."""
    found = 0.0
    for i in range(len(own)) if len(own) > 1 else ():
        rest = np.delete(np.arange(len(own)), i)
        left = values[:, i] - np.einsum("mow,o->mw", values[:, rest], _curves(by, own[rest], own[i : i + 1])[:, 0])
        found += float(np.log(left.var(axis=0) / np.maximum(values[:, i].var(axis=0), _TINY) + _SMALL**2).sum())
    return found


def _curves(by: Matrix, own: Ids, wanted: Ids) -> Matrix:
    """Weights (n, k) of a batch's own numbers, at times `own` (n,), in those at the `wanted` times (k,)."""
    weights = np.zeros((len(own), len(wanted)))
    for place, t in enumerate(wanted):
        near = np.argsort(abs(own - t), kind="stable")[: 2 * (by.shape[1] + 1)]
        apart = (by[own[near]] - by[t]) / by.shape[1]
        far = 1 / (1 + apart[:, 0] ** 2)
        curve = np.column_stack([np.ones(len(near)), apart, apart[:, 0] ** 2]) * far[:, None]
        weights[near, place] = np.linalg.pinv(curve, rcond=1e-9)[0] * far
    return weights


def _table(heard: Sequence[Heard], samples: Ids) -> csr_array:
    """Rows are samples (m,), columns the numbers of all messages."""
    rows, columns, values, width = [], [], [], heard[0].values.shape[1]
    for t, one in enumerate(heard):
        place = np.searchsorted(samples, one.ids).clip(max=len(samples) - 1)
        here = samples[place] == one.ids
        rows.append(np.repeat(place[here], width))
        columns.append(np.tile(np.arange(t * width, (t + 1) * width), int(here.sum())))
        values.append(one.values.double().numpy()[here].ravel())
    places = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.concatenate(values), places), shape=(len(samples), len(heard) * width))


def _sizes(numbers: csr_array, *, each: bool) -> Matrix:
    """The root mean square (k,) of the numbers that are there in each column, or of all numbers."""
    if not each:
        return np.full(numbers.shape[1], max(float(np.sqrt((numbers.data**2).mean())), _TINY))
    counts = np.bincount(numbers.indices, minlength=numbers.shape[1])
    squares = np.bincount(numbers.indices, numbers.data**2, minlength=numbers.shape[1])
    return np.maximum(np.sqrt(squares / np.maximum(counts, 1)), _TINY)


def _likeliest(
    numbers: csr_array, columns: Matrix, rows: Matrix, left: float, precise: float
) -> tuple[Matrix, Matrix, Matrix, ToldNumbers]:
    """Directions (m, r), their sizes (r,), how many of them are in doubt (m,) and what was told of them.

    From columns (k, s) and some rows.

    Samples are taken to be like those rows, with a mean and a covariance: it decides what their numbers leave open.
    """
    middle = rows.mean(axis=0)
    squares, turn = np.linalg.eigh(np.cov(rows.T).reshape(len(middle), -1))
    kept = squares > max(precise, _SMALL) ** 2 * squares[-1]
    white, sizes, _ = np.linalg.svd(columns @ (turn[:, kept] * np.sqrt(squares[kept])), full_matrices=False)
    white, expected, least = white * sizes, columns @ middle, max(left, precise / 10)
    directions, doubt = [], []
    for first in range(0, numbers.shape[0], _CHUNK):
        part = padded(csr_array(numbers[first : first + _CHUNK]))
        equations = white[part.columns] * part.there[..., None]
        prior = np.broadcast_to(least * np.eye(len(sizes)), (len(equations), len(sizes), len(sizes)))
        q, corner = np.linalg.qr(np.concatenate([equations, prior], axis=1))
        told = (part.numbers - expected[part.columns]) * part.there
        inner = np.einsum("mlr,ml->mr", q[:, : told.shape[1]], told)
        inverse = np.linalg.inv(corner)
        directions.append(np.einsum("mrs,ms->mr", inverse, inner))
        doubt.append(((least * inverse) ** 2).sum(axis=(1, 2)))
    beyond = csr_array((numbers.data - expected[numbers.indices], numbers.indices, numbers.indptr), shape=numbers.shape)
    return np.concatenate(directions), sizes / sizes[0], np.concatenate(doubt), ToldNumbers(beyond, white)
