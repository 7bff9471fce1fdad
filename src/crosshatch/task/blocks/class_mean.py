"""The class mean of a transfer task, in the place of a head."""

import torch
from torch import Tensor, nn


class ClassMean(nn.Module):
    """Phi_A (d,): of embeddings (n, e) the columns from `low` on are u_B (n, d), the scores (n, 1) are u_B . Phi_A.

    Its numbers follow from the block of the silo with the labels; see `crosshatch.transfer.objective`.

    >>> ClassMean(3)(torch.ones(2, 3)).shape
    torch.Size([2, 1])
    """

    def __init__(self, width: int, low: int = 0) -> None:
        super().__init__()
        self.low = low
        self.mean = nn.Parameter(torch.zeros(width))

    def forward(self, embeddings: Tensor) -> Tensor:
        return embeddings[..., self.low : self.low + len(self.mean)] @ self.mean.unsqueeze(-1)
