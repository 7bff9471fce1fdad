"""What an algorithm declares of itself: what engines want to know of it beside its round.

A new algorithm overrides what differs; no engine and no command asks which class it is. This is the one place where an
attribute of an algorithm is looked up by name. What planning and configs ask besides is in `planned.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeGuard, TypeVar

import numpy as np

from crosshatch.exchanges.algorithm import Algorithm
from crosshatch.exchanges.duals import DualAlgorithm
from crosshatch.exchanges.tokens import TokenAlgorithm
from crosshatch.exchanges.vertical import Within

if TYPE_CHECKING:  # needs torch, which takes seconds to import
    from crosshatch.data.federated import FederatedData

Draw = Literal["anew", "partition"]
AnyOf = TypeVar("AnyOf")
# What an algorithm that does not inherit may declare: it never promised that its other attributes mean the same.
_BY_NAME = (
    "central", "pairs", "batch_size", "draw", "division_seed", "fraction", "remembers", "returns_blocks",
    "continues_derivatives", "takes_turns",
)  # fmt: skip


class Declared:
    """Every declaration with its default. A field, a class attribute or a property of the same name overrides it.

    A field takes the default given here where it has none of its own.

    >>> class Alone(Declared):
    ...     central = True
    >>> Alone().central, Alone().pairs
    (True, False)
    """

    central: ClassVar[bool] = False
    """All columns and samples lie on one machine: no message is counted, and all samples form one client."""

    pairs: ClassVar[bool] = False
    """Every client of the silo with the most has a partner in each other silo, which is divided as that one is."""

    within: ClassVar[Within] = "silo"
    """Where clients are averaged: at their silo's hub, or those of the whole federation together at the server."""

    remembers: ClassVar[bool] = False
    """Whether `run_round` takes and returns a memory besides the blocks; see `Algorithm`."""

    returns_blocks: ClassVar[bool] = False
    """Whether clients hold no block between rounds: each that moved gives its own up to an average, and is sent the
    next. Where they hold nothing else either, parties that are processes store nothing for them."""

    batch_size: int | None = None
    """How many samples are drawn from all clients per round; None: all, or those of a `fraction` of the clients."""

    draw: Draw | None = None
    """Whether each round draws its samples "anew", or takes a batch of a "partition"; None: see `with_division`."""

    division_seed: int | None = None
    """The seed of a partition, which is no run's seed and tells nothing of labels."""

    window: int = 1
    """The batches of so many rounds are kept for local steps; 1: the round's own."""

    fraction: float | None = None
    """The share of the clients that a round takes all samples of; None: samples are drawn, not clients."""

    batches: str = "reused"
    """Whether the local steps of a round share one batch, or have "fresh" ones."""

    order: str = "parallel"
    """Whether silos take the local steps of a round side by side, or one after the other: "sequential"."""

    derivatives: str = "each_round"
    """Where one silo holds the labels: whether the others keep a round's derivatives, get new ones with "each_step", or
    let them go on as they move, "continued"."""

    encrypts: ClassVar[bool] = False
    """Where one silo holds the labels: whether derivatives of a round may travel encrypted. The others then know their
    gradients at the round's start alone, which is all that a frozen derivative is to a linear block."""

    @property
    def fresh_batches(self) -> bool:
        """Whether every local step has a batch of its own; otherwise those of a round share one."""
        return self.batches == "fresh"

    @property
    def asks_each_step(self) -> bool:
        """Where one silo holds the labels: whether derivatives are new at every local step, not only at the round's."""
        return self.derivatives == "each_step"

    @property
    def continues_derivatives(self) -> bool:
        """Where one silo holds the labels: whether the others let the derivatives it sent go on as they move."""
        return self.derivatives == "continued"

    @property
    def several_clients(self) -> str:
        """Settings by which it would take several clients per silo, where these take one; empty: there are none."""
        return ""

    @property
    def takes_turns(self) -> bool:
        """Whether silos take their local steps one after the other within a round."""
        return self.order == "sequential"

    def anticipated(self, silos: int) -> float | None:  # noqa: ARG002 - few methods anticipate
        """How many times as far as itself a silo assumes all `silos` together to move; None: the others stand still."""
        return None

    def on(self, *, clients: int, groups: int, labels_held: bool) -> Self:  # noqa: ARG002 - most are the same anywhere
        """The same on a federation with so many clients in its largest silo, so many groups, and its labels shared."""
        return self

    def with_settings(self, **settings: Any) -> Self:
        """The same with other settings."""
        own: Any = self  # whoever has settings is a dataclass, which this class cannot say
        changed: Self = replace(own, **settings)
        return changed


def declared(algorithm: object) -> Declared:
    """What any algorithm declares of itself, also one that is a class of its own and inherits nothing.

    >>> class Plain:
    ...     batch_size = 64
    >>> declared(Plain()).batch_size, declared(Plain()).fraction
    (64, None)
    """
    if isinstance(algorithm, Declared):
        return algorithm
    own = {name: getattr(algorithm, name) for name in _BY_NAME if hasattr(algorithm, name)}
    found: Declared = type("Own", (Declared,), own)()
    return found


def on_federation(algorithm: AnyOf, data: FederatedData) -> AnyOf:
    """The algorithm on this kind of federation, where it runs on several."""
    if not isinstance(algorithm, Declared):
        return algorithm
    groups = 1 if data.groups is None else len(np.unique(data.groups))
    held = data.label_silo is not None and len(data.silos) > 1
    return algorithm.on(clients=max(silo.clients for silo in data.silos), groups=groups, labels_held=held)


def on_silos(algorithm: object) -> TypeGuard[Algorithm]:
    """Whether the algorithm is written against a vertical federation, as all are that are not on a graph."""
    return not (on_tokens(algorithm) or on_duals(algorithm))


def on_tokens(algorithm: object) -> TypeGuard[TokenAlgorithm]:
    """Whether the algorithm is written against agents with tokens."""
    return isinstance(algorithm, TokenAlgorithm)


def on_duals(algorithm: object) -> TypeGuard[DualAlgorithm]:
    """Whether the algorithm is written against agents with duals."""
    return isinstance(algorithm, DualAlgorithm)
