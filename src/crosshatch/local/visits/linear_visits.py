"""Visits at agents whose block is linear, with one score per sample and no bias: little but products.

A step is `theta+ = prox(theta - step X'(predict(z) - y))` and `z+ = z + X (theta+ - theta)`. Features should lie
column after column, in which both products are faster. Nothing is kept that is as long as the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from crosshatch.task.regulariser import Regulariser

_EIGEN = 512  # up to so many columns the Gram matrix is taken apart


Visits = Callable[[Tensor, Tensor, int, float], None]
"""A visit: so many proximal steps of a size, in place, on the agent's block (d,) and the token (n,)."""


@dataclass
class StepByStep:
    """Two products with the features per step: for any loss whose derivative is `predict(z) - y`."""

    x: Tensor
    y: Tensor
    regulariser: Regulariser
    logistic: bool

    @cached_property
    def _labels(self) -> Tensor:
        """X'y (d,): the labels' part of the gradient is the same in every step."""
        return torch.mv(self.x.T, self.y)

    @torch.inference_mode()  # every call is a little shorter
    def __call__(self, theta: Tensor, z: Tensor, steps: int, step: float) -> None:
        """The step as above."""
        x, turned, logistic, sigmoid = self.x, self.x.T, self.logistic, torch.sigmoid
        scale = 1.0 / (1.0 + step * self.regulariser.l2)
        threshold, back = step * self.regulariser.l1 * scale, -step * scale
        predicted = torch.empty_like(z) if logistic else z
        now, after, moved = theta, torch.empty_like(theta), torch.empty_like(theta)
        # The same memory for numpy, which takes a third of the time to add a few numbers.
        now_, after_, moved_, labels_ = now.numpy(), after.numpy(), moved.numpy(), torch.mul(self._labels, step).numpy()
        add, subtract = np.add, np.subtract
        for _ in range(steps):
            if logistic:
                sigmoid(z, out=predicted)
            add(now_, labels_, out=after_)
            after.addmv_(turned, predicted, beta=scale, alpha=back)
            if threshold:
                functional.softshrink(after, threshold, out=after)  # type: ignore[call-arg]  # missing in the stub
            subtract(after_, now_, out=moved_)
            z.addmv_(x, moved)
            now, after, now_, after_ = after, now, after_, now_
        if now is not theta:
            theta.copy_(now)


@dataclass
class FromGram:
    """The squared loss from X'X: the features are touched twice per visit instead of twice per step.

    With an l1 term every step is a product with a matrix (d, d) and a soft threshold. Without one, Q steps are one
    linear map, which is diagonal in the eigenvectors of X'X: along one with eigenvalue v each further step is
    `(1 - step v) / (1 + step l2)` of the one before, and their sum is known.
    """

    x: Tensor
    y: Tensor
    regulariser: Regulariser
    _map: tuple[float, Tensor] | None = field(default=None, repr=False)
    _scaled: tuple[tuple[float, int], Tensor] | None = field(default=None, repr=False)

    @cached_property
    def _gram(self) -> Tensor:
        return self.x.T @ self.x

    @cached_property
    def _minus_labels(self) -> Tensor:
        """The labels' part of every gradient, -X'y (d,)."""
        return -torch.mv(self.x.T, self.y)

    @cached_property
    def _eigen(self) -> tuple[Tensor, Tensor]:
        """Eigenvalues, and eigenvectors as columns."""
        exact = self.x.double()
        values, vectors = torch.linalg.eigh(exact.T @ exact)
        return values, vectors.to(self.x.dtype).contiguous()

    @torch.inference_mode()
    def __call__(self, theta: Tensor, z: Tensor, steps: int, step: float) -> None:
        """All steps at once where that is possible."""
        gradient = torch.addmv(self._minus_labels, self.x.T, z)
        if self.regulariser.l1 or len(theta) > _EIGEN:
            moved = self._one_by_one(theta, gradient, steps, step)
        else:
            if self.regulariser.l2:
                gradient.add_(theta, alpha=self.regulariser.l2)
            moved = torch.mv(self._eigen[1], torch.mv(self._rows(steps, step), gradient))
        theta.add_(moved)
        z.addmv_(self.x, moved)

    def _rows(self, steps: int, step: float) -> Tensor:
        """The eigenvectors as rows, times what Q steps move by along each for a gradient of one."""
        if self._scaled is None or self._scaled[0] != (step, steps):
            values, columns = self._eigen
            scale = 1.0 / (1.0 + step * self.regulariser.l2)
            ratio, total = (1.0 - step * values) * scale, torch.ones_like(values)
            for _ in range(steps - 1):
                total = total * ratio + 1.0
            rows = columns.T * (total * (-step * scale)).to(columns.dtype)[:, None]
            self._scaled = ((step, steps), rows.contiguous())
        return self._scaled[1]

    def _one_by_one(self, start: Tensor, gradient: Tensor, steps: int, step: float) -> Tensor:
        """One step is `prox(theta - step (gradient + X'X (theta - start)))`: an affine map, then a soft threshold."""
        scale = 1.0 / (1.0 + step * self.regulariser.l2)
        threshold = step * self.regulariser.l1 * scale
        if self._map is None or self._map[0] != step:
            matrix = self._gram.mul(-step * scale)
            matrix.diagonal().add_(scale)
            self._map = (step, matrix)
        matrix = self._map[1]
        # theta+ = matrix @ theta + constant: the part of the start in the gradient is -(matrix - scale) @ start
        constant = torch.add(start, gradient, alpha=-step).mul_(scale).addmv_(matrix, start, alpha=-1.0)
        now = start
        for _ in range(steps):
            now = torch.addmv(constant, matrix, now)
            if threshold:
                now = functional.softshrink(now, threshold)
        return now - start
