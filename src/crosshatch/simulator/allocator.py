"""Where tensors lie: freed memory stays inside the process, and weights lie as a resumed run has them.

glibc hands large blocks back to the system as soon as they are freed and asks for them again at the next step; the
page faults were 36-40% of a convolution or LSTM step. Three settings of its allocator stop that; elsewhere than on
Linux with glibc this does nothing.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import torch
from torch import Tensor

ALIGNMENT = 64  # bytes; how torch lays out memory of its own
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4


@cache
def keep_freed_memory() -> bool:
    """Tell the allocator once per process; whether it took the settings."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False  # another C library
    settings = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_TOP_PAD, 64 * 2**20))
    return all(mallopt(name, value) == 1 for name, value in settings)


def aligned(tensor: Tensor) -> Tensor:
    """The tensor itself where it lies as a copy would, else a copy: kernels may round differently elsewhere."""
    if tensor.data_ptr() % ALIGNMENT == 0 and tensor.is_contiguous():
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)
