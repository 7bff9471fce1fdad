"""The config sections [evaluate] and [run] as values."""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from crosshatch.errors import ConfigError, meant, require_whole
from crosshatch.own_parts import short_name
from crosshatch.report.measures import Target, parse_target
from crosshatch.task.directions import directions

MOST_THREADS, SHORTEST_WAIT = 1024, 1.0
TRACKERS = ("tensorboard", "mlflow")
"""What may be in `run.track`."""


@dataclass(frozen=True)
class EvaluateSettings:
    """Section [evaluate]: what is measured, and when.

    `every` so many rounds, and before the first and after the last one. `metrics` on the test samples; left out, those
    usual for the labels. `targets` like "auc=0.75": the summary says when each was first reached. `train_samples`
    limits how many training samples the training loss is computed on; left out, all. `test_samples` limits how many
    test samples are looked at while training, always the same ones, drawn with `data.split_seed`: once they reach a
    target, and at the end, all test samples are measured, and these count. Where there are validation rows
    (`data.validation`) the metrics are measured on them too, and `best_by` names the one that chooses the best round,
    whose model is kept beside the last one; left out, the first of auc, accuracy, r2, rmse and so on. Metrics may be a
    user's own, as `path/to/file.py:function`; `higher_is_better` has their directions, where the file does not say it.
    `per_client`: at the end also on the test samples of every client by itself. `smooth`: a target counts as reached
    when the mean of so many evaluations in a row is there; 1 is the first touch. `keep_scores`: at the end write the
    scores of validation and test rows into the run directory.
    """

    every: int = 10
    metrics: tuple[str, ...] | None = None
    targets: tuple[str, ...] = ()
    train_samples: int | None = None
    test_samples: int | None = None
    best_by: str | None = None
    higher_is_better: Mapping[str, bool] = field(default_factory=dict, hash=False)
    per_client: bool = False
    smooth: int = 1
    keep_scores: bool = False

    def __post_init__(self) -> None:
        _at_least_one(self, "evaluate", {
            "every": "evaluate after every round",
            "smooth": "a target is then reached by a single evaluation",
            "train_samples": "leave it out to use all training samples",
            "test_samples": "leave it out to use all test samples",
        })  # fmt: skip
        if self.metrics == ():
            raise ConfigError("evaluate.metrics is empty: name at least one, or leave it out for the usual ones")
        _ = self.parsed_targets

    @property
    def parsed_targets(self) -> tuple[Target, ...]:
        return tuple(parse_target(text, directions(self.higher_is_better)) for text in self.targets)

    @property
    def names(self) -> tuple[str, ...]:
        """What the metrics are called where they are reported."""
        return tuple(short_name(metric) for metric in self.metrics or ())


