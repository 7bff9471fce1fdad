"""The attack on rows by a decoder: learned from samples whose rows somebody knows, tried on all others.

It sees what a silo sent of a sample in all rounds. Rows are guessed by Gaussian processes (`processes`); from many
known rows a small network is learned as well, and cross-validation says which of the two counts. Which few are known
matters much, so that these are drawn several times.
"""

import warnings

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor

from crosshatch.audit.on_rows.completion import SentDirections
from crosshatch.audit.on_rows.processes import guess_rows
from crosshatch.audit.on_rows.separation import unmixings
from crosshatch.audit.other_data import Matrix

FEW = 10
MANY = 2000  # or half of the samples where there are fewer than twice as many
DRAWS = 9  # of few known rows
_ENOUGH = 100  # known rows, from which on a network is one of the decoders
_FOLDS = 3
_DIRECTIONS = 400
_WHITE = (4, 6, 8, 12, 16, 24)  # so many of the largest directions, which count alike
DOUBT = 0.01  # directions: from here on a known row counts less


def decode_often(
    sent: SentDirections, rows: Matrix, known: int, *, draws: int, linear: bool, seed: int
) -> npt.NDArray[np.float64]:
    """R^2 of the rows (m, d) of all samples but those `known`; every column that varies counts the same.

    In every draw others are known, in the first one the first.
    """
    draw, order = np.random.default_rng(seed), np.arange(len(rows))
    turn = unmixings(sent.directions, sent.sizes, seed=seed)[0] if linear and sent.directions.shape[1] > 1 else None
    found = []
    for _ in range(draws):
        found.append(_decode(sent.take(order).with_known(rows[order[:known]]), rows[order], known, turn, seed))
        order = draw.permutation(len(rows))
    return np.array(found)


def _decode(sent: SentDirections, rows: Matrix, known: int, turn: Matrix | None, seed: int) -> float:
    columns = rows.shape[1]
    rows = rows[:, (np.ptp(rows[:known], axis=0) > 0) & (np.ptp(rows[known:], axis=0) > 0)]
    if not rows.size:
        return 0.0
    rows = (rows - rows[:known].mean(axis=0)) / rows[:known].std(axis=0)
    truth, weights = rows[known:], 1 / (1 + sent.doubt[:known] / DOUBT)
    parts = None if turn is None or known >= _ENOUGH else (sent.directions - sent.directions.mean(axis=0)) @ turn
    inputs, sizes = sent.directions[:, :_DIRECTIONS], sent.sizes[:_DIRECTIONS]
    alike = [inputs[:, :count] for count in _WHITE if count < inputs.shape[1]]
    if turn is not None and not sent.batch.any():  # of a linear block all directions count, but for its bias
        centred = inputs * sizes - (inputs * sizes).mean(axis=0)
        alike = [np.linalg.svd(centred, full_matrices=False)[0][:, :columns]]
    guess, errors = guess_rows(inputs, sizes, parts, rows[:known], weights, alike)
    if known >= _ENOUGH:
        guess = _or_by_a_network(inputs * np.sqrt(sizes), rows[:known], weights, guess, errors, seed)
    left = ((guess - truth) ** 2).sum(axis=0) / ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    return 1 - float(left.mean())


def _or_by_a_network(inputs: Matrix, rows: Matrix, weights: Matrix, guess: Matrix, errors: Matrix, seed: int) -> Matrix:
    """Of every column the guess (m, d), or a network's where that errs less in cross-validation on known ones."""
    known, inputs = len(rows), inputs / (inputs.std(axis=0).max() or 1.0)

    def learn(x: Matrix, y: Matrix, new: Matrix) -> Matrix:
        network = MLPRegressor(hidden_layer_sizes=(128, 128), early_stopping=True, max_iter=300, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found: Matrix = network.fit(x, y).predict(new)
        return found.reshape(len(new), -1)

    folds = KFold(_FOLDS, shuffle=True, random_state=seed).split(rows)
    apart = [weights[b] @ (learn(inputs[a], rows[a], inputs[b]) - rows[b]) ** 2 for a, b in folds]
    both = np.maximum([errors, sum(apart) / weights.sum()], np.finfo(float).tiny)
    shares = softmax(-np.log(both) * known / 2, axis=0)
    mixed: Matrix = shares[0] * guess + shares[1] * learn(inputs[:known], rows, inputs[known:])
    return mixed
