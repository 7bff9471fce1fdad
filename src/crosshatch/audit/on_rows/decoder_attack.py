"""The attack on rows by a decoder: learned from samples whose rows somebody knows, tried on all others.

It sees what a silo sent of a sample in all rounds. Ridge regressions, some in a kernel, and a small network are
learned from what is known, and cross-validation on it says which is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor

from crosshatch.audit.other_data import Matrix

FEW = 10
MANY = 2000  # or half of the samples where there are fewer than twice as many
_ENOUGH = 100  # known rows, from which on curves are learned too
_RIDGES = (1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)
_DIRECTIONS = 400

Learned = Callable[[Matrix, Matrix, Matrix], Matrix]


def decode(directions: Matrix, sizes: Matrix, rows: Matrix, known: int, *, seed: int) -> float:
    """R^2 of the rows (m, d) of all samples but the first `known`; every column that varies counts the same."""
    rows = rows[:, np.ptp(rows[:known], axis=0) > 0]
    if not rows.size:
        return 0.0
    mean, deviation = rows[:known].mean(axis=0), rows[:known].std(axis=0)
    rows = (rows - mean) / deviation
    directions, sizes = directions[:, :_DIRECTIONS], sizes[:_DIRECTIONS]
    sized = directions * sizes / np.sqrt((sizes**2).sum())
    inputs = {"plain": directions, "sized": sized, "rooted": directions * np.sqrt(sizes)}
    ways: list[tuple[Matrix, Learned]] = [(one, _ridge(ridge)) for one in inputs.values() for ridge in _RIDGES]
    if known >= _ENOUGH:
        ways += [(sized, _kernel(gamma)) for gamma in (0.3, 3.0)]
        ways.append((sized, _network(seed)))
    folds = list(KFold(min(3, known), shuffle=True, random_state=seed).split(rows[:known]))

    def error(way: tuple[Matrix, Learned]) -> float:
        x, learn = way
        return sum(float(((learn(x[a], rows[a], x[b]) - rows[b]) ** 2).sum()) for a, b in folds)

    x, learn = min(ways, key=error)
    guess, truth = learn(x[:known], rows[:known], x[known:]), rows[known:]
    return 1 - float(((guess - truth) ** 2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum())


def _ridge(ridge: float) -> Learned:
    def learn(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
        middle, height = x.mean(axis=0), y.mean(axis=0)
        left, sizes, right = np.linalg.svd(x - middle, full_matrices=False)
        inner = sizes / (sizes**2 + ridge * len(x))
        found: Matrix = (new - middle) @ (right.T @ (inner[:, None] * (left.T @ (y - height)))) + height
        return found

    return learn


def _kernel(gamma: float) -> Learned:
    def learn(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
        found: Matrix = KernelRidge(kernel="rbf", gamma=gamma, alpha=1e-6).fit(x, y).predict(new)
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
