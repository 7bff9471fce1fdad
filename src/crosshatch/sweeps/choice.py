"""`--choose`: by what a sweep tells its points apart; never by the test rows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from crosshatch.errors import ConfigError
from crosshatch.report.measures import Target, best_row, first_reaching, metric_title, parse_target
from crosshatch.report.runs import Run
from crosshatch.runs.config import Config
from crosshatch.task.directions import HIGHER_IS_BETTER, OF_TRAINING, VALIDATION

_COSTS = {"rounds": "round", "bytes": "bytes", "seconds": "sim_seconds"}
_FORMS = "'best validation auc', 'last validation auc' or 'fewest rounds to validation auc=0.9'"
_LEVEL = re.compile(r"(best|last)\s+(.+)")
_FEWEST = re.compile(r"fewest\s+(\w+)\s+to\s+(.+)")


@dataclass(frozen=True)
class Choice:
    """Which evaluation of a run counts, and what of it: a metric, or the cost until a target.

    `metric` is a key of metrics.jsonl; None stands for the one by which a run keeps its best round. `higher`: whether
    more of it is better.
    """

    text: str
    kind: Literal["best", "last", "fewest"] = "best"
    metric: str | None = None
    target: Target | None = None
    higher: bool = False

    @property
    def title(self) -> str:
        """What the value is called in a table."""
        assert self.metric is not None
        if self.target is None:
            return metric_title(self.metric)
        sign = "at least" if self.target.higher else "at most"
        cost = next(word for word, key in _COSTS.items() if key == self.metric)
        return f"{cost} to {metric_title(self.target.metric)} of {sign} {self.target.value:g}"

    @property
    def on_validation(self) -> bool:
        """Whether it goes by the validation rows; else by the training rows."""
        return (self.metric if self.target is None else self.target.metric) not in OF_TRAINING

    def check(self, config: Config) -> None:
        """Refuse a config whose runs could not be told apart by this."""
        measured = self.metric if self.target is None else self.target.metric
        if measured in OF_TRAINING:
            return
        if not config.has_validation_rows:
            who = "a sweep" if measured is None else f"--choose '{self.text}'"
            raise ConfigError(
                f"{who} chooses by validation rows, and there are none: write validation = 0.2 into [data], or add "
                "--set data.validation=0.2, or choose by the training rows, as in --choose 'last train_loss'"
            )
        metrics = config.evaluate.names
        if metrics and measured is not None and measured.removeprefix(VALIDATION) not in metrics:
            raise ConfigError(
                f"--choose '{self.text}': '{measured.removeprefix(VALIDATION)}' is not measured: add it to "
                f"evaluate.metrics (now {', '.join(metrics)})"
            )

    def resolved(self, run: Run) -> Choice:
        """With its metric, which a finished run tells where none was named."""
        if self.metric is not None:
            return self
        metric = run.summary["best_round"]["by"]
        return replace(self, metric=metric, higher=run.directions[metric])

    def counted(self, run: Run) -> Mapping[str, Any] | None:
        """The evaluation of a run that counts; None where it never reached the target or has no finite value."""
        assert self.metric is not None
        if self.target is not None:
            return first_reaching(run.metrics, self.target, run.smooth)
        rows = run.metrics[-1:] if self.kind == "last" else run.metrics
        finite = [row for row in rows if math.isfinite(row.get(self.metric, math.nan))]
        return best_row(finite, self.metric, {self.metric: self.higher}) if finite else None


def parse_choice(text: str | None, known: Mapping[str, bool] = HIGHER_IS_BETTER) -> Choice:
    """A choice from its text; `known` are all metrics, those of a user's own included, with whether higher is better.

    >>> parse_choice("last validation loss").metric, parse_choice("fewest bytes to validation auc=0.9").target.label
    ('validation_loss', 'validation_auc>=0.9')
    """
    if text is None:
        return Choice("best validation metric")
    words = " ".join(text.lower().split())
    if found := _LEVEL.fullmatch(words):
        metric = _metric(found[2], text, f"{found[1]} validation", known)
        return Choice(words, "best" if found[1] == "best" else "last", metric, higher=known[metric])
    fewest = _FEWEST.fullmatch(words)
    if fewest is None or fewest[1] not in _COSTS:
        raise ConfigError(f"--choose '{text}': write {_FORMS}; beside rounds also bytes and seconds")
    name = re.split(r"[<>=]", fewest[2])[0]
    level = fewest[2][len(name) :]
    metric = _metric(name, text, f"fewest {fewest[1]} to validation", known, level)
    return Choice(words, "fewest", _COSTS[fewest[1]], parse_target(metric + level, known))


def _metric(words: str, text: str, before: str, known: Mapping[str, bool], after: str = "") -> str:
    """The key of a metric that may choose; capitals do not count."""
    names = {name.lower(): name for name in known}
    name = names.get("_".join(words.split()), "")
    if name in OF_TRAINING or name.startswith(VALIDATION):
        return name
    if name:
        raise ConfigError(
            f"--choose '{text}' would go by the test rows, which then say too much good of what was chosen: set "
            f"data.validation, for example to 0.2, and write '{before} {name}{after}'"
        )
    measured = ", ".join(key.removeprefix(VALIDATION) for key in known if key.startswith(VALIDATION))
    raise ConfigError(f"--choose '{text}': unknown metric '{words}': write {_FORMS}; metrics are {measured}")
