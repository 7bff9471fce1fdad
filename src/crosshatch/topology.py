"""A federation is `H* V H*`: horizontal tiers average models, one vertical tier shares embeddings.

Tiers stand outermost first. Each has an interval in local steps, which must be a multiple of the one below it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from crosshatch.errors import ConfigError

_TIER = re.compile(r"\s*([HV])\((\d+)\)")


@dataclass(frozen=True)
class Tier:
    """One level: `H` averages models of members with different samples, `V` shares embeddings of different features."""

    kind: Literal["H", "V"]
    interval: int


@dataclass(frozen=True)
class Topology:
    """Tiers, outermost first.

    >>> str(Topology.parse("H(20) V(10) H(10)"))
    'H(20) V(10) H(10)'
    >>> Topology.parse("V(5)").below
    ()
    """

    tiers: tuple[Tier, ...]

    def __post_init__(self) -> None:
        """Refuse what is not `H* V H*` or whose intervals do not nest."""
        if not self.tiers:
            raise ConfigError("algorithm.tiers is empty: give at least one tier, for example 'V(10) H(10)'")
        if sum(tier.kind == "V" for tier in self.tiers) > 1:
            raise ConfigError(f"algorithm.tiers = '{self}': there can be one vertical tier only, H* V H*")
        for tier in self.tiers:
            if tier.interval < 1:
                raise ConfigError(f"algorithm.tiers = '{self}': an interval is at least 1 local step")
        for outer, inner in zip(self.tiers, self.tiers[1:], strict=False):
            if outer.interval % inner.interval:
                raise ConfigError(
                    f"algorithm.tiers = '{self}': interval {outer.interval} is not a multiple of {inner.interval} "
                    f"in the tier below it: write '{self._nested()}'"
                )

    def _nested(self) -> Topology:
        """The same tiers, from the innermost out each with the next shorter interval that nests, or the one below."""
        nested: list[Tier] = []
        for tier in reversed(self.tiers):
            below = nested[0].interval if nested else 1
            nested.insert(0, Tier(tier.kind, max(tier.interval // below, 1) * below))
        return Topology(tuple(nested))

    @classmethod
    def parse(cls, text: str) -> Topology:
        tiers = []
        position = 0
        while position < len(text.rstrip()):
            match = _TIER.match(text, position)
            if match is None:
                raise ConfigError(
                    f"algorithm.tiers = {text!r}: cannot read {text[position:].strip()!r}: write 'V(10) H(10)'"
                )
            kind: Literal["H", "V"] = "V" if match[1] == "V" else "H"
            tiers.append(Tier(kind, int(match[2])))
            position = match.end()
        return cls(tuple(tiers))

    def __str__(self) -> str:
        return " ".join(f"{tier.kind}({tier.interval})" for tier in self.tiers)

    @property
    def vertical(self) -> int | None:
        return next((i for i, tier in enumerate(self.tiers) if tier.kind == "V"), None)

    @property
    def above(self) -> tuple[Tier, ...]:
        """Horizontal tiers above the vertical one: groups, regions."""
        return () if self.vertical is None else self.tiers[: self.vertical]

    @property
    def below(self) -> tuple[Tier, ...]:
        """Horizontal tiers below the vertical one (all tiers where there is none): clients of a hub."""
        return self.tiers if self.vertical is None else self.tiers[self.vertical + 1 :]
