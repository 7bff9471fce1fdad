"""The exchanges, answered for everybody at once: clients are an axis, exchanges are array operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import ClientWeights, Within
from crosshatch.local.solve import Strategy, choose, solve
from crosshatch.protocol.batches import BatchSource
from crosshatch.protocol.client_weights import client_weights, counted_together
from crosshatch.protocol.message_contents import About, Call
from crosshatch.protocol.names import block_channel, head_channel
from crosshatch.simulator.accounting.accounts import Accounts, Behind
from crosshatch.simulator.accounting.branch_accounts import BranchAccounts
from crosshatch.simulator.vertical.arrivals import Arrivals
from crosshatch.simulator.vertical.averaging import averaged
from crosshatch.simulator.vertical.batch import Batch, Draws
from crosshatch.simulator.vertical.blocks import Average, Blocks, LocalSteps, Solver
from crosshatch.simulator.vertical.branches import Branches
from crosshatch.simulator.vertical.descending import Asked, Descending, Exchanged, rows_by_part
from crosshatch.simulator.vertical.embedding import Embedder, Embeddings
from crosshatch.simulator.vertical.optimising import Optimising
from crosshatch.simulator.vertical.sent import Components
from crosshatch.simulator.vertical.sharing import Frozen, Sharing
from crosshatch.task.task import Task

if TYPE_CHECKING:  # needs gmpy2, which is an extra
    from crosshatch.simulator.encrypted.encrypted_exchange import EncryptedExchange
    from crosshatch.simulator.encrypted.encrypted_transfer import EncryptedTransfer


@dataclass
class SimulatedFederation:
    """All parties of a federation in one process; see `crosshatch.exchanges.Federation` for what each method means.

    Every exchange is read in one direction: its messages are counted (`accounts`), then its numbers are computed.
    """

    data: FederatedData
    task: Task
    accounts: Accounts
    source: BatchSource
    arrivals: Arrivals
    strategy: Strategy = "auto"
    threads: int = 1
    keep_passes: bool = False  # the next local work is a single step: keep the exchange's forward pass for it
    window: int = 1  # local steps use the batches of so many rounds
    one_client: bool = False  # every silo's samples form one client
    branches: Branches | None = None  # between hubs and clients, where there are any
    optimising: Optimising | None = None  # the states of the task's optimiser, where it has one
    encrypted: EncryptedExchange | EncryptedTransfer | None = None  # how derivatives travel, where not in clear
    chosen: dict[str, set[str]] = field(default_factory=dict)  # strategies by silo, for the record
    uses: Counter[str] = field(default_factory=Counter)  # of each exchange in this round

    @cached_property
    def silos(self) -> Sequence[int]:
        """Numbers of the silos."""
        return range(len(self.data.silos))

    @cached_property
    def labels_held(self) -> bool:
        """Whether one silo alone knows the labels; on one machine everybody does."""
        return self.data.label_silo is not None and not self.accounts.links.one_machine

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the silos' embeddings."""
        return self.accounts.contents.widths

    @cached_property
    def _descending(self) -> Descending:
        return Descending(self.data, self.task, self.widths, self.arrivals.seed, self.optimising)

    @cached_property
    def _sharing(self) -> Sharing:
        return Sharing(self.data, self.task, self.arrivals, self.widths, Components.of_task(self.task, self.widths))

    @cached_property
    def embedder(self) -> Embedder:
        """Who computes the outputs."""
        links = self.accounts.links
        one_party = frozenset[int]() if links.hubs_together else links.one_party
        return Embedder(self.data, self.task, self.arrivals.seed, self.threads, self.keep_passes, one_party)

    def _clients(self, silo: int) -> int:
        return 1 if self.one_client else self.data.silos[silo].clients

    @cached_property
    def _draws(self) -> Draws:
        return Draws(
            self.source,
            tuple(silo.owners for silo in self.data.silos),
            tuple(self._clients(j) for j in self.silos),
            ordered=not self.keep_passes or bool(self.arrivals.altered),
            by_number=self.embedder.random,
            device=self.data.y_train.device,
            window=self.window,
        )

    def call(self, exchange: str, round: int) -> Call:
        """The next use of an exchange: every party counts the same, since all run the same text."""
        self.uses[exchange] += 1
        return Call(exchange, round, self.uses[exchange] - 1)

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """The round's samples from the shared seed; all of them are gathered once for the whole run."""
        batch = self._draws.draw(size, round=round, parts=parts, first=first)
        self.accounts.links.begin(batch)
        return batch

    def select(self, fraction: float, *, round: int) -> Batch:
        """The samples held by some clients of the silo with the most."""
        batch = self._draws.select(fraction, round=round)
        self.accounts.links.begin(batch)
        return batch

    def average_groups(self, blocks: Blocks, *, round: int, level: int = 0) -> Blocks:  # noqa: ARG002
        """A single group has nobody to average with."""
        return blocks

    def broadcast(self, blocks: Blocks, batch: Batch, *, within: Within = "silo", depth: int = 0) -> Blocks:
        """Hub (or server, or branches) to clients at work."""
        call = self.call("broadcast", batch.round)
        if self.optimising is not None:
            self.optimising.broadcast(batch)
        if self.branches is not None:
            BranchAccounts(self.branches, self.accounts).down(batch, depth, call)
            return self.branches.broadcast(blocks, batch, self.arrivals, self.task.trained, depth, call)
        self.accounts.broadcast(batch, within, call, self._behind("broadcast", self.silos, batch))
        if "broadcast" not in self.arrivals.altered:
            return Blocks(blocks.base)
        return Blocks(blocks.base, received=self.arrivals.broadcast(blocks.base, self.task.trained, call))

    def _behind(self, exchange: str, silos: Sequence[int], batch: Batch, to: str = "") -> Behind:
        """By silo which of its clients at work missed an earlier message that this one builds on."""
        if exchange not in self.arrivals.altered:
            return {}
        late = {
            j: self.arrivals.behind(exchange, f"{block_channel(j)}{to}", batch.clients[j], self._clients(j))
            for j in silos
            if j not in self.accounts.links.one_party
        }
        return {j: missed for j, missed in late.items() if missed is not None}

    def average(
        self, blocks: Blocks, batch: Batch, *, weights: ClientWeights = "equal", within: Within = "silo", depth: int = 0
    ) -> Blocks:
        """Clients at work to hub; the others' share of the average is the block they would have started from."""
        if self.branches is not None and blocks.steps is not None:
            tree, call = BranchAccounts(self.branches, self.accounts), self.call("average", batch.round)
            for j in blocks.steps.problems:
                tree.up(batch, j, depth, call)
            owners = [silo.owners for silo in self.data.silos]
            return self.branches.average(
                blocks, self._starts(blocks, batch), batch, weights, owners, self.arrivals, depth, call
            )
        return averaged([self.ask_average(blocks, batch, weights=weights, within=within)])[0]

    def ask_average(self, blocks: Blocks, batch: Batch, *, weights: ClientWeights, within: Within) -> Blocks:
        """Clients at work to hub; `averaged` computes it."""
        steps = blocks.steps
        if steps is None:
            return replace(blocks, received=())
        call = self.call("average", batch.round)
        self.accounts.average(batch, tuple(sorted(steps.problems)), within, call)
        silos = self.data.silos
        holders = {j: (silos[j].owners, self._clients(j), batch.clients[j]) for j in steps.problems}
        at_work = client_weights(holders, weights)
        idle = {
            j: 0.0 if len(batch.clients[j]) == self._clients(j) else 1.0 - float(each.sum())
            for j, each in at_work.items()
        }
        done = steps.done
        if "average" in self.arrivals.altered:
            starts = self._starts(blocks, batch)
            done = {
                j: self.arrivals.blocks(
                    rows, starts[j], j, batch.clients[j], self._clients(j), call, where=self.task.trained[j]
                )
                for j, rows in steps.client_blocks().items()
            }  # fmt: skip
        if self.optimising is not None:
            self.optimising.average(batch, at_work, idle)
        asked = LocalSteps(steps.problems, steps.solver, done, Average(at_work, idle))
        return Blocks(blocks.base, asked, blocks.branches, blocks.received)

    def counted(self, silo: int, batch: Batch, weights: ClientWeights) -> int:
        """How much a silo's clients count together beside those of other groups."""
        return counted_together(self.data.silos[silo].owners, self._clients(silo), batch.clients[silo], weights)

    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Outputs of the blocks, at the clients' own weights where they have moved."""
        return self.embedder.embed(blocks, self._starts(blocks, batch), batch, only=only, known=known)

    def share(
        self, embeddings: Embeddings, batch: Batch, *, senders: Sequence[int] | None = None, to: int | None = None
    ) -> Frozen:
        """Every receiver gets the others' part for its own samples."""
        receivers = list(self.silos) if to is None else [to]
        sending = [j for j in (self.silos if senders is None else sorted(set(senders))) if j != to]
        call = self.call("share", batch.round)
        if len(self.silos) > 1:
            behind: Behind = {}
            holder = self._sharing.head_holder
            if holder in sending:
                others = [j for j in receivers if j != holder]
                behind = self._behind("head", others, batch, f" {head_channel(to)}")
            self.accounts.share(batch, sending, receivers, call, behind)
        return self._sharing.share(embeddings, batch, sending, receivers, to=to, use=call.use)

    def share_derivatives(
        self, embeddings: Embeddings, batch: Batch, *, around: Embeddings | None = None, step: int = 0,
        senders: Sequence[int] | None = None, to: int | None = None,
    ) -> Frozen:  # fmt: skip
        """Embeddings to the label's holder, derivatives back."""
        holder = self.data.label_holder
        receivers = list(self.silos) if to is None else [to]
        sending = self.silos if senders is None else senders
        about = About.of(len(batch.parts), step, inner=around is not None, head=embeddings.head is not None)
        up, down = (self.call(exchange, batch.round) for exchange in ("share", "derivatives"))
        if self.encrypted is None:
            self.accounts.derivatives(batch, holder, sending, receivers, about, up, down)
        else:
            self.encrypted.clocks.begin()
            if self.encrypted.scores_in_clear:
                self.accounts.derivatives(batch, holder, sending, [holder], about, up, down)
        frozen = self._sharing.derivatives(
            embeddings, batch, around=embeddings if around is None else around, holder=holder, senders=sending,
            receivers=receivers, about=about, use=up.use,
        )  # fmt: skip
        if self.encrypted is None:
            return frozen
        return self.encrypted.exchange(frozen, batch, holder, sending, receivers, down, self.call)

    def descend(
        self, blocks: Blocks, batch: Batch, frozen: Frozen, *, steps: int, step_size: float, first: int = 0,
        proximal: float = 0.0, only: int | None = None, anticipation: float = 1.0, continued: bool = False,
        earlier: Sequence[Exchanged] = (),
    ) -> Blocks:  # fmt: skip
        """Ask for the local steps; `averaged` computes them, or whoever needs the clients' blocks."""
        silos = tuple(self.silos) if only is None else (only,)
        moved = {} if blocks.steps is None else blocks.steps.client_blocks()
        starts = self._starts(blocks, batch)
        problems = self._descending.problems(
            {j: moved.get(j, starts[j]) for j in silos}, [(batch, frozen), *earlier],
            Asked(steps, step_size, first, proximal, anticipation, continued),
        )  # fmt: skip
        in_one_part = len(batch.parts) == 1 and not earlier
        self.accounts.links.work(batch, silos, first, steps, None if in_one_part else rows_by_part(problems))
        for j, problem in problems.items():
            if not self.keep_passes or self.task.names[j] not in self.chosen:  # one pass serves all, whatever it is
                kind = choose(problem) if self.strategy == "auto" else self.strategy
                self.chosen.setdefault(self.task.names[j], set()).add(kind)
        asked = LocalSteps(problems, self._solver) if blocks.steps is None else blocks.steps.and_then(problems)
        if self.optimising is not None:  # at once: the next steps begin with the states of these
            asked.done.update(self.optimising.solve(problems, self._solver))
        if not self.nobody_to_average_with:
            return Blocks(blocks.base, asked, blocks.branches, blocks.received)
        ones = dict.fromkeys(asked.problems, torch.ones(1, dtype=torch.float64))
        own = replace(asked, average=Average(ones, dict.fromkeys(ones, 0.0)))
        return averaged([Blocks(blocks.base, own)])[0]  # the client's block is the hub's

    def _starts(self, blocks: Blocks, batch: Batch) -> Sequence[Tensor]:
        """What each silo's clients at work start from: (p,), or (clients, p) where their branches differ."""
        starts = blocks.received or blocks.branches or blocks.base
        if self.branches is None:
            return starts
        deepest, of = self.branches.deepest, self.branches.of
        return [
            start if start.dim() == 1 else start.index_select(0, torch.as_tensor(of(j, batch.clients[j], deepest)))
            for j, start in enumerate(starts)
        ]

    @cached_property
    def nobody_to_average_with(self) -> bool:
        """Whether every silo is one party; pairs of a device and its hospital are averaged, by the server."""
        links = self.accounts.links
        return len(links.one_party) == len(self.silos) and not links.hubs_together

    @cached_property
    def _solver(self) -> Solver:
        way = solve if self.encrypted is None else self.encrypted.solve
        return partial(way, strategy=self.strategy, threads=self.threads)
