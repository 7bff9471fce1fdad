"""How a sweep is carried out: jobs to an executor, bad runs marked, worse points ended early where that is asked."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosshatch.report.runs import Run, read_run
from crosshatch.runs.stopping import Stop, TimedStop
from crosshatch.sweeps.choice import Choice
from crosshatch.sweeps.jobs import Ended, Executor, Job, WorkItem
from crosshatch.sweeps.results import Apart, PointResult, RunResult, points_apart, ranked
from crosshatch.sweeps.sweep import Point, Sweep

ETA = 3  # a rung has so many times the rounds of the one before, and one point for so many of it
MOST_RUNGS = 3


class SweepListener:
    """Somebody to tell how a sweep goes; this one keeps it to itself."""

    def begin(
        self, jobs: Sequence[WorkItem], finished: Collection[str], *, rung: int, rungs: int, rounds_after: int
    ) -> None:
        """These jobs are the runs of a rung, of which some have finished; about so many rounds follow after it."""

    def more(self, jobs: Sequence[WorkItem], finished: Collection[str]) -> None:
        """These belong to it as well, which was not known before."""

    def advance(self, job: WorkItem, rounds: int) -> None:
        """A job has done so many rounds."""

    def ended(self, job: WorkItem, ended: Ended) -> None:
        """A job has ended so."""


@dataclass(frozen=True)
class SweepOutcome:
    """All points in the grid's order, and the choice with its metric; `stopped`: before all runs had ended.

    `left`: so many runs have not finished because the time was up; the others are compared all the same.
    """

    results: tuple[PointResult, ...]
    choice: Choice
    stopped: bool = False
    left: int = 0

    @property
    def best(self) -> PointResult | None:
        """The chosen point; None where no run came to a value, or where points go by other rows than others."""
        if self.apart.what:
            return None
        first = next(iter(self.ranked), None)
        return first if first is not None and first.rows else None

    @property
    def measured(self) -> bool:
        """Whether a run came to its end, be it by diverging."""
        return any(run.ended.state in ("finished", "diverged") for result in self.results for run in result.runs)

    @property
    def apart(self) -> Apart:
        """What keeps points from being ranked against each other."""
        return points_apart(self.results, self.choice)

    @property
    def failed(self) -> list[PointResult]:
        """The points that were refused or of which a run was or failed; divergence is a result like others."""
        states = {one.point.name: {run.ended.state for run in one.runs} for one in self.results}
        return [
            one for one in self.results if one.point.config is None or states[one.point.name] & {"refused", "failed"}
        ]

    @property
    def ranked(self) -> list[PointResult]:
        """The points that were run, the best first."""
        return [] if self.choice.metric is None else ranked(self.results, self.choice)


def carry_out(
    sweep: Sweep, out: Path, folder: Path | None, *, executor: Executor, listener: SweepListener, stop: Stop
) -> SweepOutcome:
    """Finish all runs that have not finished, rung after rung."""
    alive = [point for point in sweep.points if point.config is not None]
    results = {point.name: PointResult(point, ()) for point in sweep.points}
    rungs = _rungs(len(alive)) if sweep.halving else 1
    choice = sweep.choice
    for rung in range(rungs):
        own = {point.name: sweep.jobs(point, out, folder, _rounds(point, rung, rungs)) for point in alive}
        after = sum(_later_rounds(alive, rung, rungs)) * len(sweep.seeds.numbers)
        # seed by seed, so that the first runs to end are of all points
        jobs = [job for many in zip(*(found.values() for found in own.values()), strict=True) for job in many]
        finished = {job.name for job in jobs if job.is_finished}
        listener.begin(jobs, finished, rung=rung, rungs=rungs, rounds_after=after)
        ended = work_off(
            [job for job in jobs if job.name not in finished], executor, listener, stop,
            lambda why: sweep.blaming_originals(why, out),
        )  # fmt: skip
        timed_out = isinstance(stop, TimedStop) and stop.timed_out
        if stop.requested and not timed_out:
            return SweepOutcome(tuple(results.values()), choice, stopped=True)
        if timed_out:
            rest = [job for job in jobs if job.name not in finished and job.name not in ended]
            ended = {**ended, **{job.name: Ended("stopped") for job in rest}}
        choice, found = measured(alive, own, ended, choice)
        results |= found
        apart = points_apart(tuple(results.values()), choice).what
        if timed_out:
            left = sum(one.state == "stopped" for one in ended.values())
            return SweepOutcome(tuple(results.values()), choice, left=left)
        if rung + 1 < rungs and choice.metric is not None and not apart:
            order = ranked([results[point.name] for point in alive], choice)
            kept = {result.point.name for result in order[: math.ceil(len(alive) / ETA)]}
            for point in alive:
                results[point.name] = replace(results[point.name], dropped=point.name not in kept)
            alive = [point for point in alive if point.name in kept]
    return SweepOutcome(tuple(results.values()), choice)


def measured(
    points: Sequence[Point], jobs: Mapping[str, Mapping[int, Job]], ended: Mapping[str, Ended], choice: Choice
) -> tuple[Choice, dict[str, PointResult]]:
    """What the runs of these points came to, by the points' names, and the choice with its metric."""
    all_jobs = [job for many in jobs.values() for job in many.values()]
    read = {job.name: _read(job) for job in all_jobs if job.name not in ended or ended[job.name].state != "refused"}
    done = [run for run in read.values() if run is not None and run.finished]
    choice = choice.resolved(done[0]) if done else choice
    return choice, {
        point.name: PointResult(
            point,
            tuple(_result(job, ended.get(job.name), read.get(job.name), choice) for job in jobs[point.name].values()),
        )
        for point in points
    }


