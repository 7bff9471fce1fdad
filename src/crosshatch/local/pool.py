"""Threads for work that torch does not spread well itself: each takes whole pieces, with one thread inside torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

_NAME = "crosshatch"
T = TypeVar("T")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Kept for the life of the process: telling torch about its threads throws away the kernels it prepared."""
    return ThreadPoolExecutor(threads, _NAME, initializer=_take_one_thread)


def _take_one_thread() -> None:
    """One thread inside torch for good: a thread that never asked takes the number last set anywhere, at its first sum.

    By then that may be the next run's, and gradients are added up in another order.
    """
    torch.get_num_threads()
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def run_each(work: Sequence[Callable[[], T]], *, threads: int) -> Iterator[T]:
    """The results one by one, so that each can be used up before the next is there.

    With one thread, with one piece of work, or inside other work, this thread does it: threads that wait for each other
    would block.
    """
    if threads == 1 or len(work) <= 1 or threading.current_thread().name.startswith(_NAME):
        return (one() for one in work)
    grad = torch.is_grad_enabled()  # each thread has its own

    def run(one: Callable[[], T]) -> T:
        with torch.set_grad_enabled(grad):
            return one()

    return _pool(threads).map(run, work)
