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
from crosshatch.exchanges import ClientWeights, Federation, LocalSteps, Number, Within
from crosshatch.local.solve import Strategy, choose, solve
from crosshatch.protocol.batches import BatchSource
from crosshatch.protocol.client_weights import client_weights
from crosshatch.protocol.message_contents import About, Call
from crosshatch.protocol.names import head_channel
from crosshatch.protocol.what_is_known import check_decision, check_only, check_samples, find_route
from crosshatch.simulator.accounting.accounts import Accounts, Behind
from crosshatch.simulator.accounting.branch_accounts import BranchAccounts
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.arrivals import Arrivals
from crosshatch.simulator.vertical.averaging import AtClients, Solver, Weighed, averaged
from crosshatch.simulator.vertical.batch import Batch, Draws
from crosshatch.simulator.vertical.blocks import Blocks, Moved
from crosshatch.simulator.vertical.branches import Branches
from crosshatch.simulator.vertical.descending import Descending, Exchanged, rows_by_part
from crosshatch.simulator.vertical.embedding import Embedder, Embeddings
from crosshatch.simulator.vertical.inputs import Inputs
from crosshatch.simulator.vertical.optimising import Optimising
from crosshatch.simulator.vertical.sharing import Frozen, Sharing
from crosshatch.task.task import Task

if TYPE_CHECKING:  # needs gmpy2, which is an extra
    from crosshatch.simulator.encrypted.encrypted_exchange import EncryptedExchange
    from crosshatch.simulator.encrypted.encrypted_transfer import EncryptedTransfer


