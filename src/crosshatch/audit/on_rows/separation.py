"""Columns from scores alone: what a linear block sends over many rounds spans its columns, and these are not Gaussian.

Theorem 1 of FedBCD says that other columns, turned ones, would have sent the same. But among all turns those that make
columns as little Gaussian as they can are few, and the true columns are usually one of them: independent component
analysis (Hyvarinen, "Fast and Robust Fixed-Point Algorithms for Independent Component Analysis", 1999) finds them up to
order, sign and scale, from nothing but the scores. A column of two values is then found exactly: no other direction in
the span takes two values, and whoever has found one sees that. Where columns go together this may be far from them, and
the few largest directions of all scores, as they are or their components, are nearer: these are tried as well.
"""

import warnings
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from crosshatch.audit.other_data import Matrix

Cut = npt.NDArray[np.bool_]
_CONTRASTS = ("logcosh", "cube", "exp")
_BEGINNINGS = {"parallel": 3, "deflation": 2}  # how many times components are looked for together, and one by one
_NORMAL = 0.37457  # the mean of log cosh of a normal number
_STARTS = 40  # random directions from which columns of two values are looked for, beside the components
_TWO = 1e-4  # of the spread: what may be left of a column that takes two values
_CONSTANT = 1e-2  # relative: what centring leaves of a direction that is the bias, but for rounding


@dataclass(frozen=True)
class Separated:
    """How near the components come to the true columns: the correlation of each column with the nearest one.

    `highest`: its mean for the nearest of all separations, which somebody who tries but one may happen to have.
    """

    correlations: Matrix
    highest: float
    chance: float
    two_valued: int
    exact: int

    @property
    def mean(self) -> float:
        """Over all columns."""
        return float(self.correlations.mean())


def separate(directions: Matrix, sizes: Matrix, columns: Matrix, *, seed: int) -> Separated:
    """Components of directions (m, r) with sizes (r,) beside the true columns (m, d), but those that do not vary."""
    columns = columns[:, np.ptp(columns, axis=0) > 0]
    centred = directions - directions.mean(axis=0)
    left = centred @ _whitening(directions)
    draw = np.random.default_rng(seed)
    turned = left @ np.linalg.qr(draw.normal(size=(left.shape[1],) * 2))[0]
    found, *others = (centred @ turn for turn in unmixings(directions, sizes, seed=seed))
    pairs = _two_valued(left, np.hstack([found, left @ draw.normal(size=(left.shape[1], _STARTS))]))
    with_two = [k for k in range(columns.shape[1]) if len(np.unique(columns[:, k])) == 2]
    exact = sum(any(_same(columns[:, k] > columns[:, k].mean(), one) for one in pairs) for k in with_two)
    found = np.hstack([found, *(one[:, None].astype(np.float64) for one in pairs)])
    correlations, chance = _matched(found, columns), float(_matched(turned, columns).mean())
    highest = max(float(of.mean()) for of in (correlations, *(_matched(one, columns) for one in others)))
    return Separated(correlations, highest, chance, len(with_two), exact)


def _whitening(directions: Matrix) -> Matrix:
    """What makes columns of mean 0 and square 1 of directions (m, r) less their mean, but for what is constant."""
    _, sizes, right = np.linalg.svd(directions - directions.mean(axis=0), full_matrices=False)
    kept = sizes > _CONSTANT * sizes[0]
    found: Matrix = right[kept].T / sizes[kept] * np.sqrt(len(directions))
    return found


def unmixings(directions: Matrix, sizes: Matrix, *, seed: int) -> list[Matrix]:
    """What makes components of directions (m, r) with sizes (r,), less their mean: the least Gaussian ones first.

    By several contrasts, and each begins several times: where columns go together there is more than one place to end.
    They are made white once only; once more, with all sizes alike, they may lose one. Fewer of the largest directions,
    their components and they themselves, come last.
    """
    centred = directions - directions.mean(axis=0)
    white = _whitening(directions)
    white = white @ np.linalg.svd((centred @ white).T @ (centred * sizes), full_matrices=False)[0]  # the largest first
    left = centred @ white
    ways = [(way, start) for way, count in _BEGINNINGS.items() for start in range(count)]
    found = [_unmixed(left, contrast, way, seed + start) for contrast, (way, start) in product(_CONTRASTS, ways)]
    counts = [white.shape[1] >> halved for halved in range(white.shape[1].bit_length())]
    fewer = [
        _unmixed(left[:, :count], contrast, "parallel", seed)[1] for count in counts[1:-1] for contrast in _CONTRASTS
    ]
    turns = [
        *(turn for _, turn in sorted(found, key=lambda one: -one[0])),
        *fewer,
        *(np.eye(count) for count in counts),
    ]
    return [white[:, : len(turn)] @ turn for turn in turns]


def _unmixed(left: Matrix, contrast: str, way: str, seed: int) -> tuple[float, Matrix]:
    """How little Gaussian the components of white numbers (m, r) are, and what makes these (r, r)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ica = FastICA(algorithm=way, fun=contrast, whiten=False, max_iter=500, random_state=seed)
        turn: Matrix = ica.fit(left).components_.T
    return float(((np.log(np.cosh(left @ turn)).mean(axis=0) - _NORMAL) ** 2).sum()), turn


def _two_valued(left: Matrix, starts: Matrix) -> list[Cut]:
    """Columns of two values in the span of directions: a start is cut in two and put back into the span, in turns."""
    basis = left / np.sqrt(len(left))
    found: list[Cut] = []
    for start in starts.T:
        high = start > (start.min() + start.max()) / 2
        for _ in range(100):
            wanted = high - high.mean()
            column = basis @ (basis.T @ wanted)
            again = column > (column[high].mean() + column[~high].mean()) / 2
            if again.all() or not again.any() or np.array_equal(again, high):
                break
            high = again
        rest = ((wanted - column) ** 2).sum() / (wanted**2).sum()
        if rest <= _TWO and not any(_same(high, one) for one in found):
            found.append(high)
    return found


def _same(one: Cut, other: Cut) -> bool:
    return bool((one == other).all() or (one != other).all())


def _matched(found: Matrix, columns: Matrix) -> Matrix:
    """The correlation of each column with the component that is nearest to it, (d,), in size."""
    nearest: Matrix = abs(np.corrcoef(found.T, columns.T)[: found.shape[1], found.shape[1] :]).max(axis=0)
    return nearest