def work_off(
    jobs: Sequence[Job],
    executor: Executor,
    listener: SweepListener,
    stop: Stop,
    reword: Callable[[str], str] = lambda why: why,
    overdue: Callable[[WorkItem, Ended], bool] = lambda *_: False,
) -> dict[str, Ended]:
    """Finish all jobs; how each ended. No more are begun once one has ended that is `overdue`."""
    for job in jobs:
        executor.submit(job)
    found = {}
    for work, ended in ends(executor, listener, stop):
        found[work.name] = replace(ended, why=reword(ended.why))
        listener.ended(work, found[work.name])
        if overdue(work, ended):
            executor.stop()
    return found


def ends(executor: Executor, listener: SweepListener, stop: Stop) -> Iterator[tuple[WorkItem, Ended]]:
    """What was submitted, or is meanwhile, as it ends; the listener hears of rounds, the executor of a wish to stop."""
    asked = False
    for event in executor.events():
        if event is not None:
            work, news = event
            if isinstance(news, Ended):
                yield work, news
            else:
                listener.advance(work, news)
        if stop.requested and not asked:
            asked = True
            executor.stop()


def _read(job: Job) -> Run | None:
    """The run of a job, as far as it came; None where it wrote nothing."""
    path = Path(job.out)
    metrics = path / "metrics.jsonl"  # empty where a process ended before its first evaluation was written
    return read_run(path) if metrics.is_file() and b"\n" in metrics.read_bytes() else None


def _result(job: Job, ended: Ended | None, run: Run | None, choice: Choice) -> RunResult:
    if run is None or not run.finished:
        return RunResult(job, ended or Ended("failed"), run)
    if run.facts.diverged is not None:
        return RunResult(job, Ended("diverged", run.facts.diverged.why), run)
    return RunResult(job, Ended("finished"), run, None if choice.metric is None else choice.counted(run))


def _rungs(count: int) -> int:
    """As many as leave one point, but no more than three.

    >>> _rungs(1), _rungs(3), _rungs(4), _rungs(100)
    (1, 2, 3, 3)
    """
    rungs = 1
    while count > 1 and rungs < MOST_RUNGS:
        count, rungs = math.ceil(count / ETA), rungs + 1
    return rungs


def _rounds(point: Point, rung: int, rungs: int) -> int:
    """The rounds of a rung, up to an evaluation, so that a run which goes on is as if it had never paused."""
    assert point.config is not None
    rounds, every = point.config.run.rounds, point.config.evaluate.every
    share = math.ceil(rounds / math.pow(ETA, rungs - 1 - rung))
    return min(rounds, math.ceil(share / every) * every)


def _later_rounds(alive: Sequence[Point], rung: int, rungs: int) -> list[int]:
    """Of each point that will be left, roughly: which ones these are is not known yet."""
    found, count = [], len(alive)
    for later in range(rung + 1, rungs):
        count = math.ceil(count / ETA)
        found += [_rounds(point, later, rungs) - _rounds(point, later - 1, rungs) for point in alive[:count]]
    return found
