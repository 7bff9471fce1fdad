"""How a sweep is watched: a live bar on a terminal, one line per run elsewhere, only bad runs when quiet."""

import sys
import time
from collections.abc import Callable, Collection, Sequence
from typing import Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from crosshatch.cli.pipes import say
from crosshatch.report.units import human_seconds
from crosshatch.sweeps.course import SweepListener
from crosshatch.sweeps.jobs import Ended, Work


class SweepPace:
    """How far a sweep is and how long the rest may take, counted in rounds of all runs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self._done: dict[str, int] = {}
        self._before = 0  # rounds that an earlier start has done
        self._heard: set[str] = set()
        self._known, self.total = 0, 0  # rounds of all runs that are known, and with those expected to follow
        self.runs, self.ended, self.bad = 0, 0, 0

    @property
    def done(self) -> int:
        return sum(self._done.values())

    @property
    def left(self) -> float | None:
        """Seconds, or None while there is nothing to go by."""
        here = self.done - self._before
        return (self._clock() - self._started) / here * (self.total - self.done) if here > 0 else None

    def begin(self, jobs: Sequence[Work], finished: Collection[str], rounds_after: int) -> None:
        """Runs that go on, or others: what earlier runs took says nothing about those."""
        names = {job.name for job in jobs}
        if names.isdisjoint(self._done):
            self._started, self._before, self._done = self._clock(), 0, {}
        for job in jobs:
            if job.name in finished:
                self._before += job.rounds - self._done.get(job.name, 0)
                self._done[job.name] = job.rounds
        others = sum(rounds for name, rounds in self._done.items() if name not in names)
        self._known = others + sum(job.rounds for job in jobs)
        self.total = self._known + rounds_after
        self.runs, self.ended, self.bad = len(jobs), len(finished), 0
        self._heard.clear()

    def more(self, jobs: Sequence[Work], finished: Collection[str]) -> None:
        """Runs that were not known when it began; rounds that were expected to follow may have been theirs."""
        for job in jobs:
            if job.name in finished:
                self._before += job.rounds
                self._done[job.name] = job.rounds
                self.ended += 1
        self._known += sum(job.rounds for job in jobs)
        self.total = max(self.total, self._known)
        self.runs += len(jobs)

    def advance(self, job: Work, rounds: int) -> None:
        """What a job says first is where it went on from."""
        if job.name not in self._heard:
            self._before += rounds - self._done.get(job.name, 0)
            self._heard.add(job.name)
        self._done[job.name] = rounds

    def end(self, job: Work, ended: Ended) -> None:
        """Whatever a run that ended early leaves out is not left to do."""
        self.ended += 1
        self.bad += ended.state in ("diverged", "refused", "failed")
        if ended.state != "finished":
            never = job.rounds - self._done.get(job.name, 0)
            self.total, self._known = self.total - never, self._known - never
        else:
            self._done[job.name] = job.rounds


class SweepLines(SweepListener):
    """A line per run that ends."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._pace = SweepPace()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def begin(
        self, jobs: Sequence[Work], finished: Collection[str], *, rung: int, rungs: int, rounds_after: int
    ) -> None:
        """Say how much there is to do."""
        self._pace.begin(jobs, finished, rounds_after)
        if not self._quiet:
            say(opening(jobs, finished, rung, rungs), self._stream)

    def more(self, jobs: Sequence[Work], finished: Collection[str]) -> None:
        self._pace.more(jobs, finished)

    def advance(self, job: Work, rounds: int) -> None:
        """Nothing between the ends of runs."""
        self._pace.advance(job, rounds)

    def ended(self, job: Work, ended: Ended) -> None:
        """How, and the time left."""
        self._pace.end(job, ended)
        if self._quiet:
            if ended.why:
                say(f"warning: {job.name} {_words(ended)}", sys.stderr)
            return
        left = self._pace.left
        more = (
            f"  left {human_seconds(round(left, 1))}" if left is not None and self._pace.ended < self._pace.runs else ""
        )
        width = len(str(self._pace.runs))
        say(f"{self._pace.ended:>{width}}/{self._pace.runs}  {job.name} {_words(ended)}{more}", self._stream)


class SweepBar(SweepListener):
    """A live bar over the rounds of all runs; what ended badly stays above it."""

    def __init__(self, console: Console) -> None:
        self._pace = SweepPace()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[words]}", markup=False),
            console=console,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(
        self, jobs: Sequence[Work], finished: Collection[str], *, rung: int, rungs: int, rounds_after: int
    ) -> None:
        self._pace.begin(jobs, finished, rounds_after)
        self._print(opening(jobs, finished, rung, rungs))
        if self._task is None:
            self._task = self._progress.add_task("sweep", words="")
        self._update()

    def more(self, jobs: Sequence[Work], finished: Collection[str]) -> None:
        self._pace.more(jobs, finished)
        self._update()

    def advance(self, job: Work, rounds: int) -> None:
        self._pace.advance(job, rounds)
        self._update()

    def ended(self, job: Work, ended: Ended) -> None:
        """Move on, and keep a bad end in sight."""
        self._pace.end(job, ended)
        if ended.why:
            self._print(f"{job.name} {_words(ended)}")
        self._update()

    def _print(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _update(self) -> None:
        assert self._task is not None
        pace = self._pace
        words = [f"{pace.ended}/{pace.runs} runs"]
        words += [f"{pace.bad} bad"] if pace.bad else []
        words += [] if pace.left is None else [f"left {human_seconds(round(pace.left, 1))}"]
        self._progress.update(self._task, total=pace.total, completed=pace.done, words="  ".join(words))


def choose_listener(*, quiet: bool) -> SweepLines | SweepBar:
    """The one that fits where the output goes."""
    return SweepBar(Console()) if sys.stdout.isatty() and not quiet else SweepLines(sys.stdout, quiet=quiet)


def opening(jobs: Sequence[Work], finished: Collection[str], rung: int, rungs: int) -> str:
    """What is about to be run."""
    begin = f"{len(jobs)} runs" if rungs == 1 else f"rung {rung + 1} of {rungs}: {len(jobs)} runs to {_rounds(jobs)}"
    return begin + (f", {len(finished)} of which have finished" if finished else "")


def _rounds(jobs: Sequence[Work]) -> str:
    least, most = min(job.rounds for job in jobs), max(job.rounds for job in jobs)
    return f"round {most}" if least == most else f"rounds {least} to {most}"


def _words(ended: Ended) -> str:
    if ended.state == "diverged":
        return f"diverged {ended.why}"
    return f"{ended.state}: {ended.why}" if ended.why else ended.state