@dataclass
class SimulatedFederation(Federation[Blocks, Batch, Embeddings, Frozen]):
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
    round: int = 0
    uses: Counter[str] = field(default_factory=Counter)  # of each exchange in this round

    def __post_init__(self) -> None:
        """Put together who computes the numbers."""
        links, widths = self.accounts.links, self.accounts.contents.widths
        one_party = frozenset[int]() if links.hubs_together else links.one_party
        self.passes = Passes(self.data, self.window)
        self.sharing = Sharing(self.task, self.passes, self.arrivals, widths)
        self._inputs = Inputs(self.task, self.passes, widths)
        self._descending = Descending(
            self.data, self.task, self.passes, self._inputs, self.arrivals.seed, self.optimising
        )
        self.embedder = Embedder(
            self.data, self.task, self.passes, self.arrivals.seed, self.threads, self.keep_passes, one_party
        )
        self.solver: Solver = partial(
            solve if self.encrypted is None else self.encrypted.solve, strategy=self.strategy, threads=self.threads
        )
        unsent = frozenset(range(len(widths))) if links.one_machine else links.one_party
        self.at_clients = AtClients(self.solver, self.passes, self.branches, one_party, unsent)

    def begin_round(self, round: int) -> None:
        """No exchange was used yet."""
        self.round = round
        self.uses.clear()
        self.passes.end_round()
        self.accounts.links.begin_round()
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

    def _clients(self, silo: int) -> int:
        return 1 if self.one_client else self.data.silos[silo].clients

    @cached_property
    def _draws(self) -> Draws:
        return Draws(
            self.source,
            tuple(silo.owners for silo in self.data.silos),
            tuple(self._clients(j) for j in self.silos),
            by_number=self.embedder.random,
            device=self.data.y_train.device,
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
        blocks, call = self.at_clients.at_hubs(blocks), self.call("broadcast", batch.round)
        if self.optimising is not None:
            self.optimising.broadcast(batch)
        if self.branches is not None:
            BranchAccounts(self.branches, self.accounts).down(batch, depth, call)
            return self.branches.broadcast(blocks, batch, self.arrivals, self.task.trained, depth, call)
        self.accounts.broadcast(batch, within, call, self._behind("broadcast", self.silos, batch))
        received: tuple[Tensor, ...] = ()
        if "broadcast" in self.arrivals.altered:
            received = self.arrivals.broadcast(blocks.base, self.task.trained, call)
        return Blocks(blocks.base, received=received, sent_to=batch.clients)

    def _behind(self, exchange: str, silos: Sequence[int], batch: Batch, to: str = "") -> Behind:
        """By silo which of its clients at work missed an earlier message that this one builds on."""
        linked = {j: self._clients(j) for j in silos if j not in self.accounts.links.one_party}
        return self.arrivals.all_behind(exchange, linked, batch, to)

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
        if not blocks.moved:
            return replace(blocks, received=(), sent_to=())
        self.at_clients.check_sent(blocks, batch, blocks.moved)
        call, silos = self.call("average", batch.round), sorted(blocks.moved)
        if self.branches is not None:
            tree = BranchAccounts(self.branches, self.accounts)
            for j in silos:
                tree.up(batch, j, depth, call)
            moved, starts = self.at_clients.blocks(blocks, batch), self.at_clients.starts(blocks, batch)
            owners, trained = [silo.owners for silo in self.data.silos], self.task.trained
            return self.branches.average(
                blocks, moved, starts, batch, weights, owners, self.arrivals, trained, depth, call
            )
        self.accounts.average(batch, tuple(silos), within, call)
        holders = {j: (self.data.silos[j].owners, self._clients(j), batch.clients[j]) for j in silos}
        at_work = client_weights(holders, weights)
        idle = {
            j: 0.0 if len(batch.clients[j]) == self._clients(j) else 1.0 - float(each.sum())
            for j, each in at_work.items()
        }
        altered = "average" in self.arrivals.altered
        if altered or any(one.clients is not batch.clients[j] for j, one in blocks.moved.items()):
            starts, rows = self.at_clients.starts(blocks, batch), self.at_clients.blocks(blocks, batch)
            for j in silos if altered else ():
                rows[j] = self.arrivals.blocks(
                    rows[j], starts[j], j, batch.clients[j], self._clients(j), call, where=self.task.trained[j]
                )
            blocks = replace(blocks, moved={j: Moved(batch.clients[j], rows[j]) for j in silos})
        if self.optimising is not None:
            self.optimising.average(batch, at_work, idle)
        return Weighed(blocks, at_work, idle, self.passes)

    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Outputs of the blocks, at the clients' own weights where they have moved."""
        check_only(only, None if known is None else known.samples, batch.parts, len(self.silos))
        self.at_clients.check_sent(blocks, batch, self.silos if only is None else [only])
        moved, call = self.at_clients.blocks(blocks, batch), self.call("embed", self.round)
        weights = [moved.get(j, start) for j, start in enumerate(self.at_clients.starts(blocks, batch))]
        made = (call.round, call.use)
        return self.embedder.embed(blocks.base, weights, moved, batch, made, only=only, known=known)

    def exchange(
        self, embeddings: Embeddings, batch: Batch, *, known: Frozen | None = None, around: Embeddings | None = None,
        step: int = 0, senders: Sequence[int] | None = None, to: int | None = None,
    ) -> Frozen:  # fmt: skip
        """Every receiver gets the others' part for its own samples, or the holder their scores, they derivatives."""
        for one in (embeddings, around, known):
            if one is not None:
                check_samples("exchange", one.samples, batch.parts)
        known = known or Frozen(batch.parts, {}, {}, {})
        inner = around is not None
        around = around or embeddings
        holder = self.data.label_holder if self.labels_held else None
        made = around.made if holder is None else embeddings.made
        sending, receivers = find_route(made, known.stamps(), holder, senders, to)
        if holder is None:
            if inner and step > 0:
                return known
            return self._share(embeddings, around, batch, known, sending, receivers, to)
        about = About.of(len(batch.parts), step, inner=inner, head=embeddings.head is not None)
        return self._ask_holder(embeddings, around, batch, known, sending, receivers, holder, about)

    def _share(
        self, embeddings: Embeddings, around: Embeddings, batch: Batch, known: Frozen, senders: Sequence[int],
        receivers: Sequence[int], to: int | None,
    ) -> Frozen:  # fmt: skip
        call = self.call("share", batch.round)
        if len(self.silos) > 1:
            behind: Behind = {}
            holder = self.task.fusion.holder
            if holder in senders:
                others = [j for j in receivers if j != holder]
                behind = self._behind("head", others, batch, f" {head_channel(to)}")
            self.accounts.share(batch, senders, receivers, call, behind)
        return self.sharing.share(embeddings, around, batch, known, senders, receivers, to=to, use=call.use)[0]

    def _ask_holder(
        self, embeddings: Embeddings, around: Embeddings, batch: Batch, before: Frozen, senders: Sequence[int],
        receivers: Sequence[int], holder: int, about: About,
    ) -> Frozen:  # fmt: skip
        up, down = (self.call(exchange, batch.round) for exchange in ("share", "derivatives"))
        if self.encrypted is None:
            self.accounts.derivatives(batch, holder, senders, receivers, about, up, down)
        else:
            self.encrypted.clocks.begin()
            if self.encrypted.scores_in_clear:
                self.accounts.derivatives(batch, holder, senders, [holder], about, up, down)
        frozen, _ = self.sharing.derivatives(
            embeddings, around, batch, before, senders, receivers, holder=holder, about=about, use=up.use
        )
        if self.encrypted is None:
            return frozen
        known = self._inputs.of(frozen, batch, 0, receivers, LocalSteps(1, 0.0))
        return self.encrypted.exchange(frozen, known, batch, holder, senders, receivers, down, self.call)

    def decide(self, value: Number, *, round: int, by: int = 0) -> Number:
        """One hub tells everybody."""
        check_decision(value, by, len(self.silos))
        self.accounts.decide(self._draws.draw(None, round=round, parts=1, first=0), by, self.call("decide", round))
        return value

    def _descend(
        self, blocks: Blocks, batch: Batch, frozen: Frozen, local: LocalSteps, *, only: int | None,
        earlier: Sequence[Exchanged],
    ) -> Blocks:  # fmt: skip
        """The steps are computed with the average over clients, or for whoever needs the clients' own blocks."""
        for one, known in ((batch, frozen), *earlier):
            check_samples("descend", known.samples, one.parts)
        silos = tuple(self.silos) if only is None else (only,)
        self.at_clients.check_sent(blocks, batch, silos)
        moved, starts = self.at_clients.blocks(blocks, batch), self.at_clients.starts(blocks, batch)
        begin = {j: moved.get(j, starts[j]) for j in silos}
        problems = self._descending.problems(begin, [(batch, frozen), *earlier], local)
        in_one_part = len(batch.parts) == 1 and not earlier
        self.accounts.links.work(batch, silos, local, None if in_one_part else rows_by_part(problems))
        for j, problem in problems.items():
            if not self.keep_passes or self.task.names[j] not in self.chosen:  # one pass serves all, whatever it is
                kind = choose(problem) if self.strategy == "auto" else self.strategy
                self.chosen.setdefault(self.task.names[j], set()).add(kind)
        asked = problems if self.optimising is None else self.optimising.solve(problems, self.solver)
        taken = {j: Moved(batch.clients[j], one) for j, one in asked.items()}
        if len(self.at_clients.one_party) == len(self.silos):  # nobody has anybody to average with
            ones = dict.fromkeys(asked, torch.ones(1, dtype=torch.float64))
            alone = Weighed(Blocks(blocks.base, moved=taken), ones, dict.fromkeys(ones, 0.0), self.passes)
            return averaged([alone], self.solver)[0]  # the client's block is the hub's
        after = replace(blocks, moved={**blocks.moved, **taken})
        return self.at_clients.with_resting(blocks, after, batch, [j for j in silos if j in moved])
