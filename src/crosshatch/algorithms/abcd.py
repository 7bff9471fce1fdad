"""ABCD, anticipating block coordinate descent: silos descend in parallel, each assuming that the others move along.

A method of our own; docs/algorithms/abcd.md has the derivation, abcd-theorem.md beside it the theorem.
theta_k: block   z0: scores at the exchange   u_k: what the silo's own block has added to them since   K: silos
Q: local_steps   eta: step_size   s: anticipation   W: window   P: global_steps
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, Self

from crosshatch.errors import ConfigError, require_whole
from crosshatch.exchanges import (
    Batch,
    Blocks,
    ClientWeights,
    DrawsBatches,
    Embeddings,
    Federation,
    Frozen,
    LocalSteps,
    Memory,
)
from crosshatch.exchanges.checks import check_global_steps
from crosshatch.schedules import Schedule, rate
from crosshatch.theory import theorem_names
from crosshatch.topology import Topology


@dataclass(frozen=True)
class ABCD(DrawsBatches):
    """Anticipating block coordinate descent on `V(Q)`, `V(Q) H(Q)` or `H(P) V(Q) H(Q)`, whichever the federation has.

    `anticipation` is s: a number from 1 on, "silos" for K, or a share of K such as "0.5 silos" (never below 1). The
    local steps go through the batches of the last `window` rounds in turn, newest first.

    >>> str(ABCD(local_steps=5).on(clients=1, groups=1, labels_held=False).topology)
    'V(5)'
    >>> ABCD(anticipation="0.5 silos").anticipated(6)
    3.0
    """

    local_steps: int = 10
    step_size: Schedule | float = 0.1
    batch_size: int | None = None
    anticipation: float | str = "0.5 silos"
    window: int = 2
    weights: ClientWeights = "equal"
    global_steps: int | None = None
    tiers: Literal["auto", "V", "V H", "H V H"] = "auto"

    remembers = True
    returns_blocks = True
    derivatives = "continued"
    auto = ("step_size",)
    proved_by = (theorem_names.ABCD,)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.anticipated(2)
        require_whole("algorithm.window", self.window, least=1, remedy="W = 1 is the round's own batch")
        if self.global_steps is not None:
            check_global_steps(self.global_steps, self.local_steps)

    @classmethod
    def measured(cls) -> tuple[str, ...]:
        """Q as well, of which no theorem says what is best."""
        return ("local_steps", "step_size")

    def anticipated(self, silos: int) -> float:
        """s for so many silos."""
        value, share = self.anticipation, re.fullmatch(r"\s*([\d.eE+-]*)\s*silos\s*", str(self.anticipation))
        try:
            found = float(value) if share is None else float(share[1] or 1) * silos
        except ValueError:
            found = float("nan")
        least = 1 if share is None else 0
        if (isinstance(value, bool | str) and share is None) or not isfinite(found) or found < least or found == 0:
            raise ConfigError(
                f"algorithm.anticipation = {value!r}: s must be a number of at least 1, 'silos', or a share of the "
                "silos such as '0.5 silos'"
            )
        return max(1.0, found)

    @property
    def several_clients(self) -> str:
        """The tiers with H below V."""
        return "algorithm.tiers = 'auto' or 'V H'" if self.tiers == "V" else ""

    def on(self, *, clients: int, groups: int, labels_held: bool) -> Self:  # noqa: ARG002
        """Tiers that were left open are those of the federation."""
        if self.tiers != "auto":
            return self
        return replace(self, tiers="H V H" if groups > 1 else "V H" if clients > 1 else "V")

    @property
    def topology(self) -> Topology:
        """Embeddings and blocks move every Q steps, groups are averaged every P."""
        q, p = self.local_steps, self.global_steps or self.local_steps
        return Topology.parse({"V": f"V({q})", "H V H": f"H({p}) V({q}) H({q})"}.get(self.tiers, f"V({q}) H({q})"))

    def with_interval(self, steps: int) -> Self:
        """The same with so many steps between averages of every tier: P is Q."""
        return replace(self, local_steps=steps, global_steps=None)

    def run_round(
        self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int, memory: Memory
    ) -> tuple[Blocks, Memory]:
        """Q steps at every client between two exchanges; `memory` is what was exchanged in the W - 1 rounds before."""
        batch = fed.draw_batch(self.batch_size, round=r)
        blocks = fed.broadcast(blocks, batch)
        embeddings = fed.embed(blocks, batch)
        frozen = fed.exchange(embeddings, batch)
        s = self.anticipated(len(fed.silos))
        local = LocalSteps(self.local_steps, rate(self.step_size, r), anticipation=s, continued=True)
        blocks = fed.descend(blocks, batch, frozen, local, earlier=memory)
        blocks = fed.average(blocks, batch, weights=self.weights)
        if self.tiers == "H V H" and (r + 1) * self.local_steps % (self.global_steps or self.local_steps) == 0:
            blocks = fed.average_groups(blocks, round=r)
        return blocks, ((batch, frozen), *memory)[: self.window - 1]
