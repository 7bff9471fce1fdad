"""TDCD: block descent across silos on frozen embeddings, local SGD inside them.

Das et al., arXiv:2108.08930, Algorithm 1 (journal); Das and Patterson, arXiv:2102.03620, Algorithm 1 (ICASSP).
theta_j: block   Phi_-j: frozen   Q: local_steps   eta: step_size   zeta: batch

The journal reuses one mini-batch for the Q steps of a round; the ICASSP version exchanges the embeddings of Q
mini-batches up front. Line 32 of the journal averages after the Q-th step (its index is off by one).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

from crosshatch.exchanges import Batch, Blocks, ClientWeights, DrawsBatches, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.schedules import Schedule, rate
from crosshatch.theory import theorem_names


@dataclass(frozen=True)
class TDCD(DrawsBatches):
    """Tiered decentralised coordinate descent: `V(Q) H(Q)`.

    `batches`: "reused" (journal) or "fresh" (ICASSP). `derivatives` matters where one silo holds the labels: with
    "each_step" the others ask for the derivative at every local step, the mathematics of shared labels at the price of
    more messages (Remark 2); with "each_round" they keep the one of the round's start, as FedBCD does; with "continued"
    they follow that one as their own scores move, the mathematics of shared labels again without a further message.
    `order` "sequential" is not in the papers: silo after silo, as in FedBCD's Algorithm 3, each with the newest
    embeddings of all others. `weights` says how a silo averages its clients ("equal" in the papers).

    >>> str(TDCD(local_steps=10, batch_size=64).topology)
    'V(10) H(10)'
    """

    local_steps: int = 10
    step_size: Schedule | float = 0.1
    batch_size: int | None = None
    batches: Literal["reused", "fresh"] = "reused"
    derivatives: Literal["each_step", "each_round", "continued"] = "each_step"
    order: Literal["parallel", "sequential"] = "parallel"
    weights: ClientWeights = "equal"

    shape = "V(Q) H(Q)"
    returns_blocks = True
    auto = ("local_steps", "step_size")
    proved_by = (theorem_names.ICASSP, theorem_names.TDCD)

    @property
    def unlike_theory(self) -> tuple[str, ...]:
        """The theorems are about silos in parallel whose clients are averaged alike."""
        return (*super().unlike_theory, *(() if self.weights == "equal" else ("clients do not all count alike",)))

    def on(self, *, clients: int, groups: int, labels_held: bool) -> Self:  # noqa: ARG002
        """Where labels are shared nobody has to ask for derivatives."""
        return self if labels_held or not self.asks_each_step else replace(self, derivatives="each_round")

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """Lines 7-34 for the Q iterations of round r."""
        parts = self.local_steps if self.batches == "fresh" else 1
        batch = fed.draw_batch(self.batch_size, round=r, parts=parts)  # line 9: same ids everywhere
        blocks = fed.broadcast(blocks, batch)  # lines 11-12
        now = fed.embed(blocks, batch)  # line 13
        eta, frozen = rate(self.step_size, r), None
        each_step = self.derivatives == "each_step"
        steps = 1 if each_step else self.local_steps  # between two exchanges: Remark 2, or lines 25-29
        for silo in fed.silos if self.order == "sequential" else (None,):
            if silo:
                now = fed.embed(blocks, batch, only=silo - 1, known=now)  # whose turn it was
            around = now if each_step else None
            for q in range(0, self.local_steps, steps):
                if q:
                    now = fed.embed(blocks, batch, only=silo, known=now)
                frozen = fed.exchange(now, batch, known=frozen, around=around, step=q, to=silo)  # lines 13-22
                local = LocalSteps(steps, eta, first=q, continued=self.derivatives == "continued")
                blocks = fed.descend(blocks, batch, frozen, local, only=silo)  # lines 25-29
        return fed.average(blocks, batch, weights=self.weights)  # line 32
