"""The attack on rows by a decoder: learned from samples whose rows somebody knows, tried on all others.

It sees what a silo sent of a sample in all rounds. Ridge regressions, some in a kernel, and a small network are
learned from what is known, and cross-validation on it says which is used. Of a linear block there is more to try: the
weights behind every message, from the known rows in it, and then other rows from as many messages as there are of each;
and components that blind separation found, to each column the one that fits it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor

from crosshatch.audit.on_rows.completion import MOST, Sent, nearest
from crosshatch.audit.on_rows.separation import components
from crosshatch.audit.other_data import Matrix

FEW = 10
MANY = 2000  # or half of the samples where there are fewer than twice as many
_ENOUGH = 100  # known rows, from which on curves are learned too
_RIDGES = (1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 1e-1, 1.0, 1e3)
_DIRECTIONS = 400
_FAR = 100  # times the range of what is known: real rows may well be beyond the range itself
_BEST = 3  # ways: where one guesses what cannot be, the next is asked
_WIDTHS = (0.03, 0.1, 0.3)
_ALPHAS = (1e-6, 1e-3, 1e-1)

Learned = Callable[[Matrix, Matrix, Matrix], Matrix]


def decode(sent: Sent, rows: Matrix, known: int, *, linear: bool, seed: int) -> float:
    """R^2 of the rows (m, d) of all samples but the first `known`; every column that varies counts the same."""
    rows = rows[:, np.ptp(rows[:known], axis=0) > 0]
    if not rows.size:
        return 0.0
    mean, deviation = rows[:known].mean(axis=0), rows[:known].std(axis=0)
    rows = (rows - mean) / deviation
    directions, sizes = sent.directions[:, :_DIRECTIONS], sent.sizes[:_DIRECTIONS]
    sized = directions * sizes / np.sqrt((sizes**2).sum())
    inputs = {"plain": directions, "sized": sized, "rooted": directions * np.sqrt(sizes)}
    ways: list[tuple[Matrix, Learned]] = [(one, _ridge(ridge)) for one in inputs.values() for ridge in _RIDGES]
    if linear and directions.shape[1] > 1:
        ways.append((components(directions, seed=seed), _one_each))
    if linear and rows.shape[1] < MOST:
        ways += [(sent.numbers, _weights(ridge)) for ridge in _RIDGES[1:-2]]
    if known >= _ENOUGH:
        ways += [(one, _kernel(*both)) for one in inputs.values() for both in product(_WIDTHS, _ALPHAS)]
        ways.append((sized, _network(seed)))
    folds = list(KFold(min(3, known), shuffle=True, random_state=seed).split(rows[:known]))

    def error(way: tuple[Matrix, Learned]) -> float:
        x, learn = way
        return sum(float(((learn(x[a], rows[a], x[b]) - rows[b]) ** 2).sum()) for a, b in folds)

    guess, truth = np.full_like(rows[known:], np.nan), rows[known:]
    for x, learn in sorted(ways, key=error)[:_BEST]:
        rest = np.flatnonzero(np.isnan(guess).any(axis=1))
        if len(rest):
            guess[rest] = _plausible(rows[:known], learn(x[:known], rows[:known], x[known:][rest]))
    guess = np.nan_to_num(guess)  # the mean of what is known
    return 1 - float(((guess - truth) ** 2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum())


def _plausible(known: Matrix, guess: Matrix) -> Matrix:
    """The guess, but nan where a column is far beyond what is known of it: too few messages tell anything of a row."""
    low, high = known.min(axis=0), known.max(axis=0)
    far = _FAR * (high - low)
    beyond = ((guess < low - far) | (guess > high + far)).any(axis=1)
    found: Matrix = np.where(beyond[:, None], np.nan, guess)
    return found


def _ridge(ridge: float) -> Learned:
    def learn(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
        middle, height = x.mean(axis=0), y.mean(axis=0)
        left, sizes, right = np.linalg.svd(x - middle, full_matrices=False)
        inner = sizes / (sizes**2 + ridge * len(x))
        found: Matrix = (new - middle) @ (right.T @ (inner[:, None] * (left.T @ (y - height)))) + height
        return found

    return learn


def _one_each(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
    """Every column from the one component that fits it best."""
    left, right = x - x.mean(axis=0), y - y.mean(axis=0)
    slopes = left.T @ right / np.maximum((left**2).sum(axis=0), 1e-12)[:, None]
    which = (slopes**2 * (left**2).sum(axis=0)[:, None]).argmax(axis=0)
    found: Matrix = (new - x.mean(axis=0))[:, which] * slopes[which, np.arange(y.shape[1])] + y.mean(axis=0)
    return found


def _weights(ridge: float) -> Learned:
    """Messages (m, k) with gaps: their weights from known rows, and from these the likeliest rows."""

    def learn(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
        there, told = ~np.isnan(x), ~np.isnan(new)
        enough = there.sum(axis=0) > y.shape[1] + 1
        there, told = there[:, enough].astype(np.float64), told[:, enough].astype(np.float64)
        x, new = np.nan_to_num(x[:, enough]), np.nan_to_num(new[:, enough])
        both = nearest(x.T, there.T, np.column_stack([y, np.ones(len(y))]), 1e-12)
        root = np.linalg.cholesky(np.cov(y.T).reshape(y.shape[1], -1) + 1e-9 * np.eye(y.shape[1]))
        weights, middle = both[:, :-1], y.mean(axis=0)
        found: Matrix = nearest(new - both[:, -1] - weights @ middle, told, weights @ root, ridge) @ root.T + middle
        return found

    return learn


def _kernel(width: float, alpha: float) -> Learned:
    """Of a width relative to how far samples are apart."""

    def learn(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
        gamma = width / max(2 * float(x.var(axis=0).sum()), 1e-12)
        found: Matrix = KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(x, y).predict(new)
        return found.reshape(len(new), -1)

    return learn


def _network(seed: int) -> Learned:
    def learn(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
        scale = x.std(axis=0).max() or 1.0
        network = MLPRegressor(
            hidden_layer_sizes=(64,), early_stopping=True, learning_rate_init=3e-3, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found: Matrix = network.fit(x / scale, y).predict(new / scale)
        return found.reshape(len(new), -1)

    return learn
