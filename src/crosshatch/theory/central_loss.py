"""The loss of a whole federation as one function of one vector: its value, gradient and curvature.

The vector (p,) is the silos' flat weights end to end. Only the smooth part counts: an L1 term has no gradient at zero.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from crosshatch.data.federated import FederatedData
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task

Rows = npt.NDArray[np.int64]
_CHUNK = 2048  # samples differentiated at once; more would only need more memory


@dataclass(frozen=True)
class CentralLoss:
    """Data and task, seen by somebody who has everything.

    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
    >>> from crosshatch.task.fusion import Sum
    >>> from crosshatch.task.losses import Logistic
    >>> data = federate(load_dataset("breast_cancer"), FederationSettings(silos=2), seed=1)
    >>> blocks = tuple(torch.nn.Linear(silo.train.shape[1], 1) for silo in data.silos)
    >>> central = CentralLoss(data, Task(blocks, Sum(), Logistic()))
    >>> central.gradient(central.start(), central.rows).shape
    torch.Size([32])
    """

    data: FederatedData
    task: Task

    @cached_property
    def rows(self) -> Rows:
        return np.arange(len(self.data.y_train), dtype=np.int64)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each silo's weights stand in the vector."""
        ends = np.cumsum([len(weights) for weights in self.task.initial()])
        return tuple(slice(int(high) - n, int(high)) for high, n in zip(ends, self._sizes, strict=True))

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(weights) for weights in self.task.initial())

    def start(self) -> Tensor:
        return self.join(self.task.initial())

    def join(self, weights: Sequence[Tensor]) -> Tensor:
        """One vector (p,) from one per silo, in the data's precision."""
        like = self.data.silos[0].train
        kind = like.dtype if like.is_floating_point() else torch.float32
        return torch.cat([piece.detach().to(like.device, kind) for piece in weights])

    def value(self, theta: Tensor, rows: Rows) -> float:
        """Mean loss on these samples plus the smooth part of the regulariser."""
        with torch.no_grad():
            return sum(float(part) for part in self._parts(theta, rows))

    def gradient(self, theta: Tensor, rows: Rows) -> Tensor:
        leaf = theta.detach().requires_grad_()
        total = torch.zeros_like(theta)
        for part in self._parts(leaf, rows):
            total += torch.autograd.grad(part, leaf)[0]
        return total

    def curvature(self, theta: Tensor, rows: Rows) -> Callable[[Tensor], Tensor]:
        """The Hessian on these samples as a map of vectors (p,), by differentiating twice.

        By differences of gradients where torch differentiates a layer only once, and for recurrent layers, whose second
        derivative takes several times as long.
        """
        if any(isinstance(module, nn.RNNBase) for block in self.task.blocks for module in block.modules()):
            return lambda direction: self._differences(theta, rows, direction)
        try:
            self._hessian_times(theta, rows[:1], torch.ones_like(theta))
        except RuntimeError:
            return lambda direction: self._differences(theta, rows, direction)
        return lambda direction: self._hessian_times(theta, rows, direction)

    def _hessian_times(self, theta: Tensor, rows: Rows, direction: Tensor) -> Tensor:
        leaf = theta.detach().requires_grad_()
        total = torch.zeros_like(theta)
        for part in self._parts(leaf, rows):
            slope = torch.autograd.grad(part, leaf, create_graph=True)[0]
            total += torch.autograd.grad(slope @ direction, leaf)[0]
        return total

    def _differences(self, theta: Tensor, rows: Rows, direction: Tensor) -> Tensor:
        length = float(direction.norm())
        if length == 0:
            return torch.zeros_like(direction)
        small = torch.finfo(theta.dtype).eps ** (1 / 3) * (1 + float(theta.norm())) / length
        forwards = self.gradient(theta + small * direction, rows)
        backwards = self.gradient(theta - small * direction, rows)
        return (forwards - backwards).div(2 * small)

    def _parts(self, theta: Tensor, rows: Rows) -> list[Tensor]:
        """Scalars that add up to the loss: the samples in pieces, then the regulariser."""
        weights = torch.split(theta, list(self._sizes))
        parts = []
        for low in range(0, len(rows), _CHUNK):
            index = torch.as_tensor(rows[low : low + _CHUNK], device=theta.device)
            xs = [silo.train.index_select(0, index).to(theta.dtype) for silo in self.data.silos]
            y = self.data.y_train.index_select(0, index)
            y = y.to(theta.dtype) if y.is_floating_point() else y
            parts.append(self.task.loss.value(self.task.scores(weights, xs), y).sum() / len(rows))
        smooth = Regulariser(l2=self.task.regulariser.l2)
        if smooth.l2 > 0:  # of the blocks, not of the head
            parts += [smooth.penalty(self.task.split(j, mine)[0], self.task.free[j]) for j, mine in enumerate(weights)]
        return parts
