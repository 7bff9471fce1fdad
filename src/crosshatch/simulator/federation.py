"""The exchanges, answered for everybody at once: clients are an axis, exchanges are array operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.simulator.batch import Batch, BatchSource, Ids, make_batch
from crosshatch.simulator.forward import forward, forward_rows
from crosshatch.simulator.local.problem import Known, Part, Passes, Problem
from crosshatch.simulator.local.solve import Strategy, choose, solve
from crosshatch.simulator.traffic import Call, Traffic
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.task import Task


@dataclass
class Blocks:
    """Weights of every silo: `base[j]` (p,) and, once clients have moved, what they computed (lazily)."""

    base: tuple[Tensor, ...]
    moved: Moved | None = None


@dataclass
class Moved:
    """Local steps that were asked for but not yet computed: averaging needs less than keeping every client's block."""

    problems: dict[int, Problem]
    solver: Callable[[list[Problem], list[Tensor], bool], list[Tensor]]
    _rows: dict[int, Tensor] | None = None

    def rows(self) -> dict[int, Tensor]:
        """Each silo's clients' blocks (clients at work, p)."""
        if self._rows is None:
            problems = list(self.problems.values())
            ones = [torch.ones(p.clients) for p in problems]
            self._rows = dict(zip(self.problems, self.solver(problems, ones, True), strict=True))
        return self._rows

    def sums(self, weights: dict[int, Tensor]) -> dict[int, Tensor]:
        """Each silo's weighted sum (p,) over its clients at work."""
        if self._rows is not None:
            return {j: weights[j].to(rows.dtype) @ rows for j, rows in self._rows.items()}
        problems = list(self.problems.values())
        return dict(zip(self.problems, self.solver(problems, [weights[j] for j in self.problems], False), strict=True))


@dataclass(frozen=True)
class Embeddings:
    """Outputs of every silo's block, part by part, in the batch's order; `passes` are kept for a first step."""

    values: tuple[tuple[Tensor, ...], ...]  # [silo][part] (n, e)
    passes: tuple[Passes | None, ...]
    head: Tensor | None  # the holder's head when they were computed


@dataclass(frozen=True)
class Frozen:
    """What each silo's clients know, part by part; None for silos that were not asked."""

    known: tuple[tuple[Known, ...] | None, ...]
    head: Tensor | None
    passes: tuple[Passes | None, ...]


