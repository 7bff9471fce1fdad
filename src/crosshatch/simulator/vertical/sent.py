"""What silos know of each other after an exchange, and what was sent of a batch so far.

The second is for exchanges in which receivers go on with what they saw before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.local.problem import LossInputs
from crosshatch.protocol.refusals import check_seen
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.embedding import Embeddings
from crosshatch.task.losses import Transfer
from crosshatch.task.task import Task

Rows = tuple[Tensor, ...]
"""A silo's embeddings, part by part in the batch's order."""
KnownBySilo = Mapping[int, Sequence[LossInputs]]
"""Part by part."""
StoodBySilo = Mapping[int, Sequence[Tensor]]
"""Part by part, (n, c) in the order of the silo's clients."""
Known = Callable[[Sequence[int]], KnownBySilo]
Stood = Callable[[Sequence[int]], StoodBySilo]
"""Both worked out for the silos that are asked for."""


@dataclass(frozen=True)
class Components:
    """What the sides of a transfer task know after an exchange; `u_a` and `u_b` are their columns among all."""

    transfer: Transfer
    holder: int
    u_a: slice
    u_b: slice

    @classmethod
    def of_task(cls, task: Task, widths: tuple[int, ...]) -> Components | None:
        """Those of a task whose embeddings have these widths; None where nothing is transferred."""
        holder, columns = task.head_holder, task.fusion.columns
        if task.transfer is None or holder is None:
            return None
        return cls(task.transfer, holder, slice(*columns(widths, holder)), slice(*columns(widths, 1 - holder)))

    def told(
        self, known: Known, embeddings: Embeddings, batch: Batch, class_mean: Tensor | None
    ) -> tuple[Known, Stood]:
        """What each side knows, and where it stood, from what is known without regard to transfer."""

        def components(asking: Sequence[int]) -> KnownBySilo:
            return {j: [self._told(j, one, class_mean) for one in parts] for j, parts in known(asking).items()}

        def stood(asking: Sequence[int]) -> StoodBySilo:
            return {
                j: [self._stood(j, s, one, embeddings, batch) for s, one in enumerate(parts)]
                for j, parts in components(asking).items()
            }

        return components, stood

    def _told(self, silo: int, inputs: LossInputs, class_mean: Tensor | None) -> LossInputs:
        """The other side's components: as they were sent in a derivative's place, or of Phi_A and the labels."""
        if inputs.derivative is not None:
            return LossInputs(rest=inputs.derivative)
        assert inputs.rest is not None
        if silo == self.holder:
            return LossInputs(y=inputs.y, rest=inputs.rest[:, self.u_b])
        assert class_mean is not None
        assert inputs.y is not None
        return LossInputs(rest=self.transfer.components(inputs.rest[:, self.u_a], class_mean, inputs.y))

    def _stood(self, silo: int, part: int, inputs: LossInputs, embeddings: Embeddings, batch: Batch) -> Tensor:
        (own,) = batch.by_client([silo], part, [embeddings.values[silo][part]])
        class_mean = embeddings.clients_head if silo == self.holder else None
        return self.transfer.stood(inputs.sides(self.transfer, own, class_mean))


@dataclass(frozen=True)
class Sent:
    """What arrived of an exchange: by sender its embeddings at everybody or silo `to`, and the head at `with_head`."""

    batch: Batch
    arrived: Mapping[int, Rows]
    to: int | None
    head: Tensor | None = None
    with_head: Sequence[int] = ()


@dataclass(frozen=True)
class SentSoFar:
    """All exchanges about the samples of the last one, in order."""

    silos: int
    exchanges: list[Sent] = field(default_factory=list)

    def seen_by(self, silo: int, own: Rows) -> dict[int, Rows]:
        """What a silo knows of all: its own embeddings, and of each other what it saw last."""
        seen: dict[int, Rows] = {}
        for sent in self.exchanges:
            seen |= sent.arrived if sent.to in (None, silo) else {}
        check_seen(seen, (j for j in range(self.silos) if j != silo))
        return seen | {silo: own}

    def head_at(self, silos: Sequence[int], batch: Batch) -> Tensor | None:
        """The head that these silos were sent last."""
        before = [sent for sent in reversed(self.exchanges) if sent.batch is batch]
        heads = [next(sent.head for sent in before if i in sent.with_head) for i in silos]
        if any(one is not heads[0] for one in heads):
            raise ConfigError(
                "share: silos were sent different heads since the batch was drawn: name its holder in senders"
            )
        return heads[0]
