"""Labels as clusters of directions: behind a head the derivatives of one class point the same way.

At an embedding the derivative of a sample is J^T (p - onehot(y)), where J is the head's part for the silo. While
probabilities p are alike, it has one direction per class. Directions turn as the head trains, so classes are tracked:
every round is a mixture whose centres begin where those of the round before ended, while a sample keeps its class, and
what all rounds say of it adds up. Clusters get names at the end, by the samples whose labels are known.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from sklearn.cluster import KMeans

from crosshatch.audit.other_data import Matrix
from crosshatch.protocol.batches import Ids
from crosshatch.simulator.listening import Heard

ROUNDS = 200  # that are clustered, at most
_STARTS = 5  # rounds to begin with: a small batch may lack a class, and then there is no centre for it
_STEPS = 20  # of expectation maximisation per round
_LEAST = 1e-3  # variance: without it the first round, where directions of a class are equal, would outweigh all others
_TINY = 1e-12


def cluster(messages: Sequence[Heard], samples: int, classes: int, *, seed: int) -> tuple[Ids, Matrix]:
    """Samples that were seen, and how likely each is in each cluster: logarithms, up to a constant per sample.

    Of several rounds to begin with, that one counts which makes all directions likeliest.
    """
    rounds = []
    for heard in messages[:: max(1, -(-len(messages) // ROUNDS))]:
        rows = heard.values.double().numpy()
        sizes = np.linalg.norm(rows, axis=1)
        told = sizes > _TINY * max(1.0, sizes.max())
        if told.sum() > 2 * classes:
            rounds.append((heard.ids[told], rows[told] / sizes[told, None]))
    if not rounds:
        return np.empty(0, np.int64), np.empty((0, classes))
    seen = np.unique(np.concatenate([ids for ids, _ in rounds]))
    orders = (rounds[k:] + rounds[:k][::-1] for k in range(min(_STARTS, len(rounds))))
    tracked = (_track(order, np.zeros((samples, classes)), seed) for order in orders)
    return seen, max(tracked, key=lambda one: one[0])[1][seen]


def _track(rounds: Sequence[tuple[Ids, Matrix]], likely: Matrix, seed: int) -> tuple[float, Matrix]:
    """The logarithm of the likelihood of all directions, and for each sample that of each cluster."""
    first = rounds[0][1]
    means = KMeans(likely.shape[1], n_init=4, random_state=seed).fit(first)
    centres, variance, fit = means.cluster_centers_, means.inertia_ / first.size + _LEAST, 0.0
    for ids, directions in rounds:
        before = centres  # counts as one more sample of its class, which this batch may lack
        for _ in range(_STEPS):
            apart = ((directions[:, None] - centres) ** 2).sum(axis=2)
            share = softmax(likely[ids] - apart / (2 * variance), axis=1)
            centres = (before + share.T @ directions) / (1 + share.sum(axis=0)[:, None])
            variance = (share * apart).sum() / directions.size + _LEAST
        likely[ids] -= ((directions[:, None] - centres) ** 2).sum(axis=2) / (2 * variance)
        fit -= directions.size * np.log(variance)
    return fit, likely


def named(likely: Matrix, labels: Ids, classes: int) -> float:
    """The share of labels that clusters give if each gets the name that fits best."""
    both = np.zeros((classes, classes))
    np.add.at(both, (likely.argmax(axis=1), labels), 1)
    rows, columns = linear_sum_assignment(-both)
    return float(both[rows, columns].sum() / len(labels))


def named_by_known(likely: Matrix, labels: Ids, classes: int) -> float:
    """The same where one sample of each class is known: clusters are named by these, and the others are counted.

    Known samples are in different classes, so each names another cluster: together the likeliest ones.
    """
    known = [int(np.flatnonzero(labels == k)[0]) for k in range(classes) if (labels == k).any()]
    rows, clusters = linear_sum_assignment(-likely[known])
    names = np.full(classes, -1)
    names[clusters] = labels[known][rows]
    rest = np.setdiff1d(np.arange(len(labels)), known)
    return float((names[likely[rest].argmax(axis=1)] == labels[rest]).mean()) if len(rest) else 1.0
