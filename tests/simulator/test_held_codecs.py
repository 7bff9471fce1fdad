"""Codecs where one silo holds the labels: what is encoded is what is counted, message for message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor

from crosshatch import wire
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.channels import Channel
from crosshatch.codecs import AnyCodec, parse_codec
from crosshatch.simulator.vertical.federation import SimulatedFederation
from tests.equivalence.federations import Case
from tests.simulator.small import small

SILOS, HOLDER, STEPS, ETA = 3, 2, 3, 0.1
BATCHES = [[[0, 1, 3, 4], [2, 5, 1, 0], [4, 2, 3, 1]], [[5, 4, 0, 2], [3, 1, 0, 5], [2, 3, 4, 1]]] * 2


class Naive:
    """TDCD's Remark 2 with a fresh batch a step and a sum of linear blocks, every message through its own two ends."""

    def __init__(self, case: Case, codecs: Mapping[str, AnyCodec]) -> None:
        self.data, self.codecs = case.data, codecs
        self.task = case.task.to("cpu", torch.float64)
        self.blocks = self.task.initial()
        self.lines: dict[str, tuple[Channel, Channel]] = {}
        self.bytes: Counter[str] = Counter()

    def send(self, exchange: str, name: str, rows: Tensor, ids: list[int]) -> tuple[Tensor, Tensor]:
        """What arrives of one client's message, and the tensor it consists of."""
        codec = self.codecs.get(exchange)
        if codec is None:
            return rows, rows
        if exchange + name not in self.lines:
            self.lines[exchange + name] = Channel(codec, 6), Channel(codec, 6)
        sender, receiver = self.lines[exchange + name]
        data = sender.send(rows, np.array(ids))
        arrived = receiver.receive(data, (len(ids), 1), rows.dtype, np.array(ids))
        return arrived, torch.frombuffer(bytearray(data), dtype=torch.uint8)

    def write(self, r: int, exchange: str, use: int, *tensors: Tensor) -> None:
        self.bytes[exchange] += len(wire.encode("0badcafe", r, exchange, tensors, use=use))

    def by_client(self, silo: int, ids: list[int]) -> dict[int, list[int]]:
        owners = self.data.silos[silo].owners
        return {k: [i for i in ids if owners[i] == k] for k in sorted({int(owners[i]) for i in ids})}

    def gather(
        self, exchange: str, name: str, rows: dict[int, list[tuple[list[int], Tensor]]]
    ) -> list[dict[int, Tensor]]:
        """What arrives of the messages of a silo's clients, each about several parts: rows by part and id."""
        parts: list[dict[int, Tensor]] = [{} for _ in next(iter(rows.values()))]
        contents = []
        for mine in rows.values():
            ids = [i for part, _ in mine for i in part]
            arrived, content = self.send(exchange, name, torch.cat([x for _, x in mine]), ids)
            contents.append(content)
            pieces = torch.split(arrived, [len(part) for part, _ in mine])
            for found, (part, _), piece in zip(parts, mine, pieces, strict=True):
                found.update(zip(part, piece, strict=True))
        self.contents = contents
        return parts

    def run_round(self, r: int, batches: list[list[int]]) -> None:
        train = [silo.train for silo in self.data.silos]
        everybody = sorted({i for ids in batches for i in ids})
        held = [{k: self.blocks[j].clone() for k in self.by_client(j, everybody)} for j in range(SILOS)]
        others = [j for j in range(SILOS) if j != HOLDER]

        def embed(j: int, ids: list[int], block: Tensor) -> Tensor:
            return self.task.embed(j, block, train[j][ids]).detach()

        start: list[list[dict[int, Tensor]]] = []
        for j in range(SILOS):
            clients = {
                k: [([i for i in ids if i in set(mine)], None) for ids in batches]
                for k, mine in self.by_client(j, everybody).items()
            }
            rows = {k: [(ids, embed(j, ids, held[j][k])) for ids, _ in mine] for k, mine in clients.items()}
            if j == HOLDER:
                start.append(
                    [{i: x for mine in rows.values() for i, x in zip(*mine[s], strict=True)} for s in range(STEPS)]
                )
            else:
                start.append(self.gather("share", str(j), rows))
                self.count(r, "share", 0, sum(map(len, batches)))
        for q, ids in enumerate(batches):
            now = [start[j][q] for j in range(SILOS)]
            if q:
                for j in others:
                    rows = {k: [(mine, embed(j, mine, held[j][k]))] for k, mine in self.by_client(j, ids).items()}
                    (now[j],) = self.gather("share", str(j), rows)
                    self.count(r, "share", q, len(ids))
            derivatives: dict[int, dict[int, Tensor]] = {}
            for j in others if q else others[:1]:
                at = {
                    i: now[j][i] + sum(start[o][q][i] for o in range(SILOS) if o != j) - self.data.y_train[i]
                    for i in ids
                }
                rows = {
                    k: [(mine, torch.stack([at[i] for i in mine]))] for k, mine in self.by_client(HOLDER, ids).items()
                }
                (derivatives[j],) = self.gather("derivatives", str(j) if q else "all", rows)
                for _ in [j] if q else others:
                    self.count(r, "derivatives", q, len(ids))
            for j in range(SILOS):
                for k, mine in self.by_client(j, ids).items():
                    leaf = held[j][k].clone().requires_grad_()
                    out = self.task.embed(j, leaf, train[j][mine])
                    if j == HOLDER:
                        rest = torch.stack([sum((start[o][q][i] for o in others), start=torch.zeros(1)) for i in mine])
                        slope = out.detach() + rest - self.data.y_train[mine].unsqueeze(1)
                    else:
                        slope = torch.stack([derivatives[j if q else others[0]][i] for i in mine])
                    held[j][k] = held[j][k] - ETA * torch.autograd.grad(out, leaf, slope / len(mine))[0]
        for j in range(SILOS):
            total = self.data.silos[j].clients
            self.blocks[j] = (sum(held[j].values()) + (total - len(held[j])) * self.blocks[j]) / total

    def count(self, r: int, exchange: str, use: int, rows: int) -> None:
        """One hub's message to another about what it gathered last; of encoded rows with a byte each whose it is."""
        if exchange in self.codecs:
            self.write(r, exchange, use, torch.cat(self.contents), torch.zeros(rows, 1, dtype=torch.uint8))
        else:
            self.write(r, exchange, use, torch.zeros(rows, 1, dtype=torch.float64))


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"share": "ef(topk(0.3))"},
        {"derivatives": "ef(topk(0.3))"},
        {"share": "topk(0.5)", "derivatives": "quantise(8)"},
        {"share": "ef(quantise(4))", "derivatives": "ef(topk(0.4))"},
    ],
    ids=str,
)
def test_every_step_with_a_batch_of_its_own(texts: dict[str, str]) -> None:
    """Only the step's samples are encoded, a derivative that serves all silos once; hubs' messages as counted."""
    codecs = {name: parse_codec(text) for name, text in texts.items()}
    case = small(clients=(2, 3, 2), steps=STEPS, label_silo="c", batches=BATCHES)
    ours = case.simulate(TDCD(STEPS, ETA, 4, batches="fresh"), rounds=4, codecs=codecs)
    naive = Naive(case, codecs)
    for r in range(4):
        naive.run_round(r, [list(ids) for ids in BATCHES[r]])
    torch.testing.assert_close(torch.cat(ours.weights), torch.cat(naive.blocks), rtol=0, atol=1e-12)
    between_hubs = sum(ours.meter.links[f"hub-hub {way}"][0] for way in ("up", "down"))
    assert between_hubs == naive.bytes.total()


@pytest.mark.parametrize("text", ["randomk(0.5)", "ef(randomk(0.5))"])
def test_a_derivative_that_is_sent_once_arrives_as_one(text: str) -> None:
    """Two silos get it; with random positions too both have the same rows."""
    case = small(clients=(1, 1, 1), label_silo="c")
    simulator = case.prepare(TDCD(2, ETA, derivatives="each_round"), codecs={"derivatives": parse_codec(text)})
    federation = simulator.federation
    assert isinstance(federation, SimulatedFederation)
    batch = federation.draw_batch(None, round=0)
    blocks = federation.broadcast(simulator.state.blocks[0], batch)  # type: ignore[union-attr]
    frozen = federation.share_derivatives(federation.embed(blocks, batch), batch)
    one, other = (frozen.derivatives[j][0] for j in (0, 1))
    assert one is not None
    assert other is not None
    assert torch.equal(one, other)
    assert (one == 0).sum() == 3
