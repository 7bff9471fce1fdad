"""Metrics from a user's own file: functions of scores (n, c), labels (n,) and the loss, with which way is better."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosshatch.errors import ConfigError, ModelError
from crosshatch.own_parts import PartKind, find_part, is_own, short_name, takes
from crosshatch.task.directions import HIGHER_IS_BETTER

_METRIC = PartKind("a metric", "evaluate.metrics", sort="function")


@dataclass(frozen=True)
class OwnMetric:
    """A metric with the `name` it is reported under."""

    name: str
    function: Callable[[Any, Any, Any], float]

    def __call__(self, scores: Any, y: Any, loss: Any) -> float:
        found = self.function(scores, y, loss)
        try:
            value = float(found)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ModelError(
                f"metric '{self.name}' returned {found!r}: it must return a finite number, correct it there"
            )
        return value


def find_metrics(metrics: Sequence[str | OwnMetric]) -> tuple[str | OwnMetric, ...]:
    """The same, with the metrics themselves in place of the names of those in files."""
    return tuple(
        OwnMetric(short_name(one), _find(one)) if isinstance(one, str) and is_own(one) else one for one in metrics
    )


def find_directions(names: Sequence[str], given: Mapping[str, bool]) -> dict[str, bool]:
    """For each metric in a file whether higher is better: as the function says, or as is `given`."""
    found: dict[str, bool] = {}
    for name in names:
        short, function = short_name(name), _find(name)
        if short in HIGHER_IS_BETTER or short in found:
            raise ConfigError(f"evaluate.metrics has {name}, and there is another metric '{short}': rename it there")
        said = getattr(function, "higher_is_better", given.get(short))
        if not isinstance(said, bool):
            raise ConfigError(
                f"{name} does not say whether higher is better: write {short}.higher_is_better = True (or False) below "
                f"the function, or evaluate.higher_is_better.{short} = true in the config"
            )
        if given.get(short, said) != said:
            raise ConfigError(
                f"evaluate.higher_is_better.{short} = {str(given[short]).lower()}, and {name} says the opposite: leave "
                "one of them out"
            )
        found[short] = said
    if unknown := [short for short in given if short not in found]:
        raise ConfigError(
            f"evaluate.higher_is_better names '{unknown[0]}', which is not a metric of your own in evaluate.metrics: "
            "leave it out"
        )
    return found


def _find(name: str) -> Callable[[Any, Any, Any], float]:
    function = find_part(name, _METRIC)
    if not callable(function) or isinstance(function, type):
        raise ConfigError(f"{name} is not a function: a metric is one, {short_name(name)}(scores, y, loss)")
    if not takes(function, 3):
        raise ConfigError(f"{name} does not take what it is given: write it as {short_name(name)}(scores, y, loss)")
    checked: Callable[[Any, Any, Any], float] = function
    return checked
