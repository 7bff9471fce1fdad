"""Rows from known ones: Gaussian processes against refits, one row left out each, and against a plain ridge."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

from crosshatch.audit.on_rows.completion import SentDirections
from crosshatch.audit.on_rows.decoder_attack import decode_often
from crosshatch.audit.on_rows.processes import Fit, fits, guess_rows
from tests.audit.random_runs import Matrix

NOISE = 9  # the number of the noise of 0.1


def covariances(seed: int, samples: int) -> Matrix:
    """Between all samples, of three directions."""
    inputs = np.random.default_rng(seed).normal(size=(samples, 3))
    return inputs @ inputs.T


def fit(covariance: Matrix, rows: Matrix, weights: Matrix) -> Fit:
    """With rows of the first samples."""
    return list(fits(covariance[:, : len(rows)], rows, weights))[NOISE]


def test_leaving_a_row_out_is_the_same_as_fitting_without_it() -> None:
    rows, weights = np.random.default_rng(9).normal(size=(6, 2)), np.array([1, 1, 0.25, 1, 1, 1])
    whole = [fit(covariances(seed, 6), rows, weights) for seed in (0, 1)]
    for i in range(6):
        rest = np.arange(6) != i
        last = np.append(np.flatnonzero(rest), i)
        alone = []
        for seed, one in enumerate(whole):
            without = fit(covariances(seed, 6)[np.ix_(last, last)], rows[rest], weights[rest])
            assert rows[i] - without.found[0] == pytest.approx(one.errors[i], rel=1e-9)
            alone.append(without.likely)
        assert alone[0] - alone[1] == pytest.approx(whole[0].without[i] - whole[1].without[i], rel=1e-9)


def test_a_process_with_any_mean_is_universal_kriging() -> None:
    """The weights of known rows, with a multiplier so that they add up to one, by the textbook's bordered system."""
    covariance, rows = covariances(3, 11), np.random.default_rng(4).normal(size=(7, 2)) + 5
    counts = np.array([1, 1, 1, 0.5, 1, 0.1, 1])
    noisy = covariance[:7, :7] + 0.1 * np.diag(1 / counts)
    bordered = np.block([[noisy, np.ones((7, 1))], [np.ones((1, 7)), np.zeros((1, 1))]])
    weights = np.linalg.solve(bordered, np.vstack([covariance[:7, 7:], np.ones((1, 4))]))[:7]
    assert fit(covariance, rows, counts).found == pytest.approx(weights.T @ rows, rel=1e-9)


def test_directions_that_count_by_their_sizes_are_found_to() -> None:
    """24 directions of which the large ones make the rows: ten rows say so, though they fit any of them exactly."""
    draw = np.random.default_rng(0)
    directions, sizes = draw.normal(size=(500, 24)), np.geomspace(1, 1e-3, 24)
    rows = (directions * sizes) @ draw.normal(size=(24, 4))
    rows = (rows - rows[:10].mean(axis=0)) / rows[:10].std(axis=0)
    guess, _ = guess_rows(directions, sizes, None, rows[:10], np.ones(10), [directions[:, :6], directions[:, :12]])
    assert 1 - ((guess - rows[10:]) ** 2).sum() / ((rows[10:] - rows[10:].mean(axis=0)) ** 2).sum() > 0.8


def test_the_largest_directions_that_count_alike_are_found() -> None:
    """Six of 30, by which ten rows are exact; the sizes of directions say nothing of how much each of them counts."""
    draw = np.random.default_rng(0)
    directions, sizes = draw.normal(size=(500, 30)), np.geomspace(1, 1e-6, 30)
    rows = directions[:, :6] @ draw.normal(size=(6, 4))
    rows = (rows - rows[:10].mean(axis=0)) / rows[:10].std(axis=0)
    guess, errors = guess_rows(directions, sizes, None, rows[:10], np.ones(10), [directions[:, :6], directions[:, :12]])
    assert ((guess - rows[10:]) ** 2).mean() < 1e-3
    assert errors.max() < 1e-3


@pytest.mark.parametrize("power", [0, 0.5, 1])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_no_plain_ridge_is_ahead(power: float, noise: float) -> None:
    """Ridge regressions on directions as they are or by size, each chosen by leaving one out of ten known rows."""
    draw = np.random.default_rng(1)
    directions, sizes = draw.normal(size=(400, 12)), np.geomspace(1, 1e-2, 12)
    rows = (directions * sizes**power) @ draw.normal(size=(12, 5))
    rows = rows / rows.std(axis=0) + noise * draw.normal(size=rows.shape)
    nothing = np.zeros(len(rows))
    sent = SentDirections(np.arange(len(rows)), directions, sizes, nothing, nothing.astype(np.int64), 1.0)
    ours = np.median(decode_often(sent, rows, 10, draws=9, linear=False, seed=0))
    for inputs in (directions, directions * sizes):
        again, order, rival = np.random.default_rng(0), np.arange(len(rows)), []
        for _ in range(9):
            known, rest = order[:10], order[10:]
            guess = RidgeCV(np.geomspace(1e-9, 10, 12)).fit(inputs[known], rows[known]).predict(inputs[rest])
            left = ((guess - rows[rest]) ** 2).sum(axis=0) / ((rows[rest] - rows[rest].mean(axis=0)) ** 2).sum(axis=0)
            rival.append(1 - left.mean())
            order = again.permutation(len(rows))
        assert ours > np.median(rival) - 0.02
