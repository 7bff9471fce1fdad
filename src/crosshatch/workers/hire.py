"""Workers for the time of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from crosshatch.data.dataset import Dataset
from crosshatch.errors import ConfigError
from crosshatch.simulator.simulator import Simulator
from crosshatch.workers.apart.load import RowsElsewhere, load_apart
from crosshatch.workers.crew import Crew, InlineWorkers
from crosshatch.workers.employ import employ, require_possible

Load = Callable[[Any, Path | None], Dataset]
"""Reads what a config names."""


@dataclass
class Hired:
    """Workers for one simulation, or nobody; they begin when they are first asked."""

    crew: Crew | None
    load: Load
    elsewhere: RowsElsewhere | None = None

    def compute(self, simulator: Simulator, warn: Callable[[str], None]) -> None:
        """Have them do so from now on; `warn` is told of what the run survives."""
        if self.crew is not None:
            self.crew.warn = warn
            require_possible(simulator)
            employ(simulator, self.crew, self.elsewhere)

    def load_apart(self, config: Any, _: Path | None) -> Dataset:
        """The data of a config, whose rows are read by the workers."""
        assert self.crew is not None
        dataset = load_apart(config, self.crew)
        assert isinstance(dataset.elsewhere, RowsElsewhere)
        self.elsewhere = dataset.elsewhere
        return dataset


@contextmanager
def hired(run: Any, threads: int, load: Load, ray: str | None = None) -> Iterator[Hired]:
    """Workers as the section [run] says: this process alone for 0 of them, nobody else for None.

    `load` reads the data, but for rows that workers read.
    """
    if run.workers is None or (run.workers == 0 and ray is not None):
        if ray is not None:
            raise ConfigError(f"--ray {ray} is for workers: say how many by --workers, or run.workers")
        yield Hired(None, load)
        return
    before = torch.get_num_threads()
    try:
        if run.workers == 0:
            yield _with(InlineWorkers(threads, run.pieces), run, load)
        else:
            from crosshatch.workers.ray_crew import RayWorkers  # late: Ray is an extra

            with RayWorkers(run.workers, threads=threads, address=ray, pieces=run.pieces) as many:
                yield _with(many, run, load)
    finally:
        torch.set_num_threads(before)


def _with(crew: Crew, run: Any, load: Load) -> Hired:
    found = Hired(crew, load)
    if run.load == "apart":
        found.load = found.load_apart
    return found
