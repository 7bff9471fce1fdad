"""Labels and the other side's scores, fitted together by gradient descent to what a silo was told in all rounds.

Where kriging takes the derivatives for Gaussian, this keeps what they are: sigmoid(own score + the others') - label,
and of several classes the softmax.
The others' scores of a sample are a few functions of time, those of a random walk, times coefficients of the sample's
own, around coefficients that all samples have in common.
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import logit
from torch import Tensor

from crosshatch.audit.on_labels.told_sums import Equations, ToldSum
from crosshatch.audit.other_data import Matrix

_FUNCTIONS = 5
_STEPS = 200
_STEP_SIZE = 0.05
_SPREAD = 1.0  # of the coefficients
_CLOSE = 0.05  # how far from the sums the fit may stay
_NUMBERS = 2 * 10**7  # of the equations, at most: later rounds are left out beyond


def fit_jointly(told: Sequence[ToldSum], equations: Equations, starts: Sequence[Matrix]) -> Matrix:
    """The probability (n, c) of each label, from the guess of derivatives (n, c) that ends nearest to the sums."""
    return min((_fit(told, equations, start) for start in starts), key=lambda one: one[0])[1]


def _fit(told: Sequence[ToldSum], equations: Equations, start: Matrix) -> tuple[float, Matrix]:
    sizes = np.cumsum([columns.size for columns in equations.columns])
    rounds, classes = max(1, int((sizes <= _NUMBERS).sum())), start.shape[1]
    ids = [torch.from_numpy(one) for one in equations.ids[:rounds]]
    columns = [torch.from_numpy(one) for one in equations.columns[:rounds]]
    pairs = list(zip(told, equations.columns, equations.values, strict=True))[:rounds]
    wanted = torch.cat([torch.from_numpy(v + q.T @ one.expected) for one, q, v in pairs])
    scores = torch.cat([torch.from_numpy(_own_scores(one.expected)) for one in told[:rounds]])
    when = _functions(rounds)
    labels = torch.from_numpy(np.clip(-6 * start, -3, 3)).requires_grad_()
    each = torch.zeros(len(start), _FUNCTIONS, classes, dtype=torch.float64, requires_grad=True)
    common = torch.zeros(_FUNCTIONS, classes, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([labels, each, common], lr=_STEP_SIZE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, _STEPS)
    everybody, ends = torch.cat(ids), [len(one) for one in ids]
    rows = torch.repeat_interleave(torch.arange(rounds), torch.tensor(ends))
    for _ in range(_STEPS):
        optimiser.zero_grad()
        moved = ((each + common)[everybody] * when[rows, :, None]).sum(1)
        derivatives = _probabilities(scores + moved) - _probabilities(labels)[everybody]
        parts = zip(columns, torch.split(derivatives, ends), strict=True)
        sums = torch.cat([q.T @ d for q, d in parts])
        loss = ((sums - wanted) / _CLOSE).square().sum() + (each / _SPREAD).square().sum() + 0.1 * labels.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    return float(loss.detach()), _probabilities(labels).detach().numpy()


def _probabilities(scores: Tensor) -> Tensor:
    return torch.softmax(scores, 1) if scores.shape[1] > 1 else torch.sigmoid(scores)


def _own_scores(expected: Matrix) -> Matrix:
    """Scores (b, c) by what they make of derivatives; of several classes up to a number per sample."""
    classes = expected.shape[1]
    found: Matrix = np.log(expected + 1 / classes) if classes > 1 else logit(expected + 0.5)
    return found


def _functions(rounds: int) -> Tensor:
    """(T, k): the first functions of a random walk's expansion, zero in the first round."""
    t = torch.arange(rounds, dtype=torch.float64)[:, None] / max(1, rounds)
    k = (torch.arange(_FUNCTIONS, dtype=torch.float64) + 0.5) * torch.pi
    return 1.5 * torch.sin(k * t) / k
