"""Tensors that lie one behind the other in memory, as one: silos gathered together are computed together, uncopied."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def follows(before: Tensor, after: Tensor) -> bool:
    """Whether `after` has the same shape and begins where `before` ends."""
    return (
        before.shape == after.shape
        and before.data_ptr() + before.nbytes == after.data_ptr()
        and before.untyped_storage().data_ptr() == after.untyped_storage().data_ptr()
        and before.is_contiguous()
        and after.is_contiguous()
    )


def stack(tensors: Sequence[Tensor]) -> Tensor:
    """Like `torch.stack`, without a copy where one follows the other."""
    first = tensors[0]
    if len(tensors) == 1:
        return first.unsqueeze(0)
    if not all(map(follows, tensors, tensors[1:])):
        return torch.stack(list(tensors))
    return first.as_strided((len(tensors), *first.shape), (first.numel(), *first.stride()))
