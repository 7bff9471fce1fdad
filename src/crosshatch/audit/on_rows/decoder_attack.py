"""The attack on rows by a decoder: learned from samples whose rows somebody knows, tried on all others.

It sees what a silo sent of a sample in all rounds. Ridge regressions, some in a kernel, and a small network are
learned from what is known, and cross-validation on it says how much the guess of each counts: of many known rows that
of the best alone. Of few the errors of all columns are multiplied, so that one column in which a single known row
differs, which nothing can foretell, does not hide who is exact in the others; and those whose guesses of other rows are
far from each other count less, since few rows fit well in many ways. Of a linear block there are also the components
that blind separation found, to each column the one that fits it.
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

from crosshatch.audit.on_rows.completion import SentDirections
from crosshatch.audit.on_rows.separation import components
from crosshatch.audit.other_data import Matrix

FEW = 10
MANY = 2000  # or half of the samples where there are fewer than twice as many
_ENOUGH = 100  # known rows, from which on a network is learned too
_RIDGES = (1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 1e-1, 1.0, 1e3)
_DIRECTIONS = 400
_CURVED = 12  # directions of a block that is not linear, made white, from which ridge regressions learn too
_WIDE = 1e-5  # of the mean square of guesses counts as error
DOUBT = 0.01  # directions: from here on a known row counts less
_WIDTHS = (0.03, 0.1, 0.3)
_ALPHAS = (1e-6, 1e-3, 1e-1)

Learned = Callable[[Matrix, Matrix, Matrix, Matrix], Matrix]
"""From inputs (k, r), known rows (k, d) and their weights (k,) the rows (m, d) of other inputs (m, r)."""


def decode(sent: SentDirections, rows: Matrix, known: int, *, linear: bool, seed: int) -> float:
    """R^2 of the rows (m, d) of all samples but the first `known`; every column that varies counts the same."""
    width, sent = rows.shape[1], sent.with_known(rows[:known])
    rows = rows[:, (np.ptp(rows[:known], axis=0) > 0) & (np.ptp(rows[known:], axis=0) > 0)]
    if not rows.size:
        return 0.0
    rows = (rows - rows[:known].mean(axis=0)) / rows[:known].std(axis=0)
    directions, sizes = sent.directions[:, :_DIRECTIONS], sent.sizes[:_DIRECTIONS]
    sized = directions * sizes / np.sqrt((sizes**2).sum())
    inputs = directions, sized, directions * np.sqrt(sizes)
    largest = np.linalg.svd(sized - sized.mean(axis=0), full_matrices=False)[0][:, : width if linear else _CURVED]
    white = largest * np.sqrt(len(largest))
    ways: list[tuple[Matrix, Learned]] = [(one, _ridge(r)) for one in (*inputs, white) for r in _RIDGES]
    if linear and directions.shape[1] > 1:
        ways.append((components(directions, seed=seed), _one_each))
    ways += [(one, _kernel(*both)) for one in inputs for both in product(_WIDTHS, _ALPHAS)]
    if known >= _ENOUGH:
        ways.append((inputs[2], _network(seed)))
    weights = 1 / (1 + sent.doubt[:known] / DOUBT)
    folds = list(KFold(known if known < _ENOUGH else 3, shuffle=True, random_state=seed).split(rows[:known]))

    def tried(way: tuple[Matrix, Learned]) -> tuple[Matrix, Matrix]:
        """Every column's error by cross-validation, and what is guessed of all other rows."""
        x, learn = way
        apart = [weights[b] @ (learn(x[a], rows[a], weights[a], x[b]) - rows[b]) ** 2 for a, b in folds]
        found = learn(x[:known], rows[:known], weights, x[known:])
        return sum(apart) / weights.sum() + _WIDE * (found**2).mean(axis=0), found

    errors, guesses = (np.stack(of) for of in zip(*map(tried, ways), strict=True))
    logs = np.log(np.maximum(errors, np.finfo(float).tiny))
    if known < _ENOUGH:  # few rows say little of one column alone
        logs = np.broadcast_to(logs.mean(axis=1, keepdims=True), logs.shape)
    likely = np.exp((logs.min(axis=0) - logs) * known / 2)
    guess, truth = np.einsum("wd,wmd->md", likely / likely.sum(axis=0), guesses), rows[known:]
    left = ((guess - truth) ** 2).sum(axis=0) / ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    return 1 - float(left.mean())


def _ridge(ridge: float) -> Learned:
    def learn(x: Matrix, y: Matrix, weights: Matrix, new: Matrix) -> Matrix:
        shares = weights / weights.sum()
        middle, height, root = shares @ x, shares @ y, np.sqrt(shares)[:, None]
        left, sizes, right = np.linalg.svd((x - middle) * root, full_matrices=False)
        inner = sizes / (sizes**2 + ridge)
        found: Matrix = (new - middle) @ (right.T @ (inner[:, None] * (left.T @ ((y - height) * root)))) + height
        return found

    return learn


def _one_each(x: Matrix, y: Matrix, weights: Matrix, new: Matrix) -> Matrix:
    """Every column from the one component that fits it best."""
    shares = (weights / weights.sum())[:, None]
    middle, height = (shares * x).sum(axis=0), (shares * y).sum(axis=0)
    left, right = x - middle, y - height
    squares = np.maximum((shares * left**2).sum(axis=0), 1e-12)
    slopes = (shares * left).T @ right / squares[:, None]
    which = (slopes**2 * squares[:, None]).argmax(axis=0)
    found: Matrix = (new - middle)[:, which] * slopes[which, np.arange(y.shape[1])] + height
    return found


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
