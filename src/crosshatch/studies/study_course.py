"""How a study is carried out: step sizes with the first seed, chosen by the validation rows, then all seeds at these.

Its runs are those of a sweep whose points are a method and a step size each: on the same executors, in the same kind of
folder, and a run that has finished is never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosshatch.report.runs import Run
from crosshatch.runs.config import part_files
from crosshatch.runs.stopping import Stop
from crosshatch.studies.methods import Method
from crosshatch.sweeps.choice import Choice, parse_choice
from crosshatch.sweeps.course import Listener, carry_out
from crosshatch.sweeps.grid import Axis, Seeds, point_names
from crosshatch.sweeps.jobs import Executor
from crosshatch.sweeps.results import PointResult, ranked
from crosshatch.sweeps.sweep import Point, Sweep
from crosshatch.sweeps.widen import beyond
from crosshatch.task.directions import directions

STEP_SIZES = ("0.03", "0.1", "0.3", "1")
WIDEN = 3
"""So many more step sizes at most for a method whose best one was at the edge."""


@dataclass(frozen=True)
class MethodRuns:
    """A method at the step size that was chosen for it: a run per seed; `why` it has none."""

    method: Method
    step: str = ""
    runs: tuple[Run, ...] = ()
    tried: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Course:
    """What is to be run: methods, the step sizes to begin with, and seeds."""

    methods: tuple[Method, ...]
    steps: tuple[str, ...]
    seeds: Seeds
    name: str

    @property
    def choice(self) -> Choice:
        """By what rounds and step sizes are told apart."""
        evaluate = self.methods[0].config.evaluate
        return parse_choice(f"best validation {evaluate.best_by}", directions(evaluate.higher_is_better))

    def steps_of(self, method: Method) -> tuple[str, ...]:
        """Those to try, the one in the config among them."""
        given = () if method.given is None else (method.given,)
        numbers = [float(one) for one in self.steps]
        own = tuple(one for one in given if one == "as given" or float(one) not in numbers)
        return (*self.steps, *own)

    def sweep(self, tried: Mapping[str, Sequence[str]], seeds: Seeds) -> Sweep:
        """All methods at the step sizes named for each."""
        pairs = [(method, step) for method in self.methods for step in tried[method.name]]
        axes = (Axis("method", ()), Axis("step_size", ()))
        values = [(method.name, step) for method, step in pairs]
        named = [(name.replace(" ", "-"), step.replace(" ", "-")) for name, step in values]
        configs = [method.at(step) for method, step in pairs]
        made = [
            Point(name, value, config)
            for name, value, config in zip(point_names(axes, named), values, configs, strict=True)
        ]
        return Sweep(axes, tuple(made), seeds, self.choice, False, self.name, part_files(*configs).read())

    def run(
        self, out: Path, folder: Path | None, *, executor: Executor, listener: Listener, stop: Stop
    ) -> tuple[MethodRuns, ...] | None:
        """All of it; None where it was stopped before the end."""
        first = Seeds(self.seeds.numbers[:1], self.seeds.added)
        tried = {method.name: list(self.steps_of(method)) for method in self.methods}
        order: dict[str, list[PointResult]] = {}
        for _ in range(WIDEN + 1):
            outcome = carry_out(self.sweep(tried, first), out, folder, executor=executor, listener=listener, stop=stop)
            if outcome.stopped:
                return None
            order = {name: _ranked(outcome.results, name, outcome.choice) for name in tried}
            wider = {name: _next_step(steps, order[name][0]) for name, steps in tried.items()}
            if not any(wider.values()):
                break
            tried = {name: [*steps, *([one] if (one := wider[name]) else [])] for name, steps in tried.items()}
        return self._with_all_seeds(order, out, folder, executor=executor, listener=listener, stop=stop)

    def _with_all_seeds(
        self,
        order: Mapping[str, Sequence[PointResult]],
        out: Path,
        folder: Path | None,
        *,
        executor: Executor,
        listener: Listener,
        stop: Stop,
    ) -> tuple[MethodRuns, ...] | None:
        """Each method at its best step size; where a seed diverges there, at the next best."""
        place = dict.fromkeys(order, 0)
        while True:
            steps = {name: [order[name][at].point.values[1]] for name, at in place.items()}
            outcome = carry_out(
                self.sweep(steps, self.seeds), out, folder, executor=executor, listener=listener, stop=stop
            )
            if outcome.stopped:
                return None
            found = {result.point.values[0]: result for result in outcome.results}
            again = [
                name
                for name, at in place.items()
                if any(one.ended.state == "diverged" for one in found[name].runs)
                and at + 1 < len(order[name])
                and order[name][at + 1].rows
            ]
            if not again:
                tried = {name: tuple(one.point.values[1] for one in each) for name, each in order.items()}
                return tuple(_made(method, found[method.name], tried[method.name]) for method in self.methods)
            place |= {name: place[name] + 1 for name in again}


def _ranked(results: Sequence[PointResult], name: str, choice: Choice) -> list[PointResult]:
    own = [result for result in results if result.point.values[0] == name]
    return own if choice.metric is None else ranked(own, choice)


def _next_step(steps: Sequence[str], best: PointResult) -> str | None:
    """Beyond the edge that was best; below the least where no run came to anything, as they do that diverge."""
    numbers = [step for step in steps if step != "as given"]
    at = best.point.values[1] if best.rows else min(numbers, key=float)
    return beyond(numbers, at)


def _made(method: Method, result: PointResult, tried: tuple[str, ...]) -> MethodRuns:
    runs = [one.run for one in result.runs if one.row is not None and one.run is not None]
    step = result.point.values[1]
    if len(runs) < len(result.runs):
        return MethodRuns(method, step, (), tried, f"{result.remark}: {result.why}")
    return MethodRuns(method, step, tuple(runs), tried)
