"""Rules every algorithm's settings obey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from crosshatch.errors import ConfigError, require_whole
from crosshatch.graphs import Graph
from crosshatch.schedules import check_step_size

MOST_STEPS = 1_000_000


def check_settings(settings: Any) -> None:
    """Settings that several algorithms have, each by its one rule, and those of a few words by their type."""
    own: Any = type(settings)
    for name, kind in _kinds(own).items():
        value = getattr(settings, name)
        if get_origin(kind) is Literal:
            if value not in get_args(kind):
                raise ConfigError(f"algorithm.{name} = {value!r}: must be {' or '.join(map(repr, get_args(kind)))}")
        elif name in _RULES and not (value is None and NoneType in get_args(kind)):
            _RULES[name](value, kind)


@cache
def _kinds(of: Any) -> Mapping[str, Any]:
    try:
        hints = get_type_hints(of)
    except NameError:  # a user's own class may have types that are there for a checker alone
        return {}
    return {one.name: hints[one.name] for one in fields(of)}


def _check_local_steps(value: int, _: object) -> None:
    """Q is a whole number from 1 on."""
    require_whole("algorithm.local_steps", value)
    if not 1 <= value <= MOST_STEPS:
        raise ConfigError(f"algorithm.local_steps = {value}: Q must be at least 1 and at most {MOST_STEPS:,}")


def _check_batch_size(value: int, _: object) -> None:
    require_whole("algorithm.batch_size", value)
    if value < 1:
        raise ConfigError(f"algorithm.batch_size = {value}: must be at least 1, or left out for all samples")


def _check_step_size(value: Any, kind: object) -> None:
    """ "auto" is one where the type says so."""
    may_be_auto = Literal["auto"] in get_args(kind)
    if may_be_auto and isinstance(value, str) and value != "auto":
        raise ConfigError(f"algorithm.step_size = {value!r}: give a number, a schedule or 'auto'")
    if not (may_be_auto and value == "auto"):
        check_step_size(value)


def _check_graph(value: object, _: object) -> None:
    """Who may send to whom."""
    if not isinstance(value, Graph):
        raise ConfigError(f"algorithm.graph = {value!r}: give a Graph, such as Graph('path')")


def _check_fraction(value: float, _: object) -> None:
    """A share of the clients, above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"algorithm.fraction = {value!r}: must be a number above 0 and at most 1")
    if not 0 < value <= 1:
        raise ConfigError(f"algorithm.fraction = {value}: must be above 0 and at most 1, which takes all clients")


_RULES = {
    "local_steps": _check_local_steps,
    "batch_size": _check_batch_size,
    "step_size": _check_step_size,
    "graph": _check_graph,
    "fraction": _check_fraction,
}


def check_global_steps(value: int, local_steps: int) -> None:
    """P is a multiple of Q."""
    require_whole("algorithm.global_steps", value)
    if value < 1 or value % local_steps:
        near = max(1, round(value / local_steps)) * local_steps
        raise ConfigError(
            f"algorithm.global_steps = {value}: P must be a multiple of Q (algorithm.local_steps = {local_steps}), "
            f"for example {near}"
        )
