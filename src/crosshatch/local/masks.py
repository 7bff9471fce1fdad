"""The random numbers of blocks that draw some (Dropout): a client's own, whoever else is at work.

They follow from the seed, the round, the number of the local step in it, the silo, and the client's number there. The
values a client sends for the s-th part of a batch have those of step s, which is the first to use that part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from crosshatch.seeds import torch_seed


@contextmanager
def own_masks(seed: tuple[int, ...], silo: int, client: int) -> Iterator[None]:
    """Torch's generator as a client has it for one pass over all its rows; left as it was afterwards.

    `seed`: the run's (or the group's) seed, the round, and the local step.
    """
    with torch.random.fork_rng(devices=[]):
        run, *numbers = seed
        torch.manual_seed(torch_seed(run, "dropout", *numbers, silo, client))
        yield
