"""TDCD: block descent across silos on frozen embeddings, local SGD inside them.

Das et al., arXiv:2108.08930, Algorithm 1 (journal); Das and Patterson, arXiv:2102.03620, Algorithm 1 (ICASSP).
theta_j: block   Phi_-j: frozen   Q: local_steps   eta: step_size   zeta: batch

The journal reuses one mini-batch for the Q steps of a round; the ICASSP version exchanges the embeddings of Q
mini-batches up front. Line 32 of the journal averages after the Q-th step (its index is off by one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from crosshatch.algorithms.checks import check_batch_size, check_choice, check_local_steps
from crosshatch.exchanges import Batch, Blocks, ClientWeights, DrawsBatches, Embeddings, Federation, Frozen
from crosshatch.schedules import Schedule, check_step_size, rate
from crosshatch.theory import theorem_names
from crosshatch.topology import Tier, Topology


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

    auto = ("local_steps", "step_size")
    proved_by = (theorem_names.ICASSP, theorem_names.TDCD)

    def __post_init__(self) -> None:
        """Refuse settings that make no sense."""
        check_local_steps(self.local_steps)
        check_batch_size(self.batch_size)
        check_step_size(self.step_size)
        check_choice("batches", self.batches, ("reused", "fresh"))
        check_choice("derivatives", self.derivatives, ("each_step", "each_round", "continued"))
        check_choice("order", self.order, ("parallel", "sequential"))
        check_choice("weights", self.weights, ("equal", "samples", "at_work"))

    @property
    def fresh_batches(self) -> bool:
        """Those of the ICASSP version."""
        return self.batches == "fresh"

    @property
    def asks_each_step(self) -> bool:
        """Remark 2."""
        return self.derivatives == "each_step"

    @property
    def continues_derivatives(self) -> bool:
        """Not in the papers."""
        return self.derivatives == "continued"

    @property
    def takes_turns(self) -> bool:
        """Not in the papers."""
        return self.order == "sequential"

    @property
    def unlike_theory(self) -> tuple[str, ...]:
        """The theorems are about silos in parallel whose clients are averaged alike."""
        turns = ("silos take turns",) if self.takes_turns else ()
        return turns if self.weights == "equal" else (*turns, "clients do not all count alike")

    @property
    def topology(self) -> Topology:
        """Embeddings and blocks move every Q steps."""
        return Topology((Tier("V", self.local_steps), Tier("H", self.local_steps)))

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """Lines 7-34 for the Q iterations of round r."""
        parts = self.local_steps if self.fresh_batches else 1
        batch = fed.draw_batch(
            self.batch_size, round=r, parts=parts
        )  # line 9: same ids everywhere, from the shared seed
        blocks = fed.broadcast(blocks, batch)  # lines 11-12
        embeddings = fed.embed(blocks, batch)  # line 13
        step_size, changed = rate(self.step_size, r), tuple(fed.silos)
        if self.takes_turns:
            for silo in fed.silos:
                blocks = self._descend(fed, blocks, batch, embeddings, step_size, changed, silo)
                embeddings = fed.embed(blocks, batch, only=silo, known=embeddings)
                changed = (silo,)  # what the label's holder has not seen of this batch
        else:
            blocks = self._descend(fed, blocks, batch, embeddings, step_size, changed, None)
        return fed.average(blocks, batch, weights=self.weights)  # line 32

    def _descend(
        self,
        fed: Federation[Blocks, Batch, Embeddings, Frozen],
        blocks: Blocks,
        batch: Batch,
        embeddings: Embeddings,
        step_size: float,
        changed: Sequence[int],
        silo: int | None,
    ) -> Blocks:
        """An exchange and the local steps after it, of all silos or of the one whose turn it is."""
        if not fed.labels_held:
            frozen = fed.share(embeddings, batch, to=silo)  # lines 13-22
        elif self.asks_each_step:
            return self._ask_each_step(fed, blocks, batch, embeddings, step_size, changed, silo)
        else:
            frozen = fed.share_derivatives(embeddings, batch, senders=changed, to=silo)
        return fed.descend(  # lines 25-29
            blocks, batch, frozen, steps=self.local_steps, step_size=step_size, only=silo,
            continued=self.continues_derivatives and fed.labels_held,
        )  # fmt: skip

    def _ask_each_step(
        self,
        fed: Federation[Blocks, Batch, Embeddings, Frozen],
        blocks: Blocks,
        batch: Batch,
        embeddings: Embeddings,
        step_size: float,
        changed: Sequence[int],
        silo: int | None,
    ) -> Blocks:
        """Remark 2: every local step begins with the derivatives at the client's own new embeddings."""
        start = embeddings
        for q in range(self.local_steps):
            if q:
                embeddings = fed.embed(blocks, batch, only=silo, known=embeddings)
                changed = tuple(fed.silos) if silo is None else (silo,)
            frozen = fed.share_derivatives(embeddings, batch, around=start, step=q, senders=changed, to=silo)
            blocks = fed.descend(blocks, batch, frozen, steps=1, step_size=step_size, first=q, only=silo)
        return blocks
