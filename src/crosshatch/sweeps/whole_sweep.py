"""A sweep from beginning to end, for the command and for Python: the runs, and the files about all of them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from crosshatch.errors import ConfigError, DivergenceError, RunError, TrainingError, in_python_words
from crosshatch.ray_connection import require_ray
from crosshatch.report.page import write_report
from crosshatch.report.pooled import pool_seeds
from crosshatch.runs.files import write_csv, write_json, write_whole, writing
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.run_settings import available_cores
from crosshatch.runs.stopping import Stop, stop_on_signals
from crosshatch.runs.tables.overrides import parse_value
from crosshatch.sweeps.course import SweepListener, SweepOutcome, carry_out
from crosshatch.sweeps.executors import LocalProcesses, RayCluster
from crosshatch.sweeps.grid import Bundles, split_values
from crosshatch.sweeps.jobs import Executor, tidy_printed
from crosshatch.sweeps.sweep import LACKING, Sweep, keep_sweep, read_sweep
from crosshatch.sweeps.table import sweep_story, table_rows
from crosshatch.sweeps.widen import require_edges, widened

if TYPE_CHECKING:
    import polars as pl

MOST_JOBS = 1024
_NOTHING: Mapping[str, Any] = MappingProxyType({})
MOST_ON_PAGE = 20  # points; more curves than that nobody tells apart
_MOST_NAMED = 5


@dataclass(frozen=True)
class Swept:
    """A sweep that is done: its folder, the config of the chosen point, and that point's values by their settings.

    `failed`: points that were refused or of which a run failed, and why; they were not compared, or not fully.
    """

    path: Path
    chosen: Path
    values: Mapping[str, Any]
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def table(self) -> pl.DataFrame:
        """One line per point: means and deviations over the seeds."""
        import polars as pl  # late: half a second that a command without tables need not wait

        return pl.read_csv(self.path / "table.csv")


@in_python_words()
def sweep(
    config: Path | str,
    grid: Mapping[str, Iterable[object]],
    *,
    out: Path | str,
    seeds: int | Sequence[int] = 1,
    choose: str | None = None,
    halving: bool = False,
    changes: Sequence[str] = (),
    jobs: int | None = None,
    ray: str | None = None,
    data: Path | str | None = None,
    pairs: Mapping[str, Iterable[object]] = _NOTHING,
    ranges: Mapping[str, tuple[float, float]] = _NOTHING,
    draws: int | None = None,
    widen: int = 0,
) -> Swept:
    """Train with all combinations of values and seeds, choose by the validation rows; `crosshatch sweep` in Python.

    The same call goes on with a sweep that was stopped. `jobs` run side by side, by default one per core. Points that
    fail are warned of. Values of `pairs` go together; of `ranges`, from the least to the largest, so many `draws` are
    taken; up to `widen` times a value beyond an edge that was chosen is tried.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "wine.toml")
    ...     written = path.write_text('data = {name = "wine", validation = 0.2}')
    ...     changes = ["algorithm.name=fedbcd", "run.rounds=5"]
    ...     sizes = {"algorithm.step_size": [0.01, 0.3]}
    ...     swept = sweep(path, sizes, changes=changes, out=Path(folder, "sizes"), jobs=1)
    ...     swept.values, swept.table.height
    ({'algorithm.step_size': 0.3}, 2)
    """
    path, out, folder = Path(config), Path(out), None if data is None else Path(data)
    texts, paired = ([f"{key}={','.join(_text(value) for value in values)}" for key, values in each.items()]
                     for each in (grid, pairs))  # fmt: skip
    bundles = Bundles(paired, [f"{key}={low:g}..{high:g}" for key, (low, high) in ranges.items()], draws)
    numbers = str(seeds) if isinstance(seeds, int) else ",".join(map(str, seeds))
    asked = read_sweep(
        path, changes, texts, seeds=numbers, choose=choose, halving=halving, folder=folder, bundles=bundles
    )
    require_edges(asked, widen)
    with choose_executor(asked.threads, jobs, ray, asked.workers) as executor, stop_on_signals() as stop:
        listener = SweepListener()
        asked, outcome = run_whole(asked, out, folder, executor=executor, listener=listener, stop=stop, widen=widen)
    if outcome.stopped:
        raise KeyboardInterrupt  # a signal asked for it; the runs under way have kept their checkpoints
    require_choice(outcome, out)
    assert outcome.best is not None
    values = [pair for pair in zip(asked.axes, outcome.best.point.values, strict=True) if pair[1] != LACKING]
    if outcome.failed:
        warnings.warn(failures(outcome, out), stacklevel=3)  # behind what rewords errors
    return Swept(
        out, out / "chosen.toml", {axis.key: parse_value(value) for axis, value in values},
        {result.point.name: result.why for result in outcome.failed},
    )  # fmt: skip


def choose_executor(threads: int | None, jobs: int | None, ray: str | None, workers: int | None = None) -> Executor:
    """Processes of this machine, as many as it has cores for runs of so many threads, or a Ray cluster.

    Runs with `workers` stay on this machine, where each has its own, or the cluster has those of all runs under way.
    """
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise ConfigError(f"--jobs {jobs}: at least 1 and at most {MOST_JOBS:,} runs side by side")
    if workers:
        require_ray(ray)
        side_by_side = 1 if ray is not None else max(1, available_cores() // (workers * (threads or 1)))
        return LocalProcesses(jobs or side_by_side, ray)
    if ray is not None:
        return RayCluster(ray, jobs)
    return LocalProcesses(jobs or max(1, available_cores() // (threads or 1)))


def run_whole(
    sweep: Sweep,
    out: Path,
    folder: Path | None,
    *,
    executor: Executor,
    listener: SweepListener,
    stop: Stop,
    widen: int = 0,
) -> tuple[Sweep, SweepOutcome]:
    """Run all that has not finished into the folder `out`, and write the table, the page and what is chosen.

    Up to `widen` times a value beyond an edge that was chosen is tried as well; the sweep that is returned has these.
    """
    with one_writer(out, "sweeping"):
        keep_sweep(sweep, out)
        outcome = carry_out(sweep, out, folder, executor=executor, listener=listener, stop=stop)
        for _ in range(widen):
            wider = None if outcome.stopped or outcome.left else widened(sweep, outcome)
            if wider is None:
                break
            sweep = wider
            outcome = carry_out(sweep, out, folder, executor=executor, listener=listener, stop=stop)
        if not outcome.stopped:
            _write(sweep, outcome, out)
    return sweep, outcome


def require_choice(outcome: SweepOutcome, out: Path) -> None:
    """Refuse where nothing can be chosen, in the words of the first run that went wrong."""
    if outcome.best is not None:
        return
    if what := outcome.apart.what:
        parts = "; ".join(", ".join(names) for names in outcome.apart.points)
        raise RunError(
            f"no point of the sweep in {out} is chosen: not all have the same {what}, and what was measured on others "
            f"cannot be ranked ({parts}): sweep over settings that leave them alone, into another --out"
        )
    runs = [run for result in outcome.results for run in result.runs]
    states = {run.ended.state for run in runs}
    if states == {"finished"}:
        raise RunError(f"no run reached the target of --choose '{outcome.choice.text}': choose by another, see {out}")
    first = next(run for run in runs if run.ended.state != "finished")
    message = (
        f"no run of the sweep in {out} ended well; the first, {first.job.name}, {first.ended.state}: {first.ended.why}"
    )
    raise (DivergenceError if "diverged" in states else TrainingError if "failed" in states else RunError)(message)


def failures(outcome: SweepOutcome, out: Path) -> str:
    """Which points have failed, and why the first did, in a line."""
    failed = outcome.failed
    names = [result.point.name or "the config" for result in failed]
    listed = ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else "")
    whose = f"{names[0]}: " if len(names) > 1 else ""
    text = (
        f"{len(failed)} of {len(outcome.results)} points failed: {listed} ({whose}"
        f"{failed[0].remark}: {failed[0].why}); see {out / 'table.csv'}"
    )
    return " ".join(text.split())


def _write(sweep: Sweep, outcome: SweepOutcome, out: Path) -> None:
    best = outcome.best
    with writing(out):
        write_csv(out / "table.csv", table_rows(sweep, outcome))
        if best is None:
            (out / "chosen.toml").unlink(missing_ok=True)
        else:
            text = sweep.chosen_text(best.point, outcome.choice)
            note = f"# {failures(outcome, out)}\n" if outcome.failed else ""
            write_whole(out / "chosen.toml", (note + text).encode())
        points, keys = outcome.results, [axis.key for axis in sweep.axes]
        write_json(out / "result.json", {
            "chosen": None if best is None else best.point.name,
            "chosen_by": outcome.choice.text if outcome.choice.metric is None else outcome.choice.title,
            "not_ranked": outcome.apart.points,
            "failed": {result.point.name: f"{result.remark}: {result.why}" for result in outcome.failed},
            "points": {one.point.name: dict(zip(keys, one.point.values, strict=True)) for one in points},
        })  # fmt: skip
        tidy_printed(out)
    shown = outcome.ranked[:MOST_ON_PAGE]
    runs = [
        # one seed only: the point is its run
        replace(result.run, name=point.point.name or result.run.name) if len(point.runs) == 1 else result.run
        for point in shown
        for result in point.runs
        if result.run is not None
    ]
    if runs:
        notes = [f"Failed: {result.point.name}, {result.why}." for result in outcome.failed]
        write_report(pool_seeds(runs), out / "report.html", notes=notes, story=sweep_story(sweep, outcome))


def _text(value: object) -> str:
    """A value as the command line has it.

    >>> [_text(value) for value in ("fedbcd", 0.3, True, [16, 8], "a,b", {"kind": "halving", "every": 5})]
    ['fedbcd', '0.3', 'true', '[16, 8]', '"a,b"', '{kind = "halving", every = 5}']
    """
    if isinstance(value, Mapping):
        pairs = (f"{key} = {_text(one) if not isinstance(one, str) else json.dumps(one)}" for key, one in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, str):
        return value if parse_value(value) == value and split_values(value) == [value] else json.dumps(value)
    return json.dumps(list(value) if isinstance(value, tuple) else value)
