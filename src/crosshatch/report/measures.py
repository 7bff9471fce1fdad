"""What is measured during a run: how it is called, the best of it, and targets such as `auc=0.75`."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from crosshatch.errors import ConfigError
from crosshatch.task.directions import HIGHER_IS_BETTER, RANGES, VALIDATION

OTHER_SECONDS = tuple(f"sim_seconds_{number}" for number in range(2, 10))
"""Simulated seconds under further networks, where a config lists several."""

#: Keys of a metrics line that say when and at what cost, not how good.
COST_KEYS = (
    "iteration", "round", "bytes", "messages", "communications", "computing_seconds", "sim_seconds", "wall_seconds",
    "real_seconds", "test_samples", *OTHER_SECONDS,
)  # fmt: skip

# The order in which a metric is chosen to speak for a run.
_IMPORTANCE = (
    "suboptimality", "auc", "gini", "pr_auc", "ks", "accuracy", "r2", "rmse", "f1", "top5", "precision", "recall",
    "brier", "loss", "train_loss",
)  # fmt: skip

_TITLES = {
    "auc": "AUC",
    "pr_auc": "PR-AUC",
    "gini": "Gini",
    "ks": "KS",
    "brier": "Brier score",
    "f1": "F1",
    "r2": "R2",
    "rmse": "RMSE",
    "top5": "top-5 accuracy",
    "loss": "test loss",
    "train_loss": "training loss",
}

Rows = Sequence[Mapping[str, Any]]
"""Evaluations in order, as the lines of metrics.jsonl."""

_TARGET = re.compile(r"\s*([A-Za-z][\w-]*)\s*(>=|<=|=)\s*(\S+)\s*")


def metric_title(metric: str) -> str:
    """The name of a metric inside a sentence.

    >>> metric_title("auc"), metric_title("validation_auc")
    ('AUC', 'validation AUC')
    """
    if metric.startswith(VALIDATION):
        name = metric.removeprefix(VALIDATION)
        return f"validation {'loss' if name == 'loss' else metric_title(name)}"
    return _TITLES.get(metric, metric.replace("_", " "))


def main_metric(metrics: tuple[str, ...]) -> str:
    """The one of `metrics` that speaks for a run."""
    return sort_metrics(metrics)[0]


def sort_metrics(metrics: tuple[str, ...]) -> tuple[str, ...]:
    """The most telling first; those unknown last, in the order given.

    >>> sort_metrics(("train_loss", "lift", "loss", "auc"))
    ('auc', 'loss', 'train_loss', 'lift')
    """
    places = {name: place for place, name in enumerate(_IMPORTANCE)}
    return tuple(sorted(metrics, key=lambda name: places.get(name, len(places))))


@dataclass(frozen=True)
class Target:
    """A level of a metric, and on which side of it a run has arrived.

    `smooth`: the mean of so many evaluations must be there at least, whatever a run's own config says.
    """

    metric: str
    value: float
    higher: bool
    smooth: int = 1

    @property
    def label(self) -> str:
        """As in summary.json, for example `auc>=0.75`."""
        return f"{self.metric}{'>=' if self.higher else '<='}{self.value:.12g}"

    def is_reached_by(self, value: float) -> bool:
        """Whether a value is as good as this one; one that is not a number never is."""
        return value >= self.value if self.higher else value <= self.value


def first_reaching(rows: Rows, target: Target, smooth: int = 1) -> Mapping[str, Any] | None:
    """The first evaluation by which the mean of it and the `smooth` - 1 before had reached the target; None: none.

    >>> rows = [{"auc": value} for value in (0.7, 0.8, 0.6, 0.8, 0.9)]
    >>> first_reaching(rows, Target("auc", 0.75, higher=True)), first_reaching(rows, Target("auc", 0.75, True), 3)
    ({'auc': 0.8}, {'auc': 0.9})
    """
    ends = range(1, len(rows) + 1)
    return next((rows[end - 1] for end in ends if _is_reached(rows, end, target, smooth)), None)


def _is_reached(rows: Rows, end: int, target: Target, smooth: int) -> bool:
    """Whether the mean of the last `smooth` of the first `end` evaluations is at the target."""
    start = end - max(smooth, target.smooth)
    return start >= 0 and target.is_reached_by(fmean(row.get(target.metric, math.nan) for row in rows[start:end]))


class TargetsAhead:
    """Which of some targets a run has not reached yet; of evaluations that come one by one each is looked at once."""

    def __init__(self, targets: Sequence[Target], smooth: int) -> None:
        self._ahead, self._smooth, self._seen = tuple(targets), smooth, 0

    def after(self, rows: Rows) -> tuple[Target, ...]:
        """
        >>> ahead = TargetsAhead([Target("auc", 0.7, higher=True), Target("auc", 0.9, higher=True)], smooth=1)
        >>> [len(ahead.after([{"auc": 0.6}, {"auc": 0.8}][:count])) for count in (1, 2)]
        [2, 1]
        """
        for end in range(self._seen + 1, len(rows) + 1):
            self._ahead = tuple(one for one in self._ahead if not _is_reached(rows, end, one, self._smooth))
        self._seen = len(rows)
        return self._ahead


def moving_means(rows: Rows, metric: str, smooth: int) -> list[float]:
    """Of each evaluation and the `smooth` - 1 before it, where there are so many."""
    values = [row.get(metric, math.nan) for row in rows]
    return [fmean(values[end - smooth : end]) for end in range(smooth, len(values) + 1)]


def best_row(rows: Rows, metric: str, known: Mapping[str, bool] = HIGHER_IS_BETTER) -> Mapping[str, Any]:
    """The best evaluation by a metric, of equal ones the first."""
    return (max if known[metric] else min)(rows, key=lambda row: row[metric])


def parse_target(text: str, known: Mapping[str, bool] = HIGHER_IS_BETTER) -> Target:
    """
    >>> parse_target("auc=0.75").label, parse_target("loss=0.4").label
    ('auc>=0.75', 'loss<=0.4')
    """
    match = _TARGET.fullmatch(text)
    value = _finite(match[3]) if match else None
    if match is None or value is None:
        raise ConfigError(f"target '{text}' is not METRIC=NUMBER: write for example auc=0.75, auc>=0.75 or loss<=0.4")
    metric, sign = match[1], match[2]
    least, most = RANGES.get(metric.removeprefix(VALIDATION), (-math.inf, math.inf))
    if not least <= value <= most:
        reach = f"is at most {most:g}" if value > most else f"is at least {least:g}"
        raise ConfigError(
            f"target '{text}': {metric} {reach}: choose a value that can be reached, for example auc=0.75"
        )
    if sign != "=":
        return Target(metric, value, higher=sign == ">=")
    if metric not in known:
        raise ConfigError(
            f"target '{text}': unknown whether higher or lower '{metric}' is better: "
            f"write '{metric}>={match[3]}' or '{metric}<={match[3]}', or use one of {', '.join(known)}"
        )
    return Target(metric, value, higher=known[metric])


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
