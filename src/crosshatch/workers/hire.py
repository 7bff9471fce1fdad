"""Workers for the time of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from crosshatch.errors import ConfigError
from crosshatch.simulator.simulator import Simulator
from crosshatch.workers.crew import InlineWorkers
from crosshatch.workers.employ import employ, require_possible


@contextmanager
def hired(
    simulator: Simulator, workers: int | None, threads: int | None, pieces: int, ray: str | None = None
) -> Iterator[None]:
    """Workers for this simulation: this process alone for 0 of them, nobody else for None."""
    if workers is None or (workers == 0 and ray is not None):
        if ray is not None:
            raise ConfigError(f"--ray {ray} is for workers: say how many by --workers, or run.workers")
        yield
        return
    require_possible(simulator)
    before, each = torch.get_num_threads(), threads or 1
    try:
        if workers == 0:
            employ(simulator, InlineWorkers(each, pieces))
            yield
        else:
            from crosshatch.workers.ray_crew import RayWorkers  # late: Ray is an extra

            with RayWorkers(workers, threads=each, address=ray, pieces=pieces) as many:
                employ(simulator, many)
                yield
    finally:
        torch.set_num_threads(before)
