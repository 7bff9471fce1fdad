"""What planning, configs and notes ask of an algorithm, beside what engines need."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache
from typing import Any, ClassVar, Self, get_args, get_type_hints

from crosshatch.exchanges.checks import check_settings
from crosshatch.exchanges.declared import Declared
from crosshatch.graphs import Graph
from crosshatch.protocol.names import ClientWeights
from crosshatch.schedules import Constant, Schedule, rate
from crosshatch.topology import Topology

_INTERVALS = {"P": "global_steps", "Q": "local_steps"}


class Planned(Declared):
    """Every declaration of an algorithm that a config can name, with its default.

    >>> class Alone(Planned):
    ...     auto = ("local_steps", "step_size")
    >>> Alone.measured()
    ('local_steps', 'step_size')
    """

    def __post_init__(self) -> None:
        """Refuse settings that make no sense."""
        check_settings(self)

    shape: ClassVar[str] = ""
    """Its tiers, outermost first: "H(P) V(Q) H(Q)" with P for `global_steps` and Q for `local_steps`."""

    weights: ClientWeights = "equal"
    """How clients count in their silo's average."""

    graph: Graph | None = None
    """Who may send to whom; None: a federation of silos, without a graph."""

    has_schedule: ClassVar[bool] = True
    """Whether `step_size` may be a schedule. Where not, it is read as its type says."""

    finds_step: ClassVar[bool] = False
    """Whether `step_size` "auto" is a value of its own, which follows from the blocks while training."""

    auto: ClassVar[tuple[str, ...]] = ()
    """Settings that theory may choose before training, where a config has "auto": among the intervals `global_steps`
    (P) and `local_steps` (Q), and `step_size`. Empty: no theorem speaks of the method, so it cannot be planned."""

    proved_by: ClassVar[tuple[str, ...]] = ()
    """Theorems that are about this very method, by name."""

    @property
    def topology(self) -> Topology:
        """The tiers of `shape` with their intervals."""
        return Topology.parse(re.sub("[PQ]", lambda found: str(getattr(self, _INTERVALS[found[0]])), self.shape))

    @property
    def unlike_theory(self) -> tuple[str, ...]:
        """What these settings have that no theorem speaks of, each in a few words."""
        return ("silos take turns",) if self.takes_turns else ()

    @classmethod
    def measured(cls) -> tuple[str, ...]:
        """Settings that trials may choose before training, where a config has "measure".

        The intervals of `auto` and, unless the method finds it by itself, the step size.
        """
        intervals = tuple(key for key in cls.auto if key != "step_size")
        return intervals if cls.finds_step else (*intervals, "step_size")

    def with_interval(self, steps: int) -> Self:
        """The same with so many local steps between exchanges."""
        return self.with_settings(local_steps=steps)

    def with_step_size(self, step_size: Schedule) -> Self:
        """The same with another step size."""
        return self.with_settings(step_size=step_size)


@cache
def declaring(kind: type[Any]) -> type[Any]:
    """A user's own class as one that inherits from `Planned`: configs and runs ask for every declaration.

    A step size whose type is a plain number is not made a schedule.
    """
    takes_schedule = Constant in get_args(get_type_hints(kind).get("step_size"))
    if issubclass(kind, Planned) and (takes_schedule or not kind.has_schedule):
        return kind
    own: dict[str, Any] = {key: getattr(kind, key) for key in ("__module__", "__qualname__", "__doc__")}
    if not takes_schedule:
        own |= {"has_schedule": False, "with_step_size": lambda self, size: replace(self, step_size=rate(size, 0))}
    return type(kind.__name__, (kind,) if issubclass(kind, Planned) else (kind, Planned), own)


def declared_instance(given: Any) -> Any:
    """The same for an algorithm that was made already."""
    if isinstance(given, Planned):
        return given
    kind: Any = type(given)
    return declaring(kind)(**{field.name: getattr(given, field.name) for field in fields(given)})