@dataclass(frozen=True)
class RunSettings:
    """Section [run]: how long, and on what.

    `name`: by default that of the run directory where one is given, else that of the config file. `threads`: by default
    the number of cores. `strategy`: how local steps are computed. `checkpoint_every` so many rounds; by default at each
    evaluation. `stop_at_targets`: end at the first evaluation by which all targets of [evaluate] were reached.
    `patience`: end after so many evaluations in a row that were not better on the validation rows than the best one.
    `on_divergence`: end at the first evaluation at which the training loss is more than ten times the larger of that
    before the first round and that of scores of zero, or go on with a warning. `track`: other tools that are told of
    the run, which the extra `tracking` installs. `record_messages`: keep what silos send each other, for audits.
    `processes`: of `crosshatch launch`, one per party, or one for all clients of a silo; each party stores its state
    every so many rounds, or "1s", of `store_every`, and waits for another no longer than `wait`. `workers`: so many
    processes compute forward passes and local steps, with `threads` each; 0 is this process alone, with the bits of any
    other number of them. Each has whole `pieces` of the silos' clients, over which sums are taken. `load`: rows are
    read here and handed out, or apart, by each worker its own.
    """

    rounds: int
    name: str | None = None
    seed: int = 0
    threads: int | None = None
    device: str = "cpu"
    precision: Literal["float32", "float64"] = "float32"
    strategy: Literal["auto", "loop", "stacked", "gram"] = "auto"
    checkpoint_every: int | None = None
    stop_at_targets: bool = False
    patience: int | None = None
    on_divergence: Literal["stop", "warn"] = "stop"
    track: tuple[str, ...] = ()
    record_messages: bool = False
    processes: Literal["party", "silo"] = "party"
    store_every: int | str = "1s"
    wait: str = "10m"
    workers: int | None = None
    pieces: int = 12
    load: Literal["here", "apart"] = "here"

    def __post_init__(self) -> None:
        _at_least_one(self, "run", {
            "rounds": "a run has one round or more",
            "threads": "leave it out to use all cores",
            "checkpoint_every": "leave it out: at each evaluation",
            "patience": "leave it out to run all rounds",
            "pieces": "leave it out for 12",
        })  # fmt: skip
        require_whole("run.seed", self.seed)
        if self.load == "apart" and self.workers is None:
            raise ConfigError("run.load = 'apart' has workers read their own rows: set run.workers, or leave it out")
        if self.workers is not None:
            require_whole("run.workers", self.workers, least=0, remedy="leave it out to compute without workers")
            if self.workers > self.pieces:
                raise ConfigError(
                    f"run.workers = {self.workers} for run.pieces = {self.pieces}: every worker has a piece of the "
                    f"clients or more, set run.pieces to {self.workers} at least"
                )
        if self.seed < 0:
            raise ConfigError(f"run.seed = {self.seed}: a seed is a whole number from 0 on")
        if self.threads is not None and self.threads > MOST_THREADS:
            raise ConfigError(f"run.threads = {self.threads}: at most {MOST_THREADS}; leave it out to use all cores")
        if self.name is not None and not is_name(self.name):
            raise ConfigError(
                f"run.name = {self.name!r}: it names a folder, so no '/', no leading '.', no line break, and not empty"
            )
        for name in self.track:
            if name not in TRACKERS:
                raise ConfigError(
                    f"run.track has {name!r}, which is not a tracker: {meant(name, TRACKERS)}Choose among "
                    f"{', '.join(TRACKERS)}"
                )
        if len(set(self.track)) < len(self.track):
            raise ConfigError(f"run.track = {list(self.track)}: a tracker stands there twice: name it once")
        _ = self.store_pace, self.wait_seconds

    @property
    def threads_each(self) -> int:
        """Of every process that computes."""
        return self.threads or max(1, available_cores() // max(1, self.workers or 1))

    @property
    def store_pace(self) -> tuple[float, int | None]:
        """How often a party stores its state: seconds, and rounds where these were asked for."""
        if isinstance(self.store_every, int):
            _at_least_one(self, "run", {"store_every": 'or seconds, for example "1s"'})
            return 0.0, self.store_every
        return parse_seconds("run.store_every =", self.store_every, "1s"), None

    @property
    def wait_seconds(self) -> float:
        seconds = parse_seconds("run.wait =", self.wait, "10m")
        if seconds < SHORTEST_WAIT:
            raise ConfigError(f"run.wait = {self.wait}: others need a moment to answer: at least {SHORTEST_WAIT:g}s")
        return seconds


def require_evaluations(evaluate: EvaluateSettings, run: RunSettings) -> None:
    """Refuse a mean over more evaluations than there will be: no target could ever be reached."""
    count = 1 + math.ceil(run.rounds / evaluate.every)  # before the first round, and after the last
    if evaluate.smooth > count:
        raise ConfigError(
            f"evaluate.smooth = {evaluate.smooth} is more than the {count} evaluations of run.rounds = {run.rounds} at "
            f"evaluate.every = {evaluate.every}, so no target could be reached: at most {count}, or evaluate more often"
        )


def parse_seconds(place: str, text: str, example: str) -> float:
    """Seconds from a number with s, m or h; `place` is where it was written.

    >>> parse_seconds("--time-limit", "90s", "30m"), parse_seconds("--time-limit", "1.5h", "30m")
    (90.0, 5400.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip())
    if found is None or float(found[1]) <= 0:
        raise ConfigError(f"{place} {text}: write a number with s, m or h, for example {example}")
    return float(found[1]) * {"s": 1.0, "m": 60.0, "h": 3600.0}[found[2]]


def is_name(text: str) -> bool:
    """Whether a run may be called so: it names a folder.

    >>> is_name("q=1"), is_name("a/b"), is_name(".."), is_name(""), is_name("two\\nlines")
    (True, False, False, False, False)
    """
    return bool(text.strip()) and "/" not in text and not text.startswith(".") and text.isprintable()


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _at_least_one(settings: object, section: str, remedies: Mapping[str, str]) -> None:
    """Of every key that is set: a whole number from 1 on."""
    for key, remedy in remedies.items():
        if (value := getattr(settings, key)) is not None:
            require_whole(f"{section}.{key}", value, least=1, remedy=remedy)
