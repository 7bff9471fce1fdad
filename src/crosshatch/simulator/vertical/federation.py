"""The exchanges, answered for everybody at once: clients are an axis, exchanges are array operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import Algorithm, ClientWeights, Federation, LocalSteps, Number, Within, declared
from crosshatch.local.problem import Problem
from crosshatch.local.solve import Strategy, solve
from crosshatch.protocol.batches import BatchSource
from crosshatch.protocol.class_means import find_anchors
from crosshatch.protocol.client_weights import client_weights
from crosshatch.protocol.message_contents import About, Call
from crosshatch.protocol.names import head_channel
from crosshatch.protocol.refusals import check_selects, check_server_keeps
from crosshatch.protocol.what_is_known import check_decision, check_only, check_samples, find_route
from crosshatch.simulator.accounting.accounts import Accounts, Missed
from crosshatch.simulator.accounting.branch_accounts import BranchAccounts
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.averaging import AtClients, Solver, Weighed, averaged
from crosshatch.simulator.vertical.batch import Batch, Draws
from crosshatch.simulator.vertical.blocks import Blocks
from crosshatch.simulator.vertical.branches import Branches
from crosshatch.simulator.vertical.descending import Descending, Exchanged, rows_by_part
from crosshatch.simulator.vertical.embedding import Embedder, Embeddings
from crosshatch.simulator.vertical.encryption_hook import Encryption
from crosshatch.simulator.vertical.on_the_way import OnTheWay
from crosshatch.simulator.vertical.optimising import Optimising
from crosshatch.simulator.vertical.sharing import Asked, Frozen, Sharing
from crosshatch.task.task import Task


@dataclass
class SimulatedFederation(Federation[Blocks, Batch, Embeddings, Frozen]):
    """All parties of a federation in one process; see `crosshatch.exchanges.Federation` for what each method means.

    Every exchange is read in one direction: its messages are counted (`accounts`), then its numbers are computed.
    """

    data: FederatedData
    task: Task
    accounts: Accounts
    source: BatchSource
    on_the_way: OnTheWay
    algorithm: Algorithm
    strategy: Strategy = "auto"
    threads: int = 1
    branches: Branches | None = None  # between hubs and clients, where there are any
    optimising: Optimising | None = None  # the states of the task's optimiser, where it has one
    encrypted: Encryption | None = None  # how derivatives travel, where not in clear
    chosen: dict[str, set[str]] = field(default_factory=dict)  # strategies by silo, for the record
    round: int = 0
    uses: Counter[str] = field(default_factory=Counter)  # of each exchange in this round

    def __post_init__(self) -> None:
        """Put together who computes the numbers."""
        links, widths = self.accounts.links, self.accounts.contents.widths
        one_party, self.clients = self.on_the_way.one_party, self.on_the_way.clients
        self._known = known = declared(self.algorithm)
        self.passes = Passes(self.data, known.window)
        self._coded = self.on_the_way.channels.codecs  # by exchange; what is sent in others arrives as it is
        self.sharing = Sharing(self.task, self.passes, self.on_the_way, widths)
        seed, anchors = self.on_the_way.channels.seed, find_anchors(self.data, self.task)
        self._descending = Descending(self.data, self.task, self.passes, widths, seed, self.optimising, anchors)
        one_step = self.algorithm.local_steps == 1 or known.central  # the next local work needs the exchange's pass
        self.embedder = Embedder(
            self.data, self.task, self.passes, seed, self.threads, one_step, one_party, anchors, links.hubs_together
        )
        steps = solve if self.encrypted is None else self.encrypted.solve
        self.solver: Solver = partial(steps, strategy=self.strategy, threads=self.threads, chosen=self.chosen)
        unsent = frozenset(range(len(widths))) if links.one_machine else links.one_party
        self.at_clients = AtClients(self.solver, self.passes, self.branches, one_party, unsent)

    def begin_round(self, round: int) -> None:
        """Nothing of the round before is left: no exchange was used yet."""
        self.round = round
        for kept in (self.uses, self.passes.kept, self.passes.blocks):
            kept.clear()
        for links in self.accounts.links.every:
            links.of_round.clear()
        if self.optimising is not None:
            self.optimising.begin_round()

    @cached_property
    def silos(self) -> Sequence[int]:
        """Numbers of the silos."""
        return range(len(self.data.silos))

    @cached_property
    def labels_held(self) -> bool:
        """Whether one silo alone knows the labels; on one machine everybody does."""
        return self.data.label_silo is not None and not self.accounts.links.one_machine and len(self.silos) > 1

    @cached_property
    def _draws(self) -> Draws:
        owners, device = tuple(silo.owners for silo in self.data.silos), self.data.y_train.device
        return Draws(self.source, owners, self.clients, in_order_of_ids=self.embedder.random, device=device)

    def call(self, exchange: str, round: int) -> Call:
        """The next use of an exchange: every party counts the same, since all run the same text."""
        self.uses[exchange] += 1
        return Call(exchange, round, self.uses[exchange] - 1)

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """The round's samples from the shared seed; all of them are gathered once for the whole run."""
        return self._draws.draw(size, round=round, parts=parts, first=first)

    def select(self, fraction: float, *, round: int) -> Batch:
        """The samples held by some clients of the silo with the most."""
        if max(self.clients) > 1 and fraction < 1:
            declares = self._known.fraction
            check_selects(fraction, says_so=declares is not None and declares < 1)
        return self._draws.select(fraction, round=round)

    def average_groups(self, blocks: Blocks, *, round: int, level: int = 0) -> Blocks:  # noqa: ARG002
        """A single group has nobody to average with."""
        return blocks

    def broadcast(self, blocks: Blocks, batch: Batch, *, within: Within = "silo", depth: int = 0) -> Blocks:
        """Hub (or server, or branches) to clients at work."""
        if within == "federation":
            check_server_keeps(says_so=self._known.within == "federation")
        blocks, call = self.at_clients.at_hubs(blocks) if blocks.moved else blocks, self.call("broadcast", batch.round)
        if self.optimising is not None:
            self.optimising.broadcast(batch)
        if self.branches is not None:
            BranchAccounts(self.branches, self.accounts).down(batch, depth, call)
            return self.branches.broadcast(blocks, batch, depth, call)
        coded = "broadcast" in self._coded
        missed = self._missed("broadcast", self.silos, batch) if coded else {}
        self.accounts.broadcast(batch, within, call, missed)
        received = self.on_the_way.broadcast(blocks.base, call) if coded else ()
        return Blocks(blocks.base, received=received, sent_to=batch.clients)

    def _missed(self, exchange: str, silos: Sequence[int], batch: Batch, to: str = "") -> Missed:
        """By silo which of its clients at work missed an earlier message that this one builds on."""
        linked = [j for j in silos if j not in self.accounts.links.one_party]
        return self.on_the_way.missed(exchange, linked, batch, to)

    def average(
        self, blocks: Blocks, batch: Batch, *, weights: ClientWeights = "equal", within: Within = "silo", depth: int = 0
    ) -> Blocks:
        """Clients at work to hub; the others' share of the average is the block they would have started from."""
        weighed = self.weigh(blocks, batch, weights=weights, within=within, depth=depth)
        return weighed if isinstance(weighed, Blocks) else averaged([weighed], self.solver)[0]

    def weigh(
        self, blocks: Blocks, batch: Batch, *, weights: ClientWeights, within: Within, depth: int
    ) -> Weighed | Blocks:
        """The messages of an average, and how much each client counts; its outcome where branches make it."""
        if within == "federation":
            check_server_keeps(says_so=self._known.within == "federation")
        if not blocks.moved:
            return replace(blocks, received=(), sent_to=())
        call, silos = self.call("average", batch.round), sorted(blocks.moved)
        if self.branches is not None:
            rows = self.at_clients.weights(blocks, batch, blocks.moved)
            tree = BranchAccounts(self.branches, self.accounts)
            for j in silos:
                tree.up(batch, j, depth, call)
            return self.branches.average(blocks, {j: rows[j] for j in silos}, batch, weights, depth, call)
        coded, last = "average" in self._coded, {j: blocks.moved[j][-1] for j in silos}
        moved: dict[int, Tensor | Problem] = {**last}
        if coded or any(len(blocks.moved[j]) > 1 or one.numbers is not batch.clients[j] for j, one in last.items()):
            rows, starts = self.at_clients.weights(blocks, batch, silos), blocks.received or blocks.base
            for j in silos if coded else ():
                rows[j] = self.on_the_way.blocks(rows[j], starts[j], j, batch.clients[j], call)
            moved = {j: rows[j] for j in silos}
        self.accounts.average(batch, tuple(silos), within, call)
        holders = {j: (self.data.silos[j].owners, self.clients[j], batch.clients[j]) for j in silos}
        at_work = client_weights(holders, weights)
        idle = {j: 0.0 if len(each) == self.clients[j] else 1.0 - float(each.sum()) for j, each in at_work.items()}
        if self.optimising is not None:
            self.optimising.average(batch, at_work, idle)
        return Weighed(blocks.base, moved, at_work, idle, self.passes)

    def _held(self, blocks: Blocks, batch: Batch, silos: Sequence[int]) -> Sequence[Tensor]:
        """By silo what its clients at work hold, (p,) or each its own (clients, p)."""
        if blocks.sent_to is batch.clients and not blocks.moved and self.branches is None:
            return blocks.received or blocks.base
        return self.at_clients.weights(blocks, batch, silos)

    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Outputs of the blocks, at the clients' own weights where they have moved."""
        if only is not None:
            check_only(only, None if known is None else known.samples, batch.parts, len(self.silos))
        weights = self._held(blocks, batch, self.silos if only is None else [only])
        call = self.call("embed", self.round)
        made = (call.round, call.use)
        return self.embedder.embed(blocks.base, weights, blocks.moved, batch, made, only=only, known=known)

    def exchange(
        self, embeddings: Embeddings, batch: Batch, *, known: Frozen | None = None, around: Embeddings | None = None,
        step: int = 0, senders: Sequence[int] | None = None, to: int | None = None,
    ) -> Frozen:  # fmt: skip
        """Every receiver gets the others' part for its own samples, or the holder their scores, they derivatives."""
        for one in (embeddings, around, known):
            if one is not None and one.samples is not batch.parts:
                check_samples("exchange", one.samples, batch.parts)
        stamps = {} if known is None else {i: {j: sent.made for j, sent in of.items()} for i, of in known.seen.items()}
        before = known or Frozen(batch.parts, {}, {}, {})
        holder = self.data.label_holder if self.labels_held else None
        at = around or embeddings
        sending, receivers = find_route((at if holder is None else embeddings).made, stamps, holder, senders, to)
        if holder is not None:
            head = embeddings.head is not None
            about = About.of(len(batch.parts), step, inner=around is not None, head=head)
            return self._ask_holder(embeddings, at, batch, before, sending, receivers, holder, about)
        if around is not None and step > 0:
            return before
        call = self.call("share", batch.round)
        if len(self.silos) > 1:
            missed: Missed = {}
            if "head" in self._coded and self.task.fusion.holder in sending:
                others = [j for j in receivers if j != self.task.fusion.holder]
                missed = self._missed("head", others, batch, f" {head_channel(to)}")
            self.accounts.share(batch, sending, receivers, call, missed)
        return self.sharing.share(embeddings, at, batch, before, sending, receivers, to=to, use=call.use)

    def _ask_holder(
        self, embeddings: Embeddings, around: Embeddings, batch: Batch, before: Frozen, senders: Sequence[int],
        receivers: Sequence[int], holder: int, about: About,
    ) -> Frozen:  # fmt: skip
        up, down = (self.call(exchange, batch.round) for exchange in ("share", "derivatives"))
        if self.encrypted is None:
            self.accounts.derivatives(batch, holder, senders, receivers, about, up, down)
        elif self.encrypted.scores_in_clear:
            self.accounts.derivatives(batch, holder, senders, [holder], about, up, down)
        frozen = self.sharing.derivatives(
            embeddings, around, batch, before, senders, receivers, holder=holder, about=about, use=up.use
        )
        if self.encrypted is None:
            return frozen
        _, y = self.passes.samples(batch, (), 0)
        known = self._descending.inputs(frozen, batch, 0, y, receivers, LocalSteps(1, 0.0))
        return self.encrypted.exchange(frozen, known, batch, Asked(holder, receivers, down, self.call))

    def decide(self, value: Number, *, round: int, by: int = 0) -> Number:
        """One hub tells everybody."""
        check_decision(value, by, len(self.silos))
        accounts = self.accounts if self.branches is None else BranchAccounts(self.branches, self.accounts)
        accounts.decide(self._draws.draw(None, round=round, parts=1, first=0), by, self.call("decide", round))
        return value

    def _descend(
        self, blocks: Blocks, batch: Batch, frozen: Frozen, local: LocalSteps, *, only: int | None,
        earlier: Sequence[Exchanged],
    ) -> Blocks:  # fmt: skip
        """The steps are computed with the average over clients, or for whoever needs the clients' own blocks."""
        for one, known in ((batch, frozen), *earlier):
            if known.samples is not one.parts:
                check_samples("descend", known.samples, one.parts)
        silos = tuple(self.silos) if only is None else (only,)
        weights = self._held(blocks, batch, silos)
        problems = self._descending.problems({j: weights[j] for j in silos}, [(batch, frozen), *earlier], local)
        in_one_part = len(batch.parts) == 1 and not earlier
        self.accounts.links.work(batch, silos, local, None if in_one_part else rows_by_part(problems))
        if self.optimising is not None:
            self.optimising.solve(list(problems.values()), self.solver, self.passes)
        if len(self.at_clients.one_party) == len(self.silos):  # nobody has anybody to average with
            ones = dict.fromkeys(problems, torch.ones(1, dtype=torch.float64))
            alone = Weighed(blocks.base, problems, ones, dict.fromkeys(ones, 0.0), self.passes)
            return averaged([alone], self.solver)[0]  # the client's block is the hub's
        moved = dict(blocks.moved)
        for j, steps in problems.items():  # who rests now stands where earlier steps led
            moved[j] = (*(old for old in moved.get(j, ()) if not np.isin(old.at_work, steps.at_work).all()), steps)
        return replace(blocks, moved=moved)
