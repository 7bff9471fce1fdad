"""What kriging leaves out: labels are 0 or 1. Expectation propagation puts it back.

Minka, "Expectation Propagation for Approximate Bayesian Inference" (2001): each label's two values are replaced by the
Gaussian that agrees with them given all the rest, over and over, until nothing changes. Where the equations are taken
for more exact than they are it does not settle; then they are given less weight.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.special import expit, logit

from crosshatch.audit.on_labels.kriging import LABEL
from crosshatch.audit.other_data import Matrix

_WORK = 8 * 10**9  # of each of its steps, which invert a matrix of all samples for every class
_WEIGHTS = (1.0, 0.3, 0.1, 0.03)
_STEPS = 20
_DAMPED = 0.3
_SETTLED = 0.02
_RARE = 0.02  # no label is taken to be rarer, whatever the columns say


def few_enough(samples: int, classes: int) -> bool:
    """Whether it takes no more than a minute or two."""
    return classes * samples**3 <= _WORK


def bits(by: Matrix, z: Matrix, before: Matrix) -> Matrix | None:
    """Log odds (n,) of labels 1, of whose a = 1/2 - y the likelihood is exp(-|z - Z a|^2 / 2); None: never settles.

    `before` (n,) is what a is on average where columns are like the sample's own.
    """
    square, right = by.T @ by, by.T @ z
    prior = logit(np.clip(0.5 - before, _RARE, 1 - _RARE))
    for weight in _WEIGHTS:
        found = _settle(weight * square, weight * right, prior)
        if found is not None:
            return found
    return None


def _settle(square: Matrix, right: Matrix, prior: Matrix) -> Matrix | None:
    count = len(right)
    precision, shift = np.full(count, 1 / LABEL), np.zeros(count)
    for _ in range(_STEPS):
        inverse = dpotri(dpotrf(square + np.diag(precision), lower=1)[0], lower=1, overwrite_c=1)[0]
        variance, below, given = np.diag(inverse).copy(), np.tril(inverse, -1), right + shift
        mean = below @ given + given @ below + variance * given
        without, pull = 1 / variance - precision, mean / variance - shift  # all but what the label itself says
        odds = pull - prior
        chance = expit(odds)
        spread = np.maximum(chance * (1 - chance), 1e-5)
        apart = float(abs(chance - 0.5 - mean).mean())
        sharper = 1 / spread - without
        moves = (without > 0) & (sharper > 0)
        precision = np.where(moves, (1 - _DAMPED) * precision + _DAMPED * sharper, precision)
        shift = np.where(moves, (1 - _DAMPED) * shift + _DAMPED * ((chance - 0.5) / spread - pull), shift)
    found: Matrix = -odds
    return found if apart <= _SETTLED else None
