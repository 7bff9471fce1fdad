"""The exchanges, answered for everybody at once: clients are an axis, exchanges are array operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import ClientWeights, Within
from crosshatch.local.problem import Part, Problem
from crosshatch.local.solve import Strategy, choose, solve
from crosshatch.protocol.batches import BatchSource, Ids
from crosshatch.protocol.client_weights import client_weights
from crosshatch.protocol.contents import About
from crosshatch.protocol.names import block_channel, head_channel
from crosshatch.simulator.accounting.branch_routes import BranchRoutes
from crosshatch.simulator.accounting.routes import Behind, Routes
from crosshatch.simulator.accounting.traffic import Traffic
from crosshatch.simulator.vertical.averaging import weighted_sums, with_idle
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.branches import Branches
from crosshatch.simulator.vertical.coding import Coding
from crosshatch.simulator.vertical.draws import Draws
from crosshatch.simulator.vertical.embedding import Embedder
from crosshatch.simulator.vertical.sharing import Sharing
from crosshatch.simulator.vertical.values import Blocks, Embeddings, Frozen, Moved
from crosshatch.task.task import Task


@dataclass
class SimulatedFederation:
    """All parties of a federation in one process; see `crosshatch.exchanges.Federation` for what each method means."""

    data: FederatedData
    task: Task
    traffic: Traffic
    source: BatchSource
    widths: tuple[int, ...]  # of the silos' embeddings
    coding: Coding
    strategy: Strategy = "auto"
    threads: int = 1
    keep_passes: bool = False  # the next local work is a single step: keep the exchange's forward pass for it
    one_client: bool = False  # every silo's samples form one client
    branches: Branches | None = None  # between hubs and clients, where there are any
    chosen: dict[str, set[str]] = field(default_factory=dict)  # strategies by silo, for the record
    _current: Batch | None = None

    @cached_property
    def silos(self) -> Sequence[int]:
        """Numbers of the silos."""
        return range(len(self.data.silos))

    @property
    def labels_held(self) -> bool:
        """Whether one silo alone knows the labels; on one machine everybody does."""
        return self.data.label_silo is not None and not self.traffic.free

    @cached_property
    def _label_holder(self) -> int:
        return [silo.name for silo in self.data.silos].index(str(self.data.label_silo))

    @cached_property
    def routes(self) -> Routes:
        holder = self.task.head_holder
        head = None if holder is None else (self.task.sent_head, holder)
        arriving = tuple(self.task.fusion.sent_width(self.widths, j) for j in self.silos)
        return Routes(self.traffic, self.data.silos[0].train.dtype, self.widths, arriving, head, self.coding.codecs)

    @cached_property
    def _sharing(self) -> Sharing:
        return Sharing(self.data, self.task, self.coding, self.widths)

    @cached_property
    def embedder(self) -> Embedder:
        """Who computes the outputs."""
        return Embedder(self.data, self.task, self.coding.seed, self.threads, self.keep_passes, self._start)

    def _clients(self, silo: int) -> int:
        return 1 if self.one_client else self.data.silos[silo].clients

    @cached_property
    def _draws(self) -> Draws:
        return Draws(
            self.source,
            tuple(silo.owners for silo in self.data.silos),
            tuple(self._clients(j) for j in self.silos),
            ordered=not self.keep_passes or bool(self.coding.codecs),
            by_number=self.embedder.random,
            device=self.data.y_train.device,
        )

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """The round's samples from the shared seed; all of them are gathered once for the whole run."""
        return self._begin(self._draws.draw(size, round=round, parts=parts, first=first))

    def select(self, fraction: float, *, round: int) -> Batch:
        """The samples held by some clients of the silo with the most."""
        return self._begin(self._draws.select(fraction, round=round))

    def _begin(self, batch: Batch) -> Batch:
        """Work on a batch begins; what was gathered for the last one goes."""
        if self._current is not None:
            self._current.forget()
        self._current = batch
        self.traffic.clocks.begin(batch.at_work)
        return batch

    def average_groups(self, blocks: Blocks, *, round: int, level: int = 0) -> Blocks:  # noqa: ARG002
        """A single group has nobody to average with."""
        return blocks

    def broadcast(self, blocks: Blocks, batch: Batch, *, within: Within = "silo", depth: int = 0) -> Blocks:
        """Hub (or server, or branches) to clients at work."""
        call = self.traffic.call("broadcast", batch.round)
        if self.branches is not None:
            tree = BranchRoutes(self.branches, self.routes)
            tree.down(batch, self.task.sent, depth, call)
            return self.branches.broadcast(blocks, batch, self.coding, self.task.trained, depth)
        behind = self._behind("broadcast", self.silos, batch)
        self.routes.blocks_down(batch, self.task.sent, within, call, behind)
        return Blocks(blocks.base, received=self.coding.broadcast(blocks.base, self.task.trained, batch.round))

    def _behind(self, exchange: str, silos: Sequence[int], batch: Batch, to: str = "") -> Behind:
        """By silo which of its clients at work missed an earlier message that this one builds on."""
        if exchange not in self.coding.codecs:
            return {}
        late = {
            j: self.coding.behind(exchange, f"{block_channel(j)}{to}", batch.clients[j], self._clients(j))
            for j in silos
            if j not in self.traffic.single
        }
        return {j: missed for j, missed in late.items() if missed is not None}

    def average(
        self,
        blocks: Blocks,
        batch: Batch,
        *,
        weights: ClientWeights = "equal",
        within: Within = "silo",
        depth: int = 0,
    ) -> Blocks:
        """Clients at work to hub; the others' share of the average is the block they would have started from."""
        if blocks.moved is None:
            return replace(blocks, received=())
        if self.branches is not None:
            tree, call = BranchRoutes(self.branches, self.routes), self.traffic.call("average", batch.round)
            for j in blocks.moved.problems:
                tree.up(batch, j, self.task.sent[j], depth, call)
            return self.branches.average(
                blocks, batch, weights, [silo.owners for silo in self.data.silos], self.coding, depth
            )
        shares = self.client_weights(batch, weights)
        sums = weighted_sums(blocks, batch, shares, self.coding, [self._clients(j) for j in self.silos])
        self.count_average(blocks, batch, within)
        return self.finish_average(blocks, batch, shares, sums)

    def client_weights(self, batch: Batch, weights: ClientWeights) -> dict[int, Tensor]:
        """For each silo the weights of its clients at work in the average."""
        return {
            j: client_weights(silo.owners, self._clients(j), batch.clients[j], weights)
            for j, silo in enumerate(self.data.silos)
        }

    def count_average(self, blocks: Blocks, batch: Batch, within: Within) -> None:
        """The messages of an average."""
        assert blocks.moved is not None
        sizes = {j: self.task.sent[j] for j in blocks.moved.problems}
        call = self.traffic.call("average", batch.round)
        self.routes.blocks_up(batch, sizes, within, call)

    def finish_average(
        self, blocks: Blocks, batch: Batch, shares: dict[int, Tensor], sums: dict[int, Tensor]
    ) -> Blocks:
        """The hubs' blocks from the weighted sums over the clients at work."""
        base = list(blocks.base)
        for j, total in sums.items():
            everyone = len(batch.clients[j]) == self._clients(j)
            idle = 0.0 if everyone else 1.0 - float(shares[j].sum())
            base[j] = with_idle(total, base[j], idle)
        return Blocks(tuple(base))

    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Outputs of the blocks, at the clients' own weights where they have moved."""
        return self.embedder.embed(blocks, batch, only=only, known=known)

    def share(self, embeddings: Embeddings, batch: Batch, *, to: int | None = None) -> Frozen:
        """Every receiver gets the others' part for its own samples."""
        receivers = list(self.silos) if to is None else [to]
        call = self.traffic.call("share", batch.round)
        if len(self.silos) > 1:
            others = [j for j in receivers if embeddings.head is not None and not self.task.holds_head(j)]
            behind = self._behind("head", others, batch, f" {head_channel(to)}")
            self.routes.share(batch, receivers, call, behind)
        return self._sharing.share(embeddings, batch, to=to, use=call.use)

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
        """Embeddings to the label's holder, derivatives back."""
        holder = self._label_holder
        receivers = list(self.silos) if to is None else [to]
        sending = self.silos if senders is None else senders
        about = About.of(len(batch.parts), step, inner=around is not None, head=embeddings.head is not None)
        up, down = (self.traffic.call(exchange, batch.round) for exchange in ("share", "derivatives"))
        self.routes.derivatives(batch, holder, sending, receivers, about, up, down)
        return self._sharing.derivatives(
            embeddings, batch, around=embeddings if around is None else around, holder=holder, senders=sending,
            receivers=receivers, about=about, use=up.use,
        )  # fmt: skip

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
    ) -> Blocks:
        """Ask for the local steps; they are computed when their result is needed."""
        earlier = blocks.moved.rows() if blocks.moved is not None else {}
        problems = {}
        every = range(len(batch.parts))
        used = every if steps > 1 else [first % len(every)]
        for j in self.silos if only is None else (only,):
            start = earlier.get(j, self._start(blocks, batch, j))
            kept = frozen.passes[j] if used[0] == 0 else None
            from_passes = steps == 1 and kept is not None and kept.start is start
            knowns = (frozen.at_start if from_passes and frozen.at_start else frozen.known)(j)
            parts = tuple(
                Part(batch.features(j, s, self.data.silos[j].train), knowns[s], share.counts, share.owners)
                for s, share in ((s, batch.shares[j][s]) for s in used)
            )
            problems[j] = Problem(
                task=self.task, silo=j, parts=parts, start=start,
                head=None if self.task.holds_head(j) else frozen.head, columns=self.task.fusion.columns(self.widths, j),
                steps=steps, step_size=step_size, first=first, proximal=proximal, kept_pass=kept,
                seed=(self.coding.seed, batch.round), numbers=batch.clients[j],
            )  # fmt: skip
            if not self.keep_passes or self.task.names[j] not in self.chosen:  # one pass serves all, whatever it is
                kind = choose(problems[j]) if self.strategy == "auto" else self.strategy
                self.chosen.setdefault(self.task.names[j], set()).add(kind)
        silos = tuple(problems)
        self.traffic.work(batch.crowd(silos), _steps_worked(batch, silos, first, steps))
        moved = Moved(problems, self._solve) if blocks.moved is None else blocks.moved.and_then(problems)
        return self._settle(replace(blocks, moved=moved))

    def _start(self, blocks: Blocks, batch: Batch, silo: int) -> Tensor:
        start = blocks.at_clients(silo)
        if start.dim() == 1 or self.branches is None:
            return start
        own = self.branches.of(silo, batch.clients[silo], self.branches.deepest)
        return start.index_select(0, torch.as_tensor(own))

    @cached_property
    def settles(self) -> bool:
        """Whether nobody is averaged with in here; pairs of a device and its hospital are, by the server."""
        return len(self.traffic.single) == len(self.silos) and not self.traffic.together

    def _settle(self, blocks: Blocks) -> Blocks:
        """Where every silo is one party there is nobody to average with: the client's block is the hub's."""
        if blocks.moved is None or not self.settles:
            return blocks
        sums = blocks.moved.sums({j: torch.ones(1, dtype=torch.float64) for j in blocks.moved.problems})
        return Blocks(tuple(sums.get(j, weights) for j, weights in enumerate(blocks.base)))

    def _solve(self, problems: list[Problem], weights: list[Tensor], keep: bool) -> list[Tensor]:
        return solve(problems, weights, keep=keep, strategy=self.strategy, threads=self.threads)


def _steps_worked(batch: Batch, silos: Sequence[int], first: int, steps: int) -> int | Ids:
    """How many of the steps each client at work has samples for."""
    if len(batch.parts) == 1:
        return steps
    worked: Ids = np.sum([batch.counts(silos, (first + q) % len(batch.parts)) > 0 for q in range(steps)], axis=0)
    return worked
