"""Step sizes over the rounds: constant, one over the square root, halved every so many rounds, or adaptive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from crosshatch.errors import ConfigError, saying_where

LARGEST = 1e30


@final
@dataclass(frozen=True)
class Constant:
    """The same step size in every round."""

    value: float

    def __post_init__(self) -> None:
        _require_positive(self.value)

    def __call__(self, round: int) -> float:  # noqa: ARG002 - the same call for every schedule
        return self.value


@final
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


@final
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


@final
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


Schedule: TypeAlias = Constant | InverseSqrt | Halving | Adaptive


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


_KINDS = ("constant", "inverse_sqrt", "halving", "adaptive")


def parse_schedule(given: object, *, place: str = "algorithm.step_size") -> Schedule:
    """A schedule from a config value: a number, or a table with `kind`, `value` and the kind's own keys.

    >>> parse_schedule({"kind": "halving", "value": 0.1, "every": 20})(40)
    0.025
    """
    with saying_where(place, ConfigError):
        return _parse(given)


def to_table(schedule: Schedule) -> dict[str, str | float | int]:
    """The config table of a schedule: `parse_schedule(to_table(s)) == s`.

    >>> to_table(Constant(0.1))
    {'kind': 'constant', 'value': 0.1}
    """
    match schedule:
        case Constant(value):
            return {"kind": "constant", "value": value}
        case InverseSqrt(value):
            return {"kind": "inverse_sqrt", "value": value}
        case Halving(value, every):
            return {"kind": "halving", "value": value, "every": every}
        case Adaptive(value, rho, delta_squared, every):
            return {"kind": "adaptive", "value": value, "rho": rho, "delta_squared": delta_squared, "every": every}


def _parse(given: object) -> Schedule:
    if not isinstance(given, Mapping):
        return Constant(_number(given))
    kind = given.get("kind", "constant")
    if kind not in _KINDS:
        raise ConfigError(f"unknown schedule kind {kind!r}: choose one of {', '.join(_KINDS)}")
    own = {"adaptive": ("every", "rho", "delta_squared"), "halving": ("every",)}.get(str(kind), ())
    unknown = sorted(str(key) for key in given if key not in ("kind", "value", "every", *own))
    if unknown:
        keys = ", ".join(("kind", "value", *own)[:-1])
        raise ConfigError(
            f"unknown key {unknown[0]!r} in a schedule of kind {kind!r}: allowed are {keys} and {('value', *own)[-1]}"
        )
    if "value" not in given:
        raise ConfigError(f"a schedule of kind {kind!r} needs a value: add value = 0.1, for example")
    value = _number(given["value"])
    if kind == "adaptive":
        return _adaptive(value, given)
    if kind == "halving":
        if "every" not in given:
            raise ConfigError("a halving schedule needs every: say after how many rounds the step size is halved")
        return Halving(value, given["every"])
    if "every" in given:
        raise ConfigError(f"every = {given['every']!r} belongs to kind 'halving' only: remove it or change the kind")
    return Constant(value) if kind == "constant" else InverseSqrt(value)


def _adaptive(value: float, given: Mapping[str, object]) -> Adaptive:
    for key in ("rho", "delta_squared", "every"):
        if key not in given:
            raise ConfigError(f'an adaptive schedule needs {key}: step_size = "auto" estimates all it needs')
    every = given["every"]
    _require_rounds("an adaptive schedule", every)
    assert isinstance(every, int)
    return Adaptive(value, _number(given["rho"]), _number(given["delta_squared"]), every)


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