@dataclass
class SimulatedFederation:
    """All parties of a federation in one process."""

    data: FederatedData
    task: Task
    traffic: Traffic
    source: BatchSource
    strategy: Strategy = "auto"
    threads: int = 1
    keep_passes: bool = False  # the next local work is a single step: keep the exchange's forward pass for it
    one_client: bool = False  # every silo's samples form one client
    chosen: dict[str, str] = field(default_factory=dict)
    _whole: Batch | None = None

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
    def _owners(self) -> tuple[Ids | None, ...]:
        return tuple(None if self.one_client or s.clients == 1 else s.owners for s in self.data.silos)

    def _clients(self, silo: int) -> int:
        return 1 if self.one_client else self.data.silos[silo].clients

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """The round's samples from the shared seed."""
        self.traffic.clocks.clients.clear()
        if size is None and self._whole is not None:
            return replace(self._whole, round=round)
        samples = len(self.data.y_train)
        batch = make_batch(self.source, self._owners, samples=samples, size=size, round=round, parts=parts, first=first)
        if size is None:
            self._whole = batch
        return batch

    def broadcast(self, blocks: Blocks, batch: Batch) -> Blocks:
        """Hub to clients at work."""
        for j in self.silos:
            size = blocks.base[j].shape[0]
            present = np.ones_like(batch.clients[j])
            self.traffic.hub_to_clients(
                j, batch.clients[j], present, lambda _, p=size: ((p,),), Call("broadcast", batch.round)
            )
        return Blocks(blocks.base)

    def average(self, blocks: Blocks, batch: Batch, *, weights: Literal["equal", "samples"] = "equal") -> Blocks:
        """Clients at work to hub; the rest of the average is the block they would have started from."""
        if blocks.moved is None:
            return blocks
        shares = {j: self._client_weights(j, batch.clients[j], weights) for j in blocks.moved.problems}
        sums = blocks.moved.sums(shares)
        base = list(blocks.base)
        for j, total in sums.items():
            size = base[j].shape[0]
            present = np.ones_like(batch.clients[j])
            self.traffic.clients_to_hub(
                j, batch.clients[j], present, lambda _, p=size: ((p,),), Call("average", batch.round)
            )
            idle = 1.0 - float(shares[j].sum())
            base[j] = total if len(batch.clients[j]) == self._clients(j) else total.add_(base[j], alpha=idle)
        return Blocks(tuple(base))

    def _client_weights(self, silo: int, clients: Ids, weights: Literal["equal", "samples"]) -> Tensor:
        total = self._clients(silo)
        if weights == "equal" or total == 1:
            return torch.full((len(clients),), 1.0 / total, dtype=torch.float64)
        held = np.bincount(self.data.silos[silo].owners, minlength=total)
        return torch.as_tensor(held[clients] / held.sum())

    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Outputs of the blocks, at the clients' own weights where they have moved."""
        values = [] if known is None else list(known.values)
        passes = [None] * len(self.silos) if known is None else list(known.passes)
        settled = self._settle(blocks) if only is not None else blocks
        for j in self.silos if only is None else (only,):
            outputs, kept = self._embed_silo(settled, batch, j)
            if known is None:
                values.append(outputs)
            else:
                values[j] = outputs
            passes[j] = kept
        head = None
        if isinstance(self.task.fusion, Head):
            holder = self.task.fusion.holder
            weights = settled.base[holder]
            if settled.moved is not None and holder in settled.moved.problems:
                weights = settled.moved.rows()[holder].mean(0)
            _, head = self.task.split(holder, weights)
        return Embeddings(tuple(values), tuple(passes), head)

    def _embed_silo(self, blocks: Blocks, batch: Batch, j: int) -> tuple[tuple[Tensor, ...], Passes | None]:
        """Outputs in the batch's order, part by part, and the first part's pass if it is to be kept."""
        outputs = []
        kept = None
        for s, share in enumerate(batch.shares[j]):
            x = batch.features(j, s, self.data.silos[j].train)
            if blocks.moved is not None and j in blocks.moved.problems:
                rows = forward_rows(self.task, j, blocks.moved.rows()[j], x, share.counts)
            else:
                keep = self.keep_passes and s == 0
                rows, passes = forward(self.task, j, blocks.base[j], x, keep=keep, threads=self.threads)
                kept = passes if keep else kept
            outputs.append(share.unsort(rows))
        return tuple(outputs), kept

    def _settle(self, blocks: Blocks) -> Blocks:
        """Where each silo is one party, its block after the steps is simply its block."""
        if blocks.moved is None or not self.traffic.single:
            return blocks
        base = list(blocks.base)
        for j, total in blocks.moved.sums({j: torch.ones(1) for j in blocks.moved.problems}).items():
            base[j] = total
        return Blocks(tuple(base))

    def share(self, embeddings: Embeddings, batch: Batch, *, to: int | None = None) -> Frozen:
        """TDCD lines 13-22, FedBCD's Exchange: every receiver gets the others' part for its own samples."""
        receivers = list(self.silos) if to is None else [to]
        if len(self.silos) > 1:
            self._send_embeddings(embeddings, batch, receivers)
        known: list[tuple[Known, ...] | None] = [None] * len(self.silos)
        for s, values in enumerate(zip(*embeddings.values, strict=True)):
            for j, rest in zip(receivers, self._others(values, receivers), strict=True):
                share = batch.shares[j][s]
                piece = Known(y=share.sort(self._labels(batch, s)), rest=share.sort(rest))
                known[j] = (*(known[j] or ()), piece)
        return Frozen(tuple(known), embeddings.head, embeddings.passes)

    def _send_embeddings(self, embeddings: Embeddings, batch: Batch, receivers: list[int]) -> None:
        call = Call("share", batch.round)
        widths = [values[0].shape[1] for values in embeddings.values]
        rows = [sum(share.counts for share in batch.shares[j]) for j in self.silos]
        arrivals = []
        for j in self.silos:
            others = [i for i in receivers if i != j]
            if not others:
                continue
            self.traffic.clients_to_hub(j, batch.clients[j], rows[j], lambda n, e=widths[j]: ((n, e),), call)
            shapes: tuple[tuple[int, ...], ...] = ((batch.rows, widths[j]),)
            if self.task.holds_head(j) and embeddings.head is not None:
                shapes = (*shapes, (embeddings.head.shape[0],))
            arrivals.append((j, others, shapes))
        direction: Literal["across", "up"] = "across" if len(receivers) > 1 else "up"
        self.traffic.wait(
            [self.traffic.hub_to_hubs(j, others, shapes, direction, call) for j, others, shapes in arrivals]
        )
        for j in receivers:
            width = widths[j] if isinstance(self.task.fusion, Sum) else sum(widths) - widths[j]
            head = () if embeddings.head is None or self.task.holds_head(j) else ((embeddings.head.shape[0],),)
            self.traffic.hub_to_clients(j, batch.clients[j], rows[j], lambda n, e=width, h=head: ((n, e), *h), call)

    def _others(self, values: Sequence[Tensor], receivers: Sequence[int]) -> list[Tensor]:
        """For each receiver what the other silos say: their sum, or all embeddings side by side."""
        if isinstance(self.task.fusion, Head):
            beside = torch.cat(list(values), dim=-1)
            return [beside for _ in receivers]
        before, after = [torch.zeros_like(values[0])], [torch.zeros_like(values[0])]
        for value in values[:-1]:
            before.append(before[-1] + value)
        for value in reversed(values[1:]):
            after.append(after[-1] + value)
        return [before[j] + after[len(values) - 1 - j] for j in receivers]

    def _labels(self, batch: Batch, part: int) -> Tensor:
        if batch.whole:
            return self.data.y_train
        return self.data.y_train.index_select(0, torch.as_tensor(batch.parts[part]))

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
        """FedBCD's form (2), TDCD's Remark 2: scores to the label's holder, derivatives back."""
        reference = embeddings if around is None else around
        holder = self._label_holder
        receivers = list(self.silos) if to is None else [to]
        self._send_derivatives(
            embeddings, batch, step, list(senders or self.silos), receivers, inner=around is not None
        )
        known: list[tuple[Known, ...] | None] = [None] * len(self.silos)
        for s in range(len(batch.parts)):
            fixed = [values[s] for values in reference.values]
            labels = self._labels(batch, s)
            for j, rest in zip(receivers, self._others(fixed, receivers), strict=True):
                share = batch.shares[j][s]
                if j == holder:
                    piece = Known(y=share.sort(labels), rest=share.sort(rest))
                else:
                    own = embeddings.values[j][s]
                    piece = Known(derivative=share.sort(self._derivative(j, own, rest, labels, reference.head)))
                known[j] = (*(known[j] or ()), piece)
        return Frozen(tuple(known), reference.head, embeddings.passes)

    def _derivative(self, silo: int, own: Tensor, rest: Tensor, labels: Tensor, head: Tensor | None) -> Tensor:
        """Each sample's derivative of the loss with respect to this silo's embedding (n, e)."""
        loss = self.task.loss
        if head is None:
            return loss.derivative(own + rest, labels)
        low, high = self._columns[silo]
        leaf = own.detach().requires_grad_()
        scores = self.task.apply_head(head, torch.cat([rest[:, :low], leaf, rest[:, high:]], dim=-1))
        return torch.autograd.grad(loss.value(scores, labels).sum(), leaf)[0]

    def _send_derivatives(
        self, embeddings: Embeddings, batch: Batch, step: int, senders: list[int], receivers: list[int], *, inner: bool
    ) -> None:
        """`inner`: an exchange of one local step, about that step's part; the first also carries the other parts."""
        holder = self._label_holder
        part = step % len(batch.parts)
        up, down = Call("share", batch.round, step), Call("derivatives", batch.round, step)
        widths = [values[0].shape[1] for values in embeddings.values]
        whole = [sum(share.counts for share in shares) for shares in batch.shares]
        of_step = [shares[part].counts for shares in batch.shares]
        sent = whole if not inner or step == 0 else of_step
        answered = of_step if inner else whole
        arrivals = []
        for j in senders:
            if j != holder:
                self.traffic.clients_to_hub(j, batch.clients[j], sent[j], lambda n, e=widths[j]: ((n, e),), up)
                arrivals.append(self.traffic.hub_to_hubs(j, [holder], ((int(sent[j].sum()), widths[j]),), "up", up))
        self.traffic.wait(arrivals)
        others = sum(widths[j] for j in self.silos if j != holder)
        width = widths[holder] if isinstance(self.task.fusion, Sum) else others
        if arrivals:
            self.traffic.hub_to_clients(holder, batch.clients[holder], sent[holder], lambda n: ((n, width),), up)
        asking = [j for j in receivers if j != holder]
        if not asking:
            return
        answer = sum(widths[j] for j in asking) if not isinstance(self.task.fusion, Sum) else width
        if answer:
            self.traffic.clients_to_hub(holder, batch.clients[holder], answered[holder], lambda n: ((n, answer),), down)
        self.traffic.wait(
            [
                self.traffic.hub_to_hubs(holder, [j], ((int(answered[j].sum()), widths[j]),), "down", down)
                for j in asking
            ]
        )
        for j in asking:
            self.traffic.hub_to_clients(j, batch.clients[j], answered[j], lambda n, e=widths[j]: ((n, e),), down)

    @cached_property
    def _columns(self) -> list[tuple[int, int]]:
        """Where each silo's embedding stands among all of them."""
        widths = self.task.check_fit([silo.train[:2] for silo in self.data.silos], self.data.classes)
        edges = np.cumsum([0, *widths])
        return [(int(low), int(high)) for low, high in zip(edges, edges[1:], strict=False)]

    def descend(
        self,
        blocks: Blocks,
        batch: Batch,
        frozen: Frozen,
        *,
        steps: int,
        step_size: float,
        first: int = 0,
        pull: float = 0.0,
        only: int | None = None,
    ) -> Blocks:
        """Ask for the local steps; they are computed when their result is."""
        settled = self._settle(blocks)
        earlier = settled.moved.rows() if settled.moved is not None else {}
        problems = {}
        for j in self.silos if only is None else (only,):
            knowns = frozen.known[j]
            assert knowns is not None
            parts = tuple(
                Part(batch.features(j, s, self.data.silos[j].train), known, share.counts)
                for s, (known, share) in enumerate(zip(knowns, batch.shares[j], strict=True))
            )
            problem = Problem(
                task=self.task, silo=j, parts=parts, start=earlier.get(j, settled.base[j]),
                head=None if self.task.holds_head(j) else frozen.head, columns=self._columns[j],
                steps=steps, step_size=step_size, first=first, pull=pull, passes=frozen.passes[j],
            )  # fmt: skip
            self.traffic.work(j, batch.clients[j], _steps_worked(parts, first, steps))
            self.chosen.setdefault(self.task.names[j], choose(problem) if self.strategy == "auto" else self.strategy)
            problems[j] = problem
        moved = Moved(problems, self._solve)
        result = Blocks(settled.base, moved)
        return self._settle(result)

    def _solve(self, problems: list[Problem], weights: list[Tensor], keep: bool) -> list[Tensor]:
        return solve(problems, weights, keep=keep, strategy=self.strategy, threads=self.threads)


def _steps_worked(parts: tuple[Part, ...], first: int, steps: int) -> Ids:
    """How many of the steps each client at work has samples for."""
    if len(parts) == 1:
        return (parts[0].counts > 0) * np.int64(steps)
    worked: Ids = np.sum([parts[(first + q) % len(parts)].counts > 0 for q in range(steps)], axis=0)
    return worked
