"""Rules every algorithm's settings obey."""

from __future__ import annotations

from crosshatch.errors import ConfigError, require_whole
from crosshatch.graphs import Graph

MOST_STEPS = 1_000_000


def check_local_steps(value: int) -> None:
    """Q is a whole number from 1 on."""
    require_whole("algorithm.local_steps", value)
    if not 1 <= value <= MOST_STEPS:
        raise ConfigError(f"algorithm.local_steps = {value}: Q must be at least 1 and at most {MOST_STEPS:,}")


def check_global_steps(value: int, local_steps: int) -> None:
    """P is a multiple of Q."""
    require_whole("algorithm.global_steps", value)
    if value < 1 or value % local_steps:
        near = max(1, round(value / local_steps)) * local_steps
        raise ConfigError(
            f"algorithm.global_steps = {value}: P must be a multiple of Q (algorithm.local_steps = {local_steps}), "
            f"for example {near}"
        )


def check_batch_size(value: int | None) -> None:
    """A batch has at least one sample; None stands for all."""
    if value is None:
        return
    require_whole("algorithm.batch_size", value)
    if value < 1:
        raise ConfigError(f"algorithm.batch_size = {value}: must be at least 1, or left out for all samples")


def check_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in choices:
        raise ConfigError(f"algorithm.{key} = {value!r}: must be {' or '.join(map(repr, choices))}")


def check_graph(value: object) -> None:
    if not isinstance(value, Graph):
        raise ConfigError(f"algorithm.graph = {value!r}: give a Graph, such as Graph('path')")


def check_fraction(value: float) -> None:
    """A share of the clients, above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"algorithm.fraction = {value!r}: must be a number above 0 and at most 1")
    if not 0 < value <= 1:
        raise ConfigError(f"algorithm.fraction = {value}: must be above 0 and at most 1, which takes all clients")
