"""Threads that take whole pieces of work each."""

from __future__ import annotations

import torch

from crosshatch.local.pool import _pool


def test_a_thread_keeps_to_one_inside_torch_whatever_is_set_meanwhile() -> None:
    """Also one that has computed nothing yet, as where another was faster to take all the work."""
    before = torch.get_num_threads()
    pool = _pool.__wrapped__(1)
    try:
        pool.submit(lambda: None).result()
        torch.set_num_threads(before + 1)  # the next run
        assert pool.submit(torch.get_num_threads).result() == 1
    finally:
        torch.set_num_threads(before)
        pool.shutdown()
