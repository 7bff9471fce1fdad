"""Labels as clusters of directions: behind a head the derivatives of one class point the same way.

At an embedding the derivative of a sample is J^T (p - onehot(y)), where J is the head's part for the silo. While
probabilities p are alike, it has one direction per class. Each round's directions are clustered; classes have no names
there, so rounds are matched by the samples they have in common, and the clearest rounds come first and count most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans

from crosshatch.protocol.batches import Ids
from crosshatch.simulator.listening import Heard

ROUNDS = 200  # that are clustered, at most
_TINY = 1e-12


def cluster(messages: Sequence[Heard], samples: int, classes: int, *, seed: int) -> tuple[Ids, Ids]:
    """Samples that were seen, and the cluster of each."""
    found = []
    for heard in messages[:: max(1, -(-len(messages) // ROUNDS))]:
        rows = heard.values.double().numpy()
        sizes = np.linalg.norm(rows, axis=1)
        told = sizes > _TINY * max(1.0, sizes.max())
        if told.sum() > 2 * classes:
            directions = rows[told] / sizes[told, None]
            means = KMeans(classes, n_init=4, random_state=seed).fit(directions)
            spread = ((directions - directions.mean(axis=0)) ** 2).sum()
            clear = 1 - means.inertia_ / spread if spread > 0 else 0.0
            found.append((clear, heard.ids[told], means.labels_))
    votes = np.zeros((samples, classes))
    for clear, ids, labels in sorted(found, key=lambda one: -one[0]):
        one = np.eye(classes)[labels]
        _, names = linear_sum_assignment(-(one.T @ votes[ids]))
        votes[ids] += clear**8 * one[:, np.argsort(names)]
    seen = np.flatnonzero(votes.any(axis=1))
    return seen, votes[seen].argmax(axis=1)


def named(clusters: Ids, labels: Ids, classes: int) -> float:
    """The share of labels that clusters give if each gets the name that fits best."""
    both = np.zeros((classes, classes))
    np.add.at(both, (clusters, labels), 1)
    rows, columns = linear_sum_assignment(-both)
    return float(both[rows, columns].sum() / len(labels))


def named_by_known(clusters: Ids, labels: Ids, classes: int) -> float:
    """The same where one sample of each class is known: clusters are named by these, and the others are counted."""
    known = [int(np.flatnonzero(labels == k)[0]) for k in range(classes) if (labels == k).any()]
    names = np.full(classes, -1)
    for i in known:
        names[clusters[i]] = labels[i]
    rest = np.setdiff1d(np.arange(len(labels)), known)
    return float((names[clusters[rest]] == labels[rest]).mean()) if len(rest) else 1.0
