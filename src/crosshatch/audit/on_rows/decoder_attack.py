"""The attack on rows by a decoder: learned from samples whose rows somebody knows, tried on all others.

It sees what a silo sent of a sample in all rounds. From many known rows ridge regressions, some in a kernel, and a
small network are learned, and cross-validation on what is known says which of them counts; from few rows others are
guessed by Gaussian processes (`few_rows`). Which few are known matters much, so that these are drawn several times.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor

from crosshatch.audit.on_rows.completion import SentDirections
from crosshatch.audit.on_rows.few_rows import guess_rows
from crosshatch.audit.on_rows.separation import unmixing
from crosshatch.audit.other_data import Matrix

FEW = 10
MANY = 2000  # or half of the samples where there are fewer than twice as many
DRAWS = 9  # of few known rows
_ENOUGH = 100  # known rows, from which on decoders are chosen by cross-validation, and a network is one of them
_FOLDS = 3
_RIDGES = (1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 1e-1, 1.0, 1e3)
_DIRECTIONS = 400
_CURVED = 12  # directions of a block that is not linear, made white
DOUBT = 0.01  # directions: from here on a known row counts less
_WIDTHS = (0.03, 0.1, 0.3)
_ALPHAS = (1e-6, 1e-3, 1e-1)

Learned = Callable[[Matrix, Matrix, Matrix, Matrix], Matrix]
"""From inputs (k, r), known rows (k, d) and their weights (k,) the rows (m, d) of other inputs (m, r)."""


def decode(sent: SentDirections, rows: Matrix, known: int, *, linear: bool, seed: int) -> float:
    """R^2 of the rows (m, d) of all samples but the first `known`; every column that varies counts the same."""
    return float(decode_often(sent, rows, known, draws=1, linear=linear, seed=seed)[0])


def decode_often(
    sent: SentDirections, rows: Matrix, known: int, *, draws: int, linear: bool, seed: int
) -> npt.NDArray[np.float64]:
    """The same with other known rows in every draw, the first ones in the first."""
    draw, order = np.random.default_rng(seed), np.arange(len(rows))
    turn = unmixing(sent.directions, seed=seed) if linear and sent.directions.shape[1] > 1 else None
    found = []
    for _ in range(draws):
        found.append(_decode(sent.take(order).with_known(rows[order[:known]]), rows[order], known, turn, seed))
        order = draw.permutation(len(rows))
    return np.array(found)


def _decode(sent: SentDirections, rows: Matrix, known: int, turn: Matrix | None, seed: int) -> float:
    largest = _CURVED if turn is None else rows.shape[1]
    rows = rows[:, (np.ptp(rows[:known], axis=0) > 0) & (np.ptp(rows[known:], axis=0) > 0)]
    if not rows.size:
        return 0.0
    rows = (rows - rows[:known].mean(axis=0)) / rows[:known].std(axis=0)
    truth, doubt = rows[known:], sent.doubt[:known] / DOUBT
    parts = None if turn is None else (sent.directions - sent.directions.mean(axis=0)) @ turn
    inputs, sizes = sent.directions[:, :_DIRECTIONS], sent.sizes[:_DIRECTIONS]
    if known < _ENOUGH:
        guess = guess_rows(inputs, sizes, parts, rows[:known], doubt, largest)
    else:
        guess = _by_the_best(inputs, sizes, rows[:known], 1 / (1 + doubt), largest, seed)
    left = ((guess - truth) ** 2).sum(axis=0) / ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    return 1 - float(left.mean())


def _by_the_best(inputs: Matrix, sizes: Matrix, rows: Matrix, weights: Matrix, largest: int, seed: int) -> Matrix:
    """Every column of all other rows by those decoders that err least in cross-validation on known ones."""
    known = len(rows)
    sized = inputs * sizes / np.sqrt((sizes**2).sum())
    several = inputs, sized, inputs * np.sqrt(sizes)
    white = np.linalg.svd(sized - sized.mean(axis=0), full_matrices=False)[0][:, :largest] * np.sqrt(len(sized))
    ways: list[tuple[Matrix, Learned]] = [(one, _ridge(r)) for one in (*several, white) for r in _RIDGES]
    ways += [(one, _kernel(*both)) for one in several for both in product(_WIDTHS, _ALPHAS)]
    ways.append((several[2], _network(seed)))
    folds = list(KFold(_FOLDS, shuffle=True, random_state=seed).split(rows))

    def tried(way: tuple[Matrix, Learned]) -> tuple[Matrix, Matrix]:
        """Every column's error by cross-validation, and what is guessed of all other rows."""
        x, learn = way
        apart = [weights[b] @ (learn(x[a], rows[a], weights[a], x[b]) - rows[b]) ** 2 for a, b in folds]
        return sum(apart) / weights.sum(), learn(x[:known], rows, weights, x[known:])

    errors, guesses = (np.stack(of) for of in zip(*map(tried, ways), strict=True))
    counts = softmax(-np.log(np.maximum(errors, np.finfo(float).tiny)) * known / 2, axis=0)
    guess: Matrix = np.einsum("wd,wmd->md", counts, guesses)
    return guess


def _ridge(ridge: float) -> Learned:
    def learn(x: Matrix, y: Matrix, weights: Matrix, new: Matrix) -> Matrix:
        shares = weights / weights.sum()
        middle, height, root = shares @ x, shares @ y, np.sqrt(shares)[:, None]
        left, sizes, right = np.linalg.svd((x - middle) * root, full_matrices=False)
        inner = sizes / (sizes**2 + ridge)
        found: Matrix = (new - middle) @ (right.T @ (inner[:, None] * (left.T @ ((y - height) * root)))) + height
        return found

    return learn


def _kernel(width: float, alpha: float) -> Learned:
    """Of a width relative to how far samples are apart."""

    def learn(x: Matrix, y: Matrix, weights: Matrix, new: Matrix) -> Matrix:
        gamma = width / max(2 * float(x.var(axis=0).sum()), 1e-12)
        found: Matrix = KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(x, y, weights).predict(new)
        return found.reshape(len(new), -1)

    return learn


def _network(seed: int) -> Learned:
    def learn(x: Matrix, y: Matrix, _: Matrix, new: Matrix) -> Matrix:
        scale = x.std(axis=0).max() or 1.0
        network = MLPRegressor(hidden_layer_sizes=(128, 128), early_stopping=True, max_iter=300, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found: Matrix = network.fit(x / scale, y).predict(new / scale)
        return found.reshape(len(new), -1)

    return learn
