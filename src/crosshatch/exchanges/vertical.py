"""What an algorithm may ask of other parties: the exchanges, and the local work between them.

An algorithm is written once against `Federation`. The simulator answers for everybody at once; a runtime answers in
each party for that party's own share. What the four kinds of value *are* is the engine's business; an algorithm only
hands them on:

- `Blocks`: the weights, at the hubs between rounds and at the clients within one;
- `Batch`: the samples of a round, the same ids everywhere, shared out by who holds them;
- `Embeddings`: the blocks' outputs for a batch;
- `Frozen`: what a silo's clients know of the others until the next exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeVar

from crosshatch.protocol.names import ClientWeights
from crosshatch.schedules import Schedule
from crosshatch.topology import Topology

Within = Literal["silo", "federation"]
Blocks = TypeVar("Blocks")
Batch = TypeVar("Batch")
Embeddings = TypeVar("Embeddings")
Frozen = TypeVar("Frozen")


Memory = tuple[Any, ...]
"""What an algorithm carries from round to round: batches, what is frozen, tensors, arrays, numbers, strings and None,
also in tuples, lists and dicts within. Engines keep it in checkpoints."""


class Federation(Protocol[Blocks, Batch, Embeddings, Frozen]):
    """The parties, as an algorithm sees them."""

    @property
    def silos(self) -> Sequence[int]:
        """Numbers of the silos."""
        ...

    @property
    def labels_held(self) -> bool:
        """Whether one silo alone knows the labels."""
        ...

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """`parts` of the round's sets of `size` samples (None: all samples), from number `first` on.

        Drawn from the shared seed: no message.
        """
        ...

    def select(self, fraction: float, *, round: int) -> Batch:
        """The samples of a fraction of the clients (of the silo with the most), drawn in each group: no message."""
        ...

    def average_groups(self, blocks: Blocks, *, round: int, level: int = 0) -> Blocks:
        """From groups to server and back: every group gets the average, weighted by the groups' samples.

        `level` counts the horizontal tiers above the vertical one from the outermost (0: everybody).
        """
        ...

    def broadcast(self, blocks: Blocks, batch: Batch, *, within: Within = "silo", depth: int = 0) -> Blocks:
        """From hub to clients: each client holding samples of the batch gets its silo's block.

        Within the "federation" it is the server that sends, to the clients themselves. From a `depth` above 0 it is the
        branches that many tiers below the hub.
        """
        ...

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
        ...

    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Outputs of the blocks for the batch; with `only`, that silo's anew and the rest from `known`: no message."""
        ...

    def share(
        self, embeddings: Embeddings, batch: Batch, *, senders: Sequence[int] | None = None, to: int | None = None
    ) -> Frozen:
        """From client to hub to other hubs to clients: everybody (or silo `to`) gets the others' part for its samples.

        With a trained head its holder sends the head along. `senders` are the silos whose embeddings are sent (default:
        all): those that the receivers do not know yet, or that are not absent. Nothing travels of the others; receivers
        go on with what they saw of them (and of the head) since the batch was drawn, and there must be something.
        """
        ...

    def share_derivatives(
        self,
        embeddings: Embeddings,
        batch: Batch,
        *,
        around: Embeddings | None = None,
        step: int = 0,
        senders: Sequence[int] | None = None,
        to: int | None = None,
    ) -> Frozen:
        """Labels held: embeddings go to the label's holder, the loss's derivatives come back.

        In a transfer task it is the components that come back, from which derivatives follow.

        The derivative for a silo is taken at its own `embeddings` and the others' in `around` (default: the same).
        `senders` are the silos whose embeddings the holder does not know yet (default: all others); of any other it
        goes on with what it was last sent of this batch, and there must be something. `step` above 0 is an exchange
        within a round, of the samples of that local step.
        """
        ...

    def descend(
        self,
        blocks: Blocks,
        batch: Batch,
        frozen: Frozen,
        *,
        steps: int,
        step_size: float,
        first: int = 0,
        proximal: float = 0.0,
        only: int | None = None,
        anticipation: float = 1.0,
        continued: bool = False,
        earlier: Sequence[tuple[Batch, Frozen]] = (),
    ) -> Blocks:
        """`steps` local gradient steps at every client (of silo `only`): no message.

        A batch of several parts is used part by part, beginning with number `first`, and after it what was exchanged
        `earlier`, newest first. A client that is at work now but has no samples of a part from earlier takes in its
        place the first part of `batch` that it has samples of. `proximal` is the weight of a proximal term towards the
        block the client starts from.

        With an `anticipation` above 1 each silo assumes that the others move along: the loss's derivative is taken that
        many times as far from the scores of the exchange as the silo alone has moved them. Derivatives that the label's
        holder sent stay as they are, or go on with the silo's own scores (`continued`, for a sum).
        """
        ...


class Algorithm(Protocol):
    """A method: settings and the text of one round."""

    @property
    def local_steps(self) -> int:
        """Q: local steps per round."""
        ...

    @property
    def step_size(self) -> Schedule | float:
        """eta: the step size of a round."""
        ...

    @property
    def topology(self) -> Topology:
        """The tiers it runs on, with their intervals."""
        ...

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """The hubs' blocks after round r, a pure function of those before, the round number and the seed."""
        ...


class RememberingAlgorithm(Protocol):
    """A method that carries something besides the blocks from round to round; it declares `remembers`."""

    @property
    def local_steps(self) -> int:
        """Q: local steps per round."""
        ...

    @property
    def step_size(self) -> Schedule | float:
        """eta: the step size of a round."""
        ...

    @property
    def topology(self) -> Topology:
        """The tiers it runs on, with their intervals."""
        ...

    def run_round(
        self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int, memory: Memory
    ) -> tuple[Blocks, Memory]:
        """The same as a pure function of the memory too, which is `()` before the first round."""
        ...
