"""Several plans on one executor, each of which asks for runs and, by what these came to, for others.

No plan waits for another, so cores are idle only where no plan has anything left to ask for.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosshatch.runs.stopping import Stop
from crosshatch.sweeps.course import SweepListener, measured
from crosshatch.sweeps.jobs import Ended, Executor, Job, WorkItem
from crosshatch.sweeps.results import PointResult
from crosshatch.sweeps.sweep import Sweep

Plan = Generator[Sweep, tuple[PointResult, ...], None]
"""Asks for the runs of a sweep, gets its points' results in their order, and so on; it keeps what it finds itself."""


@dataclass(frozen=True)
class _PlannedSweep:
    """What a plan waits for: a sweep, and its jobs by point and seed."""

    plan: Plan
    sweep: Sweep
    jobs: Mapping[str, Mapping[int, Job]]

    @property
    def all_jobs(self) -> list[Job]:
        """In the order of the points."""
        return [job for many in self.jobs.values() for job in many.values()]


@dataclass
class StudyDesk:
    """Where plans are carried out: into the folder `out`, with the data in `folder`; how jobs ended, by their names."""

    out: Path
    folder: Path | None
    executor: Executor
    listener: SweepListener
    stop: Stop

    def __post_init__(self) -> None:
        self.ended: dict[str, Ended] = {}
        self._finished: set[str] = set()
        self._waiting: list[_PlannedSweep] = []

    def carry_out(self, plans: Sequence[Plan], beside: Sequence[WorkItem], rounds_after: int) -> bool:
        """All plans, and what is computed beside them, which begins first; False where it was stopped.

        About so many rounds follow those that plans ask for at first.
        """
        begun = [self._ask(plan, next(plan)) for plan in plans]
        jobs = [job for asked in begun for job in asked.all_jobs]
        self.listener.begin([*beside, *jobs], self._finished, rung=0, rungs=1, rounds_after=rounds_after)
        for work in beside:
            self.executor.submit(work)
        for asked in begun:
            self._go_on(asked, jobs)
        stopping = False
        for event in self.executor.events():
            if event is not None:
                self._hear(*event)
            if self.stop.requested and not stopping:
                stopping = True
                self.executor.stop()
        return not self.stop.requested

    def _hear(self, work: WorkItem, news: int | Ended) -> None:
        if not isinstance(news, Ended):
            self.listener.advance(work, news)
            return
        asked = next((one for one in self._waiting if any(job.name == work.name for job in one.all_jobs)), None)
        if asked is not None:
            news = replace(news, why=asked.sweep.blaming_originals(news.why, self.out))
        self.ended[work.name] = news
        self.listener.ended(work, news)
        if asked is not None and not self._missing(asked) and not self.stop.requested:
            self._waiting.remove(asked)
            self._go_on(asked, asked.all_jobs)

    def _go_on(self, asked: _PlannedSweep, told_of: Sequence[Job]) -> None:
        """Hand out what a plan has asked for; where all of that has ended, ask it what is next."""
        known = {job.name for job in told_of}
        while not (missing := self._missing(asked)):
            try:
                sweep = asked.plan.send(self._results(asked))
            except StopIteration:
                return
            asked = self._ask(asked.plan, sweep)
            fresh = [job for job in asked.all_jobs if job.name not in known]
            known |= {job.name for job in fresh}
            self.listener.more(fresh, self._finished)
        self._waiting.append(asked)
        for job in missing:
            self.executor.submit(job)

    def _ask(self, plan: Plan, sweep: Sweep) -> _PlannedSweep:
        jobs = {
            point.name: sweep.jobs(point, self.out, self.folder, point.config.run.rounds)
            for point in sweep.points
            if point.config is not None
        }
        asked = _PlannedSweep(plan, sweep, jobs)
        self._finished |= {job.name for job in asked.all_jobs if job.name not in self.ended and job.is_finished}
        return asked

    def _missing(self, asked: _PlannedSweep) -> list[Job]:
        return [job for job in asked.all_jobs if job.name not in self._finished and job.name not in self.ended]

    def _results(self, asked: _PlannedSweep) -> tuple[PointResult, ...]:
        _, found = measured(asked.sweep.points, asked.jobs, self.ended, asked.sweep.choice)
        return tuple(found.values())
