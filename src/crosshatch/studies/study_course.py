"""How a study is carried out: step sizes with the first seed, chosen by the validation rows, then all seeds at these.

Its runs are those of a sweep whose points are a method and a step size each: on the same executors, in the same kind of
folder, and a run that has finished is never repeated. Every method is a plan that asks for runs and, by what these came
to, for others. No plan waits for another, so cores are idle only where no plan has anything left to ask for.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosshatch.report.runs import Run
from crosshatch.runs.config import part_files
from crosshatch.runs.stopping import Stop
from crosshatch.studies.methods import StudiedMethod
from crosshatch.sweeps.choice import Choice, parse_choice
from crosshatch.sweeps.course import SweepListener, ends, measured
from crosshatch.sweeps.grid import Axis, Seeds, point_names
from crosshatch.sweeps.jobs import Ended, Executor, Job, WorkItem
from crosshatch.sweeps.results import PointResult, ranked
from crosshatch.sweeps.sweep import Point, Sweep
from crosshatch.sweeps.widen import beyond
from crosshatch.task.directions import directions

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
        for work, ended in ends(self.executor, self.listener, self.stop):
            self._hear(work, ended)
        return not self.stop.requested

    def _hear(self, work: WorkItem, ended: Ended) -> None:
        asked = next((one for one in self._waiting if any(job.name == work.name for job in one.all_jobs)), None)
        if asked is not None:
            ended = replace(ended, why=asked.sweep.blaming_originals(ended.why, self.out))
        self.ended[work.name] = ended
        self.listener.ended(work, ended)
        if asked is not None and not self._missing(asked) and not self.stop.requested:
            self._waiting.remove(asked)
            self._go_on(asked, asked.all_jobs)

    def _go_on(self, asked: _PlannedSweep, told_of: Sequence[Job]) -> None:
        """Hand out what a plan has asked for; where all of that has ended, ask it what is next."""
        known = {job.name for job in told_of}
        while not (missing := self._missing(asked)):
            try:
                found = measured(asked.sweep.points, asked.jobs, self.ended, asked.sweep.choice)[1]
                sweep = asked.plan.send(tuple(found.values()))
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


STEP_SIZES = ("0.03", "0.1", "0.3", "1")
WIDEN = 3
"""So many more step sizes at most for a method whose best one was at the edge."""


@dataclass(frozen=True)
class MethodRuns:
    """A method at the step size that was chosen for it: a run per seed; `why` it has none."""

    method: StudiedMethod
    step: str = ""
    runs: tuple[Run, ...] = ()
    tried: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class StudyCourse:
    """What is to be run: methods, the step sizes to begin with, and seeds."""

    methods: tuple[StudiedMethod, ...]
    steps: tuple[str, ...]
    seeds: Seeds
    name: str

    @property
    def choice(self) -> Choice:
        """By what rounds and step sizes are told apart."""
        evaluate = self.methods[0].config.evaluate
        return parse_choice(f"best validation {evaluate.best_by}", directions(evaluate.higher_is_better))

    def run(self, desk: StudyDesk, beside: Sequence[WorkItem]) -> tuple[MethodRuns, ...] | None:
        """All of it, and what is computed beside; None where it was stopped before the end."""
        found: dict[str, MethodRuns] = {}
        longest_first = sorted(self.methods, key=lambda method: -method.config.run.rounds)
        after = (len(self.seeds.numbers) - 1) * sum(method.config.run.rounds for method in self.methods)
        if not desk.carry_out([self._plan(method, found) for method in longest_first], beside, after):
            return None
        return tuple(found[method.name] for method in self.methods)

    def _plan(self, method: StudiedMethod, found: dict[str, MethodRuns]) -> Plan:
        """Step sizes with the first seed, then all seeds at the best; where one diverges there, at the next best."""
        first = Seeds(self.seeds.numbers[:1], self.seeds.added)
        own, known = method.given, {float(one) for one in self.steps}
        tried = [*self.steps, *([own] if own is not None and (own == "as given" or float(own) not in known) else [])]
        for _ in range(WIDEN + 1):
            order = ranked((yield self._sweep(method, tried, first)), self.choice)
            numbers = [step for step in tried if step != "as given"]
            # below the least where no run came to anything, as they do that diverge
            at = order[0].point.values[1] if order[0].rows else min(numbers, key=float)
            further = beyond(numbers, at)
            if further is None:
                break
            tried.append(further)
        if all(one.ended.state == "refused" for result in order for one in result.runs):
            found[method.name] = _made(method, order[0], tuple(tried))  # a mistake in the config, with any seed
            return
        for best, next_best in zip(order, [*order[1:], None], strict=True):
            (result,) = yield self._sweep(method, [best.point.values[1]], self.seeds)
            diverged = any(one.ended.state == "diverged" for one in result.runs)
            if not diverged or next_best is None or not next_best.rows:
                found[method.name] = _made(method, result, tuple(one.point.values[1] for one in order))
                return

    def _sweep(self, method: StudiedMethod, steps: Sequence[str], seeds: Seeds) -> Sweep:
        """A method at these step sizes."""
        axes = (Axis("method", ()), Axis("step_size", ()))
        named = [(method.name.replace(" ", "-"), step.replace(" ", "-")) for step in steps]
        configs = [method.at(step) for step in steps]
        made = tuple(
            Point(name, (method.name, step), config)
            for name, step, config in zip(point_names(axes, named), steps, configs, strict=True)
        )
        return Sweep(axes, made, seeds, self.choice, False, self.name, part_files(*configs).read())


def _made(method: StudiedMethod, result: PointResult, tried: tuple[str, ...]) -> MethodRuns:
    runs = [one.run for one in result.runs if one.row is not None and one.run is not None]
    step = result.point.values[1]
    if len(runs) < len(result.runs):
        return MethodRuns(method, step, (), tried, f"{result.remark}: {result.why}")
    return MethodRuns(method, step, tuple(runs), tried)
