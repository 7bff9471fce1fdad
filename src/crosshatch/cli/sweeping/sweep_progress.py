"""How a sweep is watched: a live bar on a terminal, one line per run elsewhere, only bad runs when quiet."""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from crosshatch.cli.pipes import say
from crosshatch.cli.progress import Shown
from crosshatch.report.printed_tables import print_line
from crosshatch.report.units import human_seconds
from crosshatch.sweeps.course import SweepListener
from crosshatch.sweeps.jobs import Ended, WorkItem


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

    def begin(self, jobs: Sequence[WorkItem], finished: Collection[str], rounds_after: int) -> None:
        """Runs that go on, or others: what earlier runs took says nothing about those."""
        names = {job.name for job in jobs}
        if names.isdisjoint(self._done):
            self._started, self._before, self._done = self._clock(), 0, {}
        self._known = sum(rounds for name, rounds in self._done.items() if name not in names)
        self.runs = self.ended = self.bad = 0
        self._heard.clear()
        self.more(jobs, finished)
        self.total = self._known + rounds_after

    def more(self, jobs: Sequence[WorkItem], finished: Collection[str]) -> None:
        """Runs that were not known when it began; rounds that were expected to follow may have been theirs."""
        for job in jobs:
            if job.name in finished:
                self._before += job.rounds - self._done.get(job.name, 0)
                self._done[job.name] = job.rounds
                self.ended += 1
        self._known += sum(job.rounds for job in jobs)
        self.total = max(self.total, self._known)
        self.runs += len(jobs)

    def advance(self, job: WorkItem, rounds: int) -> None:
        """What a job says first is where it went on from."""
        if job.name not in self._heard:
            self._before += rounds - self._done.get(job.name, 0)
            self._heard.add(job.name)
        self._done[job.name] = rounds

    def end(self, job: WorkItem, ended: Ended) -> None:
        """Whatever a run that ended early leaves out is not left to do."""
        self.ended += 1
        self.bad += ended.state in ("diverged", "refused", "failed")
        if ended.state != "finished":
            never = job.rounds - self._done.get(job.name, 0)
            self.total, self._known = self.total - never, self._known - never
        else:
            self._done[job.name] = job.rounds


class _Watching(Shown, SweepListener, ABC):
    """Counts what is done; a class below shows it."""

    def __init__(self, bar: Progress | None = None) -> None:
        super().__init__(bar)
        self._pace = SweepPace()

    def begin(
        self, jobs: Sequence[WorkItem], finished: Collection[str], *, rung: int, rungs: int, rounds_after: int
    ) -> None:
        """Say how much there is to do."""
        self._pace.begin(jobs, finished, rounds_after)
        self._print(opening(jobs, finished, rung, rungs))
        self._update()

    def more(self, jobs: Sequence[WorkItem], finished: Collection[str]) -> None:
        self._pace.more(jobs, finished)
        self._update()

    def advance(self, job: WorkItem, rounds: int) -> None:
        self._pace.advance(job, rounds)
        self._update()

    @property
    def _left(self) -> str:
        left = self._pace.left
        return "" if left is None else f"left {human_seconds(round(left, 1))}"

    @abstractmethod
    def _print(self, line: str) -> None: ...

    def _update(self) -> None:
        """Show how far it is, where that is shown between the ends of runs."""


class SweepLines(_Watching):
    """A line per run that ends; when `quiet`, only of those that ended badly."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        super().__init__()
        self._stream, self._quiet = stream, quiet

    def ended(self, job: WorkItem, ended: Ended) -> None:
        """How, and the time left."""
        pace = self._pace
        pace.end(job, ended)
        if self._quiet and ended.why:
            say(f"warning: {job.name} {_words(ended)}", sys.stderr)
        left = f"  {self._left}" if self._left and pace.ended < pace.runs else ""
        self._print(f"{pace.ended:>{len(str(pace.runs))}}/{pace.runs}  {job.name} {_words(ended)}{left}")

    def _print(self, line: str) -> None:
        if not self._quiet:
            say(line, self._stream)


class SweepBar(_Watching):
    """A live bar over the rounds of all runs; what ended badly stays above it."""

    def __init__(self, console: Console) -> None:
        words = TextColumn("{task.fields[words]}", markup=False)
        self._progress = Progress(TextColumn("{task.description}"), BarColumn(bar_width=24), words, console=console)
        super().__init__(self._progress)
        self._task: TaskID | None = None

    def ended(self, job: WorkItem, ended: Ended) -> None:
        """Move on, and keep a bad end in sight."""
        self._pace.end(job, ended)
        if ended.why:
            self._print(f"{job.name} {_words(ended)}")
        self._update()

    def _print(self, line: str) -> None:
        print_line(self._progress.console, line)

    def _update(self) -> None:
        if self._task is None:
            self._task = self._progress.add_task("sweep", words="")
        pace = self._pace
        words = [f"{pace.ended}/{pace.runs} runs", f"{pace.bad} bad" if pace.bad else "", self._left]
        self._progress.update(self._task, total=pace.total, completed=pace.done, words="  ".join(filter(None, words)))


def choose_listener(*, quiet: bool) -> SweepLines | SweepBar:
    """The one that fits where the output goes."""
    return SweepBar(Console()) if sys.stdout.isatty() and not quiet else SweepLines(sys.stdout, quiet=quiet)


def opening(jobs: Sequence[WorkItem], finished: Collection[str], rung: int, rungs: int) -> str:
    """What is about to be run."""
    begin, least, most = f"{len(jobs)} runs", *(pick((job.rounds for job in jobs), default=0) for pick in (min, max))
    if rungs > 1:
        until = f"round {most}" if least == most else f"rounds {least} to {most}"
        begin = f"rung {rung + 1} of {rungs}: {begin} to {until}"
    return begin + (f", {len(finished)} of which have finished" if finished else "")


def _words(ended: Ended) -> str:
    if ended.state == "diverged":
        return f"diverged {ended.why}"
    return f"{ended.state}: {ended.why}" if ended.why else ended.state
