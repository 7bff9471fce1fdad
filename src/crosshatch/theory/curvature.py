"""Norms of linear maps that are known only by what they do to a vector."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]


def symmetric_norm(apply: Map, start: Tensor, *, steps: int) -> float:
    """The largest absolute eigenvalue of a symmetric map (p,) -> (p,), by `steps` of Lanczos' method from `start`.

    The answer grows with the steps and is never above the true one but for rounding; a dozen steps are within a few
    per cent even where the largest eigenvalues lie close together.

    >>> round(symmetric_norm(lambda v: torch.tensor([1.0, -3.0, 2.0]) * v, torch.ones(3), steps=3), 3)
    3.0
    """
    if not len(start):
        return 0.0  # a silo without features
    basis = [start / start.norm()]
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(min(steps, len(start))):
        image = apply(basis[-1])
        diagonal.append(float(image @ basis[-1]))
        for _ in range(2):  # twice: once loses orthogonality in single precision
            for known in basis:
                image = image - (image @ known) * known
        length = float(image.norm())
        if not length > 1e-6 * max(1e-30, *map(abs, diagonal)):
            break
        beside.append(length)
        basis.append(image / length)
    inner = beside[: len(diagonal) - 1]
    small = np.diag(diagonal) + np.diag(inner, 1) + np.diag(inner, -1)
    return float(np.abs(np.linalg.eigvalsh(small)).max())


def block_norm(hessian: Map, block: slice, start: Tensor, *, steps: int) -> float:
    """The norm of a symmetric map's rows `block`: the Lipschitz constant of that part of a gradient in all weights."""

    def squared(piece: Tensor) -> Tensor:
        whole = torch.zeros_like(start)
        whole[block] = piece
        return hessian(hessian(whole))[block]

    return math.sqrt(symmetric_norm(squared, start[block], steps=steps))
