"""Rows of all samples from those that somebody knows: many Gaussian processes, weighed and not chosen from.

Each takes rows for a function of what was sent, a line or a curve, of directions that count alike or by their sizes,
with more or less noise. A few rows cannot say which of them is right. Leaving one out after the other errs by chance,
and likelihood alone is misled where a column hardly varies in what is known; so both count. The errors of all columns
are multiplied, so that one column in which a single known row differs, which nothing can foretell, does not hide who is
exact in the others; and processes whose guesses of other rows are far from each other count less.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax

from crosshatch.audit.other_data import Matrix

_NOISES = np.geomspace(1e-10, 10, 12)  # relative to how far rows are apart
_POWERS = (0, 0.25, 0.5, 0.75, 1, 1.5)  # of a direction's size
_CURVED = tuple((power, width) for power in (0, 0.5, 1) for width in (0.03, 0.1, 0.3))
_WIDE = 1e-5  # of the mean square of guesses counts as error
_FAR = 20  # a process that is so much less likely, in logarithms, is as good as left out
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Fit:
    """One process on known rows (k, d): how likely it makes each column (d,), whole and without each row (k, d).

    `errors` (k, d) are of each row by all others, and `found` (m, d) is what it makes of all other rows.
    """

    likely: Matrix
    without: Matrix
    errors: Matrix
    found: Matrix


def guess_rows(
    inputs: Matrix, sizes: Matrix, parts: Matrix | None, rows: Matrix, weights: Matrix, alike: Sequence[Matrix]
) -> tuple[Matrix, Matrix]:
    """Rows (m, d) of all samples but the first k, whose rows (k, d) are known, and how large their errors are (d,).

    From directions (k + m, r) with sizes (r,), and their independent `parts` (k + m, p) where the block is linear.
    `weights` (k,) are how much known rows count; directions in each of `alike` (k + m, q) do alike.
    """
    ways = [fits(of, rows, weights) for of in _covariances(inputs, sizes, len(rows), alike)]
    if parts is not None:
        parts = parts / parts.std(axis=0)
        each = [fits(np.outer(part, part[: len(rows)]), rows, weights) for part in parts.T]
        ways.append(map(_whichever, zip(*each, strict=True)))
    kept: list[tuple[Matrix, Matrix, Matrix]] = []
    best = np.full(rows.shape[1], -np.inf)
    for fit in chain.from_iterable(ways):
        errors = np.maximum(weights @ fit.errors**2 / weights.sum() + _WIDE * (fit.found**2).mean(axis=0), _TINY)
        counts = (fit.likely + fit.likely.mean() - len(rows) * np.log(errors).mean()) / 4
        best = np.maximum(best, counts)
        kept = [one for one in (*kept, (counts, errors, fit.found)) if (one[0] > best - _FAR).any()]
    likely, apart, found = (np.stack(of) for of in zip(*kept, strict=True))
    shares = softmax(likely, axis=0)
    return np.einsum("wd,wmd->md", shares, found), (shares * apart).sum(axis=0)


def _covariances(inputs: Matrix, sizes: Matrix, known: int, alike: Sequence[Matrix]) -> Iterator[Matrix]:
    """Between all samples and those that are known (n, k)."""
    sized = [_scaled(inputs * sizes**power) for power in _POWERS]
    for one in (*sized, *map(_scaled, alike)):
        yield one @ one[:known].T
    for power, width in _CURVED:
        one = sized[_POWERS.index(power)]
        yield np.exp(-width / 2 * cdist(one, one[:known], "sqeuclidean")) / width


def _scaled(inputs: Matrix) -> Matrix:
    centred = inputs - inputs.mean(axis=0)
    found: Matrix = centred / max(float(np.sqrt((centred**2).sum(axis=1).mean())), _TINY)
    return found


def fits(covariance: Matrix, rows: Matrix, weights: Matrix) -> Iterator[Fit]:
    """With every noise, any mean, and any scale that is not far below 1; from covariances (k + m, k) with known rows.

    What is left of mean and scale are differences between rows: all modes but the mean's, which is made the largest.
    """
    count, root, mean = len(rows), np.sqrt(weights)[:, None], np.sqrt(weights / weights.sum())
    apart = root * (np.eye(count) - np.outer(np.ones(count), mean**2))
    among = apart @ covariance[:count] @ apart.T
    sizes, modes = np.linalg.eigh(among + (1 + 2 * np.trace(among)) * np.outer(mean, mean))
    sizes, modes = np.maximum(sizes[:-1], 0), root * modes[:, :-1]
    inner = modes.T @ rows
    for noise in _NOISES.tolist():
        precise = (modes**2 @ (1 / (sizes + noise)))[:, None]
        solved = modes @ (inner / (sizes + noise)[:, None])
        errors, left, size = solved / precise, (rows * solved).sum(axis=0), np.log(sizes + noise).sum()
        rest = np.maximum(left - errors * solved, 0)
        likely = -(count * np.log1p(left) + size) / 2
        without = -((count - 1) * np.log1p(rest) + size + np.log(precise)) / 2
        found = covariance @ solved
        yield Fit(likely, without, errors, found[count:] + mean**2 @ (rows - found[:count]))


def _whichever(same: tuple[Fit, ...]) -> Fit:
    """Every column by one of them, whichever it is."""
    likely, without = (np.stack([getattr(fit, of) for fit in same]) for of in ("likely", "without"))
    errors = np.einsum("pkd,pkd->kd", softmax(without, axis=0), np.stack([fit.errors for fit in same]))
    found = np.einsum("pd,pmd->md", softmax(likely, axis=0), np.stack([fit.found for fit in same]))
    chance = np.log(len(same))
    return Fit(logsumexp(likely, axis=0) - chance, logsumexp(without, axis=0) - chance, errors, found)
