"""TDCD and HSGD's edge in their most literal form: every party holds its own values, every message is really encoded.

One federation without groups, squared loss, a sum or a head at the first silo. Codecs on `broadcast` and `head`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from crosshatch import wire
from crosshatch.channels import Channel
from crosshatch.codecs import AnyCodec, ErrorFeedback
from crosshatch.data.federated import FederatedData
from crosshatch.task.task import Task

ROW = np.zeros(1, dtype=np.int64)


@dataclass
class Line:
    """One sender and its receivers, each with a memory of its own; who missed a message gets the whole value."""

    codec: AnyCodec | None
    clients: int
    sender: Channel | None = None
    receivers: list[Channel] = field(default_factory=list)
    got_last: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.got_last = set(range(self.clients))
        if self.codec is not None:
            self.sender = Channel(self.codec, 1)
            self.receivers = [Channel(self.codec, 1) for _ in range(self.clients)]

    def send(self, value: Tensor, to: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """For each receiver the tensor in its message, and what it holds afterwards."""
        if self.sender is None:
            return [(value, value) for _ in to]
        data = self.sender.send(value[None], ROW)
        builds_on_earlier = isinstance(self.codec, ErrorFeedback) and self.codec.mode == "ef21"
        memory = self.sender.memory if builds_on_earlier else None
        results = []
        for client in to:
            mine = self.receivers[client]
            if client in self.got_last or memory is None:
                content = torch.frombuffer(bytearray(data), dtype=torch.uint8)
                held = mine.receive(data, (1, len(value)), value.dtype, ROW)[0]
            else:
                content = held = memory[0].clone()
                mine.memory = memory.clone()
            results.append((content, held))
        self.got_last = set(to)
        return results


class Parties:
    """All parties of a federation; `blocks` are the hubs'."""

    def __init__(self, data: FederatedData, task: Task, codecs: Mapping[str, AnyCodec]) -> None:
        self.data, self.task = data, task.to("cpu", torch.float64)
        self.blocks = self.task.initial()
        self.lines = [Line(codecs.get("broadcast"), silo.clients) for silo in data.silos]
        self.head_lines = [Line(codecs.get("head"), silo.clients) for silo in data.silos]
        self.head_codec = codecs.get("head")
        self.hubs_line = Line(self.head_codec, len(data.silos))
        self.bytes: Counter[str] = Counter()

    def _write(self, r: int, exchange: str, *tensors: Tensor) -> None:
        self.bytes[exchange] += len(wire.encode("0badcafe", r, exchange, tensors))

    def run_round(
        self, r: int, ids: np.ndarray[tuple[int], np.dtype[np.int64]], steps: int, eta: float, *, everyone: bool
    ) -> None:
        """A round on these samples; the average is over all clients, or over those at work."""
        silos = range(len(self.data.silos))
        at_work = [sorted(set(self.data.silos[j].owners[ids].tolist())) for j in silos]
        rows = [{k: [i for i in ids.tolist() if self.data.silos[j].owners[i] == k] for k in at_work[j]} for j in silos]
        held: list[dict[int, Tensor]] = []
        for j in silos:
            sent = self.lines[j].send(self.blocks[j], at_work[j])
            for content, _ in sent:
                self._write(r, "broadcast", content)
            held.append({k: value for k, (_, value) in zip(at_work[j], sent, strict=True)})
        embeddings = [
            {
                i: self.task.embed(j, held[j][k], self.data.silos[j].train[[i]])[0].detach()
                for k in held[j]
                for i in rows[j][k]
            }
            for j in silos
        ]
        heads = self._share(r, ids.tolist(), at_work, rows, embeddings)
        for j in silos:
            moved = {
                k: self._descend(j, held[j][k], rows[j][k], embeddings, heads[j].get(k), steps, eta) for k in held[j]
            }
            for block in moved.values():
                self._write(r, "average", block)
            if everyone:
                total = self.data.silos[j].clients
                self.blocks[j] = (sum(moved.values()) + (total - len(moved)) * self.blocks[j]) / total
            else:
                self.blocks[j] = sum(moved.values(), start=torch.zeros_like(self.blocks[j])) / len(moved)

    def _share(
        self,
        r: int,
        ids: list[int],
        at_work: list[list[int]],
        rows: list[dict[int, list[int]]],
        embeddings: list[dict[int, Tensor]],
    ) -> list[dict[int, Tensor]]:
        """Client, hub, other hubs, client; returns what each client has of the head."""
        silos = range(len(at_work))
        widths = [len(next(iter(one.values()))) for one in embeddings]
        head = self.task.split(0, self.blocks[0])[1]
        others = [j for j in silos if j != 0]
        at_hubs = dict(zip(others, self.hubs_line.send(head, others), strict=True)) if head is not None else {}
        heads: list[dict[int, Tensor]] = [{} for _ in silos]
        for j in silos:
            along = self.head_lines[j].send(head, at_work[j]) if head is not None and j else []
            for n, k in enumerate(at_work[j]):
                count = len(rows[j][k])
                self._write(r, "share", torch.zeros(count, widths[j], dtype=torch.float64))
                answer = widths[j] if head is None else sum(widths) - widths[j]
                tensors = [torch.zeros(count, answer, dtype=torch.float64)]
                if along:
                    tensors.append(along[n][0])
                    heads[j][k] = along[n][1]
                    assert torch.equal(heads[j][k], at_hubs[j][1]), "clients hold what their hub holds"
                self._write(r, "share", *tensors)
            for other in silos:
                if other != j:
                    more = [at_hubs[other][0]] if j == 0 and head is not None else []
                    self._write(r, "share", torch.zeros(len(ids), widths[j], dtype=torch.float64), *more)
        return heads

    def _descend(
        self,
        j: int,
        start: Tensor,
        rows: list[int],
        embeddings: list[dict[int, Tensor]],
        head: Tensor | None,
        steps: int,
        eta: float,
    ) -> Tensor:
        weights, x, y = start.clone(), self.data.silos[j].train[rows], self.data.y_train[rows]
        rest = [torch.stack([one[i] for i in rows]) for one in embeddings]
        for _ in range(steps):
            leaf = weights.clone().requires_grad_()
            every = [self.task.embed(j, leaf, x) if k == j else one for k, one in enumerate(rest)]
            mine = self.task.split(j, leaf)[1] if head is None else head
            scores = torch.stack(every).sum(0) if mine is None else self.task.apply_head(mine, torch.cat(every, -1))
            loss = self.task.loss.value(scores, y).mean()
            weights = weights - eta * torch.autograd.grad(loss, leaf)[0]
        return weights
