"""Executors of sweeps that run nothing, or everything here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from crosshatch.runs.stopping import Stop
from crosshatch.sweeps.course import SweepListener, SweepOutcome, carry_out
from crosshatch.sweeps.jobs import Ended, Event, Executor, Job, run_job
from crosshatch.sweeps.sweep import Sweep, keep_sweep, read_sweep

CONFIG = """
[data]
name = "wine"
validation = 0.2
[federation]
silos = 2
[algorithm]
name = "fedbcd"
local_steps = 2
step_size = 0.1
batch_size = 32
[evaluate]
every = 2
[run]
rounds = 18
seed = 4
"""


class Here(Executor):
    """Works off one job after the other; `instead` may say how one ends without being run."""

    def __init__(self, instead: Callable[[Job], Ended | None] = lambda _: None) -> None:
        super().__init__()
        self.ran: list[tuple[str, int]] = []
        self._instead = instead

    def events(self) -> Iterator[Event | None]:
        while self._waiting:
            job = self._waiting.popleft()
            assert isinstance(job, Job)
            self.ran.append((job.name, job.rounds))
            yield job, self._instead(job) or run_job(job)


class Bench:
    """Sweeps of one config in one folder."""

    def __init__(self, home: Path) -> None:
        self.config, self.out = home / "small.toml", home / "out"
        self.config.write_text(CONFIG)

    def read(
        self,
        *grid: str,
        changes: Sequence[str] = (),
        seeds: str = "1",
        choose: str | None = None,
        halving: bool = False,
    ) -> Sweep:
        """What the command line would make of this."""
        return read_sweep(self.config, changes, grid, seeds=seeds, choose=choose, halving=halving, folder=None)

    def run(self, sweep: Sweep, executor: Here | None = None) -> SweepOutcome:
        """To the end."""
        self.out.mkdir(exist_ok=True)
        keep_sweep(sweep, self.out)
        return carry_out(sweep, self.out, None, executor=executor or Here(), listener=SweepListener(), stop=Stop())
