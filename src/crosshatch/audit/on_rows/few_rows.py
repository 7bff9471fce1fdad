"""Rows of all samples from a handful that somebody knows: many Gaussian processes, weighed and not chosen from.

Each takes rows for a function of what was sent, a line or a curve, of directions that count alike or by their sizes,
with more or less noise. Ten rows cannot say which of them is right. Leaving one out after the other errs by chance, and
likelihood alone is misled where a column hardly varies in what is known; so both count. The errors of all columns are
multiplied, so that one column in which a single known row differs, which nothing can foretell, does not hide who is
exact in the others; and processes whose guesses of other rows are far from each other count less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax

from crosshatch.audit.other_data import Matrix

_NOISES = np.geomspace(1e-10, 10, 12)  # relative to how far rows are apart
_POWERS = (0, 0.25, 0.5, 0.75, 1, 1.5)  # of a direction's size
_CURVED = tuple((power, width) for power in (0, 0.5, 1) for width in (0.03, 0.1, 0.3))
_WIDE = 1e-5  # of the mean square of guesses counts as error


@dataclass(frozen=True)
class _Fit:
    """One process on known rows (k, d): how likely it makes each column (d,), whole and without each row (k, d).

    `errors` (k, d) are of each row by all others, and `found` (m, d) is what it makes of all other rows.
    """

    likely: Matrix
    without: Matrix
    errors: Matrix
    found: Matrix


def guess_rows(
    inputs: Matrix, sizes: Matrix, parts: Matrix | None, rows: Matrix, doubt: Matrix, largest: int
) -> Matrix:
    """Rows (m - k, d) of all samples but the first k, whose rows (k, d) are known, of mean 0 and square 1.

    From directions (m, r) with sizes (r,), and their independent `parts` (m, p) where the block is linear. `largest` is
    how many directions are made white, and `doubt` (k,) how much noisier a known row's directions are than others'.
    """
    known = len(rows)
    fits = [_fit(*of, rows, doubt, noise) for of in _covariances(inputs, sizes, known, largest) for noise in _NOISES]
    if parts is not None:
        fits += [_one_each(parts, rows, doubt, noise) for noise in _NOISES]
    found = np.stack([one.found for one in fits])
    errors = np.stack([(one.errors**2).mean(axis=0) for one in fits]) + _WIDE * (found**2).mean(axis=1)
    likely = np.stack([one.likely for one in fits])
    together = likely.mean(axis=1) - known * np.log(np.maximum(errors, np.finfo(float).tiny)).mean(axis=1)
    counts = softmax((likely + together[:, None]) / 2, axis=0)
    guess: Matrix = np.einsum("wd,wmd->md", counts, found)
    return guess


def _covariances(inputs: Matrix, sizes: Matrix, known: int, largest: int) -> Iterator[tuple[Matrix, Matrix]]:
    """Among known samples (k, k), and between others and these (m - k, k)."""
    sized = [_scaled(inputs * sizes**power) for power in _POWERS]
    white = _scaled(np.linalg.svd(sized[_POWERS.index(1)], full_matrices=False)[0][:, :largest])
    for one in (*sized, white):
        yield one[:known] @ one[:known].T, one[known:] @ one[:known].T
    for power, width in _CURVED:
        one = sized[_POWERS.index(power)]
        near = np.exp(-width / 2 * cdist(one, one[:known], "sqeuclidean")) / width
        yield near[:known], near[known:]


def _scaled(inputs: Matrix) -> Matrix:
    centred = inputs - inputs.mean(axis=0)
    found: Matrix = centred / max(float(np.sqrt((centred**2).sum(axis=1).mean())), np.finfo(float).tiny)
    return found


def _fit(among: Matrix, across: Matrix, rows: Matrix, doubt: Matrix, noise: float) -> _Fit:
    """With any mean, and any scale that is not far below 1: what is left of both are differences between rows."""
    differ, whole = helmert(len(rows)), among + noise * np.diag(1 + doubt)
    inner = differ @ whole @ differ.T
    inverse = differ.T @ np.linalg.solve(inner, differ)
    solved, precise = inverse @ rows, np.diag(inverse)[:, None]
    errors, left = solved / precise, (rows * solved).sum(axis=0)
    size = float(np.linalg.slogdet(inner)[1])
    likely = -(len(rows) * np.log1p(left) + size) / 2
    rest = np.maximum(left - errors * solved, 0)
    without = -((len(rows) - 1) * np.log1p(rest) + size + np.log(precise)) / 2
    return _Fit(likely, without, errors, across @ solved + (rows - whole @ solved).mean(axis=0))


def _one_each(parts: Matrix, rows: Matrix, doubt: Matrix, noise: float) -> _Fit:
    """Every column by one of the parts (m, p), whichever it is."""
    known, parts = len(rows), parts / parts.std(axis=0)
    fits = [_fit(np.outer(p[:known], p[:known]), np.outer(p[known:], p[:known]), rows, doubt, noise) for p in parts.T]
    likely, without = (np.stack([getattr(one, of) for one in fits]) for of in ("likely", "without"))
    errors = np.einsum("pkd,pkd->kd", softmax(without, axis=0), np.stack([one.errors for one in fits]))
    found = np.einsum("pd,pmd->md", softmax(likely, axis=0), np.stack([one.found for one in fits]))
    shares = np.log(len(fits))
    return _Fit(logsumexp(likely, axis=0) - shares, logsumexp(without, axis=0) - shares, errors, found)
