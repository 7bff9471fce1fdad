"""Threads for long numbers: gmpy2 lets go of Python's lock while it computes, if it is asked to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import gmpy2

T = TypeVar("T")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "crosshatch-privacy", initializer=_let_go)


def _let_go() -> None:
    gmpy2.get_context().allow_release_gil = True


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def run_all(work: Sequence[Callable[[], T]], *, threads: int) -> list[T]:
    """Results in the order of `work`, whoever computed them."""
    if threads == 1 or len(work) <= 1:
        return [one() for one in work]
    return list(_pool(threads).map(lambda one: one(), work))
