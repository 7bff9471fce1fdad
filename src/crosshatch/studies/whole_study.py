"""A study from beginning to end, for the command and for Python: the runs, the yardsticks, and what all of it says.

study.json        what was asked, so that the same command goes on with it and another is refused
fingerprint.json  which data it was started on: it does not go on with others
runs/             a run directory per method, step size and seed
yardsticks/       the scores of boosted trees
scores.csv        labels and scores of all validation and test rows, by method and seed
table.csv         one line per method, with intervals
result.json       the sentences, the differences behind them, and what each silo contributes
report.html       all of it on a page
chosen.toml       the config of the federation with its step size; `crosshatch train chosen.toml` runs it
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from crosshatch.data.federated import FederatedData
from crosshatch.data.identity.fingerprint import Fingerprint
from crosshatch.data.sources import require_sources
from crosshatch.errors import ConfigError, TrainingError, in_python_words
from crosshatch.report.measures import main_metric
from crosshatch.runs.config import Config, config_text, read_config
from crosshatch.runs.files import write_csv, write_json, write_whole, writing
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.stopping import Stop, stop_on_signals
from crosshatch.studies.intervals import judge, read_kept, scores_rows
from crosshatch.studies.methods import methods, prepare_study
from crosshatch.studies.study_course import STEP_SIZES, MethodRuns, StudyCourse, StudyDesk
from crosshatch.studies.study_folder import keep_study, require_same_data
from crosshatch.studies.study_result import YARDSTICKS, Conclusion, StudyResult, verdict
from crosshatch.studies.study_tables import table_rows, write_page
from crosshatch.studies.yardsticks import Yardstick, yardsticks
from crosshatch.sweeps.course import SweepListener
from crosshatch.sweeps.executors import load_ahead
from crosshatch.sweeps.grid import Seeds, parse_seeds
from crosshatch.sweeps.jobs import Ended, Executor, tidy_printed
from crosshatch.sweeps.whole_sweep import choose_executor
from crosshatch.task.directions import directions
from crosshatch.task.losses import Loss

if TYPE_CHECKING:
    import polars as pl

_OF_TWO_CLASSES = ("auc", "pr_auc", "gini", "ks", "brier", "f1", "precision", "recall", "accuracy", "loss")


@dataclass(frozen=True)
class StudyRequest:
    """What a study was asked for, and the config it is about."""

    config: Config
    seeds: Seeds
    steps: tuple[str, ...]
    data: FederatedData
    loss: Loss
    fingerprint: Fingerprint | None = None

    @property
    def silos(self) -> tuple[str, ...]:
        return tuple(silo.name for silo in self.data.silos if silo.train[0].numel())

    @property
    def course(self) -> StudyCourse:
        return StudyCourse(methods(self.config, self.silos), self.steps, self.seeds, self.config.name)


@dataclass(frozen=True)
class Studied:
    """A study that is done: its folder, what it says, and the config of the federation with the step size chosen."""

    path: Path
    verdict: Conclusion
    chosen: Path

    @property
    def table(self) -> pl.DataFrame:
        """One line per method: costs, metrics and where their intervals begin and end."""
        import polars as pl  # late: half a second that a command without tables need not wait

        return pl.read_csv(self.path / "table.csv")

    @property
    def scores(self) -> pl.DataFrame:
        """One line per validation and test row: its label, and its scores by every method and seed."""
        import polars as pl

        return pl.read_csv(self.path / "scores.csv")


@in_python_words()
def study(
    config: Path | str,
    *,
    out: Path | str,
    seeds: int | Sequence[int] = 5,
    steps: Sequence[float] | None = None,
    changes: Sequence[str] = (),
    jobs: int | None = None,
    ray: str | None = None,
    data: Path | str | None = None,
) -> Studied:
    """Each silo alone, all columns centrally and the federation on the same rows; `crosshatch study` in Python.

    The same call goes on with a study that was stopped. `steps` are the step sizes to begin with.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "wine.toml")
    ...     written = path.write_text('data = {name = "wine"}')
    ...     changes = ["algorithm.name=fedbcd", "run.rounds=4", "evaluate.every=2"]
    ...     found = study(path, changes=changes, out=Path(folder, "pays"), seeds=1, steps=[0.1, 0.3], jobs=1)
    ...     found.table["method"].to_list()[:4]
    ['silo1 alone', 'silo2 alone', 'central', 'fedsgd']
    """
    numbers = str(seeds) if isinstance(seeds, int) else ",".join(map(str, seeds))
    written = None if steps is None else [f"{step:g}" for step in steps]
    folder = None if data is None else Path(data)
    asked = read_study(Path(config), changes, seeds=numbers, steps=written, folder=folder, meanwhile=loading_ahead(ray))
    run = asked.config.run
    with choose_executor(run.threads, jobs, ray, run.workers) as executor, stop_on_signals() as stop:
        result = run_study(asked, Path(out), folder, executor=executor, listener=SweepListener(), stop=stop)
    if result is None:
        raise KeyboardInterrupt  # a signal asked for it; the runs under way have kept their checkpoints
    return Studied(Path(out), verdict(result), Path(out) / "chosen.toml")


def read_study(
    path: Path,
    changes: Sequence[str],
    *,
    seeds: str,
    steps: Sequence[str] | None,
    folder: Path | None,
    meanwhile: Callable[[], None] = lambda: None,
) -> StudyRequest:
    """A study from the options of the command line, refused where it cannot be run.

    `meanwhile` is called once the config is read, before the data are: something to begin that takes its time.
    """
    config, numbers, sizes = read_config(path, changes), parse_seeds(seeds), _steps(steps)
    require_sources(config.data, config.federation, folder)
    meanwhile()
    own = methods(config, ())[-1]
    return StudyRequest(config, numbers, sizes, *prepare_study(config, folder, own))


def loading_ahead(ray: str | None) -> Callable[[], None]:
    """What to begin while data are read: processes load their libraries, unless those of a cluster are to work."""
    return load_ahead if ray is None else lambda: None


def _steps(given: Sequence[str] | None) -> tuple[str, ...]:
    steps = STEP_SIZES if given is None else tuple(one.strip() for one in given)
    for step in steps:
        try:
            good = 0 < float(step) < math.inf
        except ValueError:
            good = False
        if not good:
            raise ConfigError(f"--steps {','.join(steps)}: '{step}' is not a positive number: write 0.03,0.1,0.3,1")
    if len({float(step) for step in steps}) < len(steps):
        raise ConfigError(f"--steps {','.join(steps)}: a step size stands there twice: leave one out")
    return steps


def run_study(
    asked: StudyRequest, out: Path, folder: Path | None, *, executor: Executor, listener: SweepListener, stop: Stop
) -> StudyResult | None:
    """Run all that has not finished into the folder `out` and write what it says; None where it was stopped."""
    with one_writer(out, "studying"):
        keep_study(asked.config, asked.seeds, asked.steps, asked.fingerprint, out)
        with writing(out):
            (out / YARDSTICKS).mkdir(exist_ok=True)
        trees = yardsticks(asked.config, asked.data, asked.silos, asked.fingerprint, out, folder)
        desk = StudyDesk(out, folder, executor, listener, stop)
        made = asked.course.run(desk, [one for one in trees if not one.path.is_file()])
        if made is None:
            return None
        return _conclude(asked, made, trees, desk.ended, out)


def _conclude(
    asked: StudyRequest, made: tuple[MethodRuns, ...], trees: Sequence[Yardstick], ended: Mapping[str, Ended], out: Path
) -> StudyResult:
    for run in (run for one in made for run in one.runs):
        require_same_data(asked.fingerprint, run.fingerprint, run.path)
    kept = {one.method.name: [read_kept(run.path) for run in one.runs] for one in made if one.runs}
    if not kept:
        raise TrainingError(f"no method of the study in {out} came to anything; the first: {made[0].why}")
    kept |= {one.name: [found] for one in trees if (found := one.read(asked.data)) is not None}
    without = tuple(f"{one.name} failed: {ended[one.name].why}" for one in trees if one.name not in kept)
    held = asked.silos
    run = next(run for one in made for run in one.runs)
    measured = tuple(run.config["evaluate"]["metrics"])
    metrics = _OF_TWO_CLASSES if asked.data.target == "binary" else measured
    judged = judge(kept, metrics, asked.loss)
    metrics = tuple(one for one in metrics if one in judged.values[next(iter(kept))])
    main = main_metric(tuple(one for one in measured if one in metrics) or metrics)
    known = directions(asked.config.evaluate.higher_is_better)
    base = _base(asked, made, known)
    result = StudyResult(
        made, judged, metrics, main, known[main], base, tuple(silo for silo in held if silo != base),
        len(asked.seeds.numbers), 0 if asked.data.y_validation is None else len(asked.data.y_validation),
        not asked.config.has_validation_rows, asked.course.choice.title, without,
    )  # fmt: skip
    with writing(out):
        write_csv(out / "scores.csv", scores_rows(kept, asked.seeds.beside(asked.config.run.seed)))
        write_csv(out / "table.csv", table_rows(result))
        write_json(out / "result.json", _described(result))
        tidy_printed(out)
        if result.federation.runs:
            write_whole(out / "chosen.toml", _chosen(result.federation).encode())
    write_page(result, out / "report.html")
    return result


def _base(asked: StudyRequest, made: Sequence[MethodRuns], known: dict[str, bool]) -> str:
    """The silo with the labels, or the one that is best alone on the validation rows."""
    alone = [one for one in made if one.method.kind == "alone" and one.runs]
    named = next((one.method.silo for one in alone if one.method.silo == asked.data.label_silo), None)
    if named is not None or not alone:
        return named or asked.data.silos[0].name
    metric = asked.course.choice.metric or ""
    sign = 1 if known[metric] else -1

    def value(one: MethodRuns) -> float:
        return sign * fmean(run.summary["best_round"][metric] for run in one.runs)

    return max(alone, key=value).method.silo


def _described(result: StudyResult) -> dict[str, Any]:
    said, own = verdict(result), result.federation.method.name
    pairs = [("central", f"{result.base} alone"), *((own, name) for name in result.names if name != own)]
    return {
        "headline": said.headline,
        "certain": said.certain,
        "not_certain": said.uncertain,
        "how": said.how,
        "metric": result.metric,
        "differences": [
            {"of": one, "to": other, **asdict(found), "shown": found.shown}
            for one, other in pairs
            if (found := result.gain(one, other)) is not None
        ],
        "contributions": {silo: asdict(found) for silo in result.silos if (found := result.contribution(silo))},
        "step_sizes": {one.method.name: {"chosen": one.step, "tried": one.tried} for one in result.made},
    }


def _chosen(made: MethodRuns) -> str:
    config = made.method.at(made.step)
    evaluate = replace(config.evaluate, keep_scores=False)
    return config_text(replace(config, evaluate=evaluate, run=replace(config.run, name=None)))
