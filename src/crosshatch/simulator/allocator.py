"""Freed memory stays inside the process.

glibc hands large blocks back to the system as soon as they are freed and asks for them again at the next step; the
page faults were 36-40% of a convolution or LSTM step. Three settings of its allocator stop that; elsewhere than on
Linux with glibc this does nothing.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

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
