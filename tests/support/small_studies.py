"""Studies of a few rows, run here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np
import polars as pl

from crosshatch.runs.stopping import Stop
from crosshatch.studies.study_result import StudyResult
from crosshatch.studies.whole_study import read_study, run_study
from crosshatch.sweeps.course import SweepListener
from crosshatch.sweeps.jobs import Event, Executor, run_job

CONFIG = """
[data]
path = "{path}"
label = "y"
test_fraction = {test_fraction}
validation = 0.2
[federation]
labels = "bank"
silos = [{{ name = "bank", columns = ["b*"] }}, {{ name = "insurer", columns = ["i*"] }}]
[model]
block = "linear"
[algorithm]
name = "{algorithm}"
step_size = 1.0
[evaluate]
every = 5
metrics = ["auc", "loss"]
[run]
rounds = {rounds}
threads = 1
"""


class Here(Executor):
    """An executor without processes."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[str] = []

    def events(self) -> Iterator[Event | None]:
        while self._waiting:
            job = self._waiting.popleft()
            self.ran.append(job.name)
            yield job, run_job(job)


def shift_for(auc: float) -> float:
    """How far apart the means of two classes of deviation 1 are where the best score has this AUC."""
    return 2**0.5 * NormalDist().inv_cdf(auc)


def write_rows(path: Path, *, n: int, seed: int, alone: float, joint: float) -> None:
    """Balanced classes; the best score by the bank's columns has the AUC `alone`, by all columns `joint`."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    rng.shuffle(y)
    columns = {name: rng.normal(size=n) for name in ("b1", "b2", "b3", "i1", "i2", "i3")}
    columns["b1"] += y * shift_for(alone)
    columns["i1"] += y * np.sqrt(shift_for(joint) ** 2 - shift_for(alone) ** 2)
    pl.DataFrame({**columns, "y": y}).write_csv(path)


def write_config(folder: Path, *, test_fraction: float = 0.2, rounds: int = 15, algorithm: str = "fedsgd") -> Path:
    path = folder / "made.toml"
    path.write_text(CONFIG.format(path="rows.csv", test_fraction=test_fraction, rounds=rounds, algorithm=algorithm))
    return path


def study_here(
    config: Path, out: Path, *, seeds: str = "1", steps: tuple[str, ...] = ("1",), changes: Sequence[str] = ()
) -> StudyResult:
    """A whole study in this process."""
    asked = read_study(config, changes, seeds=seeds, steps=steps, folder=None)
    result = run_study(asked, out, None, executor=Here(), listener=SweepListener(), stop=Stop())
    assert result is not None
    return result
