"""What an algorithm may ask of other parties: the exchanges, and the local work between them.

An algorithm is written once against `Federation`. The simulator answers for everybody at once; a party answers for its
own share. What the four kinds of value *are* is the engine's business; an algorithm only hands them on:

- `Blocks`: the weights, at the hubs between rounds and at the clients within one;
- `Batch`: the samples of a round, the same ids everywhere, shared out by who holds them;
- `Embeddings`: the blocks' outputs for a batch;
- `Frozen`: what silos' clients know of the others, for the samples of a batch, until the next exchange.

All of them are data: they can be pickled, compared and kept. An exchange is a function of them alone: whatever somebody
knows from before is an argument (`known`).

To add one: "How to add" in CONTRIBUTING.md. What agents on a graph exchange is in `duals.py` and `tokens.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar, final

from crosshatch.errors import ConfigError
from crosshatch.exchanges.spelled_out import as_local_steps
from crosshatch.local.local_steps import LocalSteps
from crosshatch.protocol.names import ClientWeights

Within = Literal["silo", "federation"]
Blocks = TypeVar("Blocks")
Batch = TypeVar("Batch")
Embeddings = TypeVar("Embeddings")
Frozen = TypeVar("Frozen")
Number = TypeVar("Number", bool, int, float)


Memory = tuple[Any, ...]
"""What an algorithm carries from round to round: batches, what is frozen, tensors, arrays, numbers, strings and None,
also in tuples, lists and dicts within. Engines keep it in checkpoints."""


class Federation(ABC, Generic[Blocks, Batch, Embeddings, Frozen]):
    """The parties, as an algorithm sees them.

    >>> from crosshatch import Federation, FedSGD, LocalSteps
    >>> def run_round(fed: Federation, blocks, r):  # FedSGD, written out
    ...     batch = fed.draw_batch(32, round=r)
    ...     frozen = fed.exchange(fed.embed(blocks, batch), batch)
    ...     return fed.descend(blocks, batch, frozen, LocalSteps(1, 0.1))
    """

    @property
    @abstractmethod
    def silos(self) -> Sequence[int]:
        """Numbers of the silos."""

    @property
    @abstractmethod
    def labels_held(self) -> bool:
        """Whether one silo alone of several knows the labels. `exchange` goes by it, so that texts need not ask."""

    @abstractmethod
    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """`parts` of the round's sets of `size` samples (None: all samples), from number `first` on.

        Drawn from the shared seed: no message.
        """

    @abstractmethod
    def select(self, fraction: float, *, round: int) -> Batch:
        """The samples of a fraction of the clients (of the silo with the most), drawn in each group: no message."""

    @abstractmethod
    def average_groups(self, blocks: Blocks, *, round: int, level: int = 0) -> Blocks:
        """From groups to server and back: every group gets the average, weighted by the groups' samples.

        `level` counts the horizontal tiers above the vertical one from the outermost (0: everybody).
        """

    @abstractmethod
    def broadcast(self, blocks: Blocks, batch: Batch, *, within: Within = "silo", depth: int = 0) -> Blocks:
        """From hub to clients: each client holding samples of the batch gets its silo's block.

        Within the "federation" it is the server that sends, to the clients themselves. From a `depth` above 0 it is the
        branches that many tiers below the hub.
        """

    @abstractmethod
    def average(
        self,
        blocks: Blocks,
        batch: Batch,
        *,
        weights: ClientWeights = "equal",
        within: Within = "silo",
        depth: int = 0,
    ) -> Blocks:
        """From clients to hub: the hub's block becomes the average over its clients.

        "equal" and "samples" (held) are over all clients: one without samples in the batch sends nothing, its share is
        the block it would have started from. "at_work" is over those with samples in the batch alone. Within the
        "federation" the clients of all groups send to the server itself and are averaged together. To a `depth` above
        0 it is the branches that many tiers below the hub which average, each over its own clients.
        """

    @abstractmethod
    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Outputs of the blocks for the batch; with `only`, that silo's anew and the rest from `known`: no message."""

    @abstractmethod
    def exchange(
        self,
        embeddings: Embeddings,
        batch: Batch,
        *,
        known: Frozen | None = None,
        around: Embeddings | None = None,
        step: int = 0,
        senders: Sequence[int] | None = None,
        to: int | None = None,
    ) -> Frozen:
        """What silos (or silo `to` alone) get to know of the others for their samples of the batch.

        Where labels are shared, embeddings go from client to hub to other hubs to their clients; with a trained head
        its holder sends the head along. Where one silo holds the labels, embeddings go to that silo and the loss's
        derivatives come back; in a transfer task the components from which they follow.

        `known` is what was known of this batch before, the outcome of an earlier exchange. Nothing travels of silos
        that are not among the `senders`: who would have got their embeddings (and head) goes on with those in `known`.
        By default senders are all silos whose embeddings are others than those in `known`. A silo that is not reached
        (`to`) knows what it knew.

        With `around` the exchange belongs to the local step numbered `step`: where one silo holds the labels, each
        silo's derivative is taken at its own `embeddings` and the others' in `around`, for the samples of that step.
        Where labels are shared there is nothing to ask within a round: what was known stays.
        """

    @abstractmethod
    def decide(self, value: Number, *, round: int, by: int = 0) -> Number:
        """What one party says where the way of a text depends on data, such as a verdict or a patience that is over.

        The hub of silo `by` (in groups that of the first) tells the others, and all of them their clients, at work or
        not: whatever value somebody else has come to, all go on with this one.
        """

    @abstractmethod
    def _descend(
        self,
        blocks: Blocks,
        batch: Batch,
        frozen: Frozen,
        local: LocalSteps,
        *,
        only: int | None,
        earlier: Sequence[tuple[Batch, Frozen]],
    ) -> Blocks:
        """What `descend` does."""

    @final
    def descend(
        self,
        blocks: Blocks,
        batch: Batch,
        frozen: Frozen,
        local: LocalSteps | None = None,
        *,
        only: int | None = None,
        earlier: Sequence[tuple[Batch, Frozen]] = (),
        **spelled: Any,
    ) -> Blocks:
        """Local gradient steps, as `local` says, at every client (of silo `only`): no message.

        A batch of several parts is used part by part, and after it what was exchanged `earlier`, newest first. A client
        that is at work now but has no samples of a part from earlier takes in its place the first part of `batch` that
        it has samples of.
        """
        if local is None or spelled:
            local = as_local_steps(local, spelled)
        return self._descend(blocks, batch, frozen, local, only=only, earlier=earlier)

    @final
    def share(self, embeddings: Embeddings, batch: Batch, **known: Any) -> Frozen:
        """`exchange` for federations whose silos all have the labels, and refused elsewhere."""
        if self.labels_held:
            raise ConfigError(
                "share is for silos that all have the labels, here one of them holds them (federation.labels): use "
                "fed.exchange in its place, by which the others get derivatives"
            )
        return self.exchange(embeddings, batch, **known)

    @final
    def share_derivatives(self, embeddings: Embeddings, batch: Batch, **known: Any) -> Frozen:
        """`exchange` for federations where one silo of several holds the labels, and refused elsewhere."""
        if not self.labels_held and len(self.silos) > 1:
            raise ConfigError(
                "share_derivatives is for labels that one silo holds, here all silos have them (federation.labels): "
                "use fed.exchange in its place, by which silos get each other's embeddings"
            )
        return self.exchange(embeddings, batch, **known)
