"""Step sizes over the rounds: constant, one over the square root, halved every so many rounds, adaptive, or own."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from crosshatch.errors import ConfigError, meant, saying_where
from crosshatch.own_parts import PartKind, building, find_settings_class, is_own, name_of, require_methods

LARGEST = 1e30
_OWN = PartKind("a schedule", "kind")


@dataclass(frozen=True)
class Constant:
    """The same step size in every round."""

    value: float

    def __post_init__(self) -> None:
        _require_positive(self.value)

    def __call__(self, round: int) -> float:  # noqa: ARG002 - the same call for every schedule
        return self.value


@dataclass(frozen=True)
class InverseSqrt:
    """`value / sqrt(round + 1)`, the decreasing step size of the convex convergence theorems; rounds count from 0.

    >>> InverseSqrt(0.8)(3)
    0.4
    """

    value: float

    def __post_init__(self) -> None:
        _require_positive(self.value)

    def __call__(self, round: int) -> float:
        return self.value / math.sqrt(round + 1)


@dataclass(frozen=True)
class Halving:
    """`value * 0.5 ** (round // every)`: half the step size after every `every` rounds (the papers' T0).

    >>> schedule = Halving(0.8, every=100)
    >>> schedule(99), schedule(100)
    (0.8, 0.4)
    """

    value: float
    every: int

    def __post_init__(self) -> None:
        _require_positive(self.value)
        _require_rounds("a halving schedule", self.every)

    def __call__(self, round: int) -> float:
        return self.value * 0.5 ** (round // self.every)


@dataclass(frozen=True)
class Adaptive:
    """HSGD's strategy 3: found anew every `every` rounds, for the norm of the gradient at the model reached by then.

    `rho` and `delta_squared` are those of `crosshatch.theory`. The schedule itself knows `value` only, the step size
    until the next time; whoever runs the rounds replaces it.

    >>> Adaptive(0.1, rho=1.0, delta_squared=0.5, every=10)(7)
    0.1
    """

    value: float
    rho: float
    delta_squared: float
    every: int

    def __post_init__(self) -> None:
        _require_positive(self.value)
        if not (math.isfinite(self.rho) and self.rho > 0):
            raise ConfigError(f"an adaptive schedule needs a positive, finite rho, got {self.rho!r}")
        if not (math.isfinite(self.delta_squared) and self.delta_squared >= 0):
            raise ConfigError(
                f"an adaptive schedule needs a finite delta_squared of at least 0, got {self.delta_squared!r}"
            )
        _require_rounds("an adaptive schedule", self.every)

    def __call__(self, round: int) -> float:  # noqa: ARG002 - the same call for every schedule
        return self.value


@dataclass(frozen=True)
class OwnSchedule:
    """A schedule of a user's own: a frozen dataclass that is called with the round, counted from 0."""

    schedule: Callable[[int], float]

    def __call__(self, round: int) -> float:
        found = self.schedule(round)
        try:
            value = float(found)
        except (TypeError, ValueError):
            value = math.nan
        if not (math.isfinite(value) and 0 < value <= LARGEST):
            raise ConfigError(
                f"schedule {type(self.schedule).__name__} returned {found!r} for round {round}: a step size is a "
                "positive, finite number, correct it there"
            )
        return value


Schedule: TypeAlias = Constant | InverseSqrt | Halving | Adaptive | OwnSchedule


def rate(step_size: Schedule | float, round: int) -> float:
    """The step size of a round (from 0); a plain number is constant.

    >>> rate(0.1, 5), rate(InverseSqrt(0.1), 3)
    (0.1, 0.05)
    """
    return step_size if isinstance(step_size, int | float) else step_size(round)


def check_step_size(step_size: Schedule | float) -> None:
    """Refuse a plain number that is not a step size; schedules check themselves."""
    if isinstance(step_size, bool) or not isinstance(step_size, int | float | Schedule):
        raise ConfigError(f"algorithm.step_size = {step_size!r}: must be a number or a schedule")
    if isinstance(step_size, int | float):
        Constant(step_size)


_KINDS: dict[str, Any] = {"constant": Constant, "inverse_sqrt": InverseSqrt, "halving": Halving, "adaptive": Adaptive}
_NEEDS = {
    "halving": "a halving schedule needs {}: say after how many rounds the step size is halved",
    "adaptive": 'an adaptive schedule needs {}: step_size = "auto" estimates all it needs',
}


def parse_schedule(given: object, *, place: str = "algorithm.step_size") -> Schedule:
    """A schedule from a config value: a number, or a table with `kind`, `value` and the kind's own keys.

    >>> parse_schedule({"kind": "halving", "value": 0.1, "every": 20})(40)
    0.025
    """
    with saying_where(place, ConfigError):
        return _parse(given)


def to_table(schedule: Schedule) -> dict[str, Any]:
    """The config table of a schedule: `parse_schedule(to_table(s)) == s`.

    >>> to_table(Constant(0.1))
    {'kind': 'constant', 'value': 0.1}
    """
    own: Any = schedule.schedule if isinstance(schedule, OwnSchedule) else schedule
    kind = next((name for name, one in _KINDS.items() if type(own) is one), None) or name_of(type(own), "the schedule")
    return {"kind": kind} | {field.name: getattr(own, field.name) for field in fields(own)}


def _parse(given: object) -> Schedule:
    if not isinstance(given, Mapping):
        return Constant(_number(given))
    kind = given.get("kind", "constant")
    if is_own(kind):
        return _own(kind, {str(key): value for key, value in given.items() if key != "kind"})
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ConfigError(
            f"unknown schedule kind {kind!r}: {meant(kind, _KINDS)}Choose one of {', '.join(_KINDS)}, or name your own "
            "class as path/to/file.py:ClassName"
        )
    keys = [field.name for field in fields(_KINDS[kind])]
    if unknown := sorted(str(key) for key in given if key not in ("kind", "every", *keys)):
        allowed = f"{', '.join(('kind', *keys[:-1]))} and {keys[-1]}"
        raise ConfigError(f"unknown key {unknown[0]!r} in a schedule of kind {kind!r}: allowed are {allowed}")
    if "value" not in given:
        raise ConfigError(f"a schedule of kind {kind!r} needs a value: add value = 0.1, for example")
    if missing := [key for key in keys if key not in given]:
        raise ConfigError(_NEEDS[kind].format(missing[0]))
    if "every" in given and "every" not in keys:
        raise ConfigError(f"every = {given['every']!r} belongs to kind 'halving' only: remove it or change the kind")
    made: Schedule = _KINDS[kind](*(given[key] if key == "every" else _number(given[key]) for key in keys))
    return made


def _own(name: str, arguments: Mapping[str, object]) -> OwnSchedule:
    found = find_settings_class(name, _OWN)
    require_methods(found, name, _OWN, {"__call__": ("round",)})
    known = [field.name for field in fields(found)]
    for key in arguments:
        if key not in known:
            raise ConfigError(f"unknown key {key!r} of {name}: {meant(key, known)}Its fields are {', '.join(known)}")
    with building(name, _OWN):
        schedule = OwnSchedule(found(**arguments))
    with building(name, _OWN, done="asked for round 0"):
        schedule(0)  # refuses what is not a step size
    return schedule


def _number(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ConfigError(f"a step size is a number or a schedule table, got {given!r}")
    try:
        return float(given)
    except OverflowError:
        raise ConfigError("a step size must be positive and finite: this integer is too large") from None


def _require_positive(value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"a step size must be positive and finite, got {value!r}")
    if value > LARGEST:
        raise ConfigError(f"a step size of {value:g} is more than single precision holds: give at most {LARGEST:g}")


def _require_rounds(what: str, every: object) -> None:
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ConfigError(f"{what} needs every >= 1 (whole rounds), got {every!r}")
