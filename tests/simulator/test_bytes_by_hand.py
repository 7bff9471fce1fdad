"""Metered bytes against messages worked out by hand: who holds which samples, and what the papers have them send."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import nn

from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.jfl import JFL
from crosshatch.algorithms.mtcd import MTCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import parse_codec
from crosshatch.exchanges import Algorithm
from crosshatch.graphs import Graph
from crosshatch.protocol.batches import GivenBatches
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Head
from crosshatch.task.losses import Squared
from tests.simulator.agents_case import make
from tests.simulator.written import (
    Written,
    encoded,
    model_with_head,
    numbers,
    share,
    size_of,
)
from tests.support.bytes_by_hand import (
    BATCHES,
    CLASSES,
    COLUMNS,
    OWNERS,
    SAMPLES,
    batches,
    data_of,
    linear_blocks,
    simulate,
)


@pytest.mark.parametrize("silos", [2, 3])
@pytest.mark.parametrize("algorithm", [FedSGD(0.1, 5), FedBCD(4, 0.1, 5)])
@pytest.mark.parametrize("held", [False, True])
def test_vertical(silos: int, algorithm: FedSGD | FedBCD, held: bool) -> None:
    """One party a silo: everybody's outputs to everybody, or to the label's holder and derivatives back."""
    data = data_of([[0] * SAMPLES] * silos, label_silo="s0" if held else None)
    ours = simulate(data, algorithm, linear_blocks(silos), batches=batches(*BATCHES))
    written = Written()
    for written.round in range(3):
        ours.run_round()
        for _ in range(silos - 1 if held else silos * (silos - 1)):
            written.send("hub-hub up" if held else "hub-hub across", "share", numbers(5, CLASSES))
        for _ in range(silos - 1 if held else 0):
            written.send("hub-hub down", "derivatives", numbers(5, CLASSES))
    written.assert_metered(ours)


@pytest.mark.parametrize("silos", [2, 3])
@pytest.mark.parametrize("holder", [None, 0, 1])
def test_vertical_in_turn(silos: int, holder: int | None) -> None:
    """FedBCD's Algorithm 3: a turn begins with what is new since the last one."""
    data = data_of([[0] * SAMPLES] * silos, label_silo=None if holder is None else f"s{holder}")
    algorithm = FedBCD(4, 0.1, 5, order="sequential")
    ours = simulate(data, algorithm, linear_blocks(silos), batches=batches(*BATCHES))
    written = Written()
    for written.round in range(3):
        ours.run_round()
        for turn in range(silos):
            if holder is None:  # the newest of each other party
                for _ in range(silos - 1):
                    written.send("hub-hub across", "share", numbers(5, CLASSES))
                continue
            new = range(silos) if turn == 0 else [turn - 1]  # what the holder has not seen yet
            for _ in [j for j in new if j != holder]:
                written.send("hub-hub up", "share", numbers(5, CLASSES))
            if turn != holder:
                written.send("hub-hub down", "derivatives", numbers(5, CLASSES))
    written.assert_metered(ours)


@pytest.mark.parametrize("silos", [2, 3])
def test_clients(silos: int) -> None:
    """TDCD: clients without samples in the batch are silent; a hub has messages even with its only client."""
    blocks = linear_blocks(silos)
    ours = simulate(data_of(OWNERS[:silos]), TDCD(2, 0.1, 5), blocks, batches=batches(*BATCHES))
    written = Written()
    for written.round, ids in enumerate(BATCHES):
        ours.run_round()
        rows = [Counter(OWNERS[j][i] for i in ids) for j in range(silos)]
        share(written, rows, 5, CLASSES)
        for block, clients in zip(blocks, rows, strict=True):
            for _ in clients:
                written.send("client-hub down", "broadcast", numbers(size_of(block)))
                written.send("client-hub up", "average", numbers(size_of(block)))
    assert {len(Counter(OWNERS[0][i] for i in ids)) for ids in BATCHES} == {2, 3}, "nobody was idle"
    written.assert_metered(ours)


def test_clients_with_fresh_batches() -> None:
    """A message is about the rows of all Q mini-batches; a sample that is in two of them counts twice."""
    parts = [BATCHES, BATCHES[::-1]]
    source = GivenBatches(np.array(parts, dtype=np.int64))
    blocks = linear_blocks(3)
    ours = simulate(data_of(OWNERS), TDCD(3, 0.1, 5, batches="fresh"), blocks, batches=source)
    written = Written()
    for written.round in range(2):
        ours.run_round()
        ids = [i for part in parts[written.round] for i in part]
        rows = [Counter(owner[i] for i in ids) for owner in OWNERS]
        share(written, rows, 15, CLASSES)
        for block, clients in zip(blocks, rows, strict=True):
            for _ in clients:
                written.send("client-hub down", "broadcast", numbers(size_of(block)))
                written.send("client-hub up", "average", numbers(size_of(block)))
    written.assert_metered(ours)


def test_branches() -> None:
    """`V(4) H(4) H(2)`: blocks go by the branches, and halfway no further than to them; embeddings go straight."""
    owners = ([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [0, 1, 2, 3] * 3)
    blocks = linear_blocks(2)
    algorithm = Tiered("V(4) H(4) H(2)", 0.1, 5)
    ours = simulate(data_of(owners, branches=(2,)), algorithm, blocks, batches=batches(*BATCHES))
    written = Written()
    for written.round, ids in enumerate(BATCHES):
        ours.run_round()
        rows = [Counter(owner[i] for i in ids) for owner in owners]
        share(written, rows, 5, CLASSES)
        for block, clients in zip(blocks, rows, strict=True):
            size = size_of(block)
            for _ in {client // 2 for client in clients}:  # clients 0 and 1 are under the first branch
                written.send("branch-hub down", "broadcast", numbers(size))
                written.send("branch-hub up", "average", numbers(size))
            for _ in [*clients, *clients]:  # for the first two steps, and for the last two
                written.send("client-hub down", "broadcast", numbers(size))
                written.send("client-hub up", "average", numbers(size))
    written.assert_metered(ours)


# Two hospitals with four and six devices, each device with two samples.
GROUPS = np.repeat([0, 1], [8, 12])
DEVICES = (np.arange(20) // 2).tolist()
CHOSEN = (([0, 3], [1, 2, 5]), ([1, 2], [0, 4, 5]), ([2, 3], [3, 4, 0]), ([0, 1], [0, 1, 2]))  # by round and group
WIDTHS = (2, 4)


def hospitals(algorithm: Algorithm, **options: Any) -> tuple[Simulator, int, int, int]:
    """A run of two groups with a head at the hospital, and the sizes of hospital's block, devices' block and head."""
    data = data_of((GROUPS.tolist(), DEVICES), groups=GROUPS)
    blocks = [nn.Linear(COLUMNS[0], WIDTHS[0]), nn.Sequential(nn.Linear(COLUMNS[1], 3), nn.Linear(3, WIDTHS[1]))]
    head = nn.Sequential(nn.Linear(sum(WIDTHS), 3), nn.Tanh(), nn.Linear(3, CLASSES))
    given = tuple(GivenBatches(np.array([[one[g]] for one in CHOSEN], dtype=np.int64)) for g in (0, 1))
    ours = simulate(data, algorithm, blocks, Head(head, 0), batches=given, **options)
    return ours, size_of(blocks[0]), size_of(blocks[1]), size_of(head)


def test_groups() -> None:
    """HSGD with a head, P = 2Q and half of the devices: Algorithm 1, group by group."""
    ours, one, two, zero = hospitals(HSGD(4, 2, 0.1, 0.5))
    written = Written()
    for written.round, interval in enumerate(CHOSEN):
        ours.run_round()
        for chosen in interval:
            rows = 2 * len(chosen)
            for _ in chosen:
                written.send("client-hub down", "broadcast", numbers(two))  # line 15
                written.send("client-hub up", "share", numbers(2, WIDTHS[1]))  # line 17
                written.send("client-hub down", "share", numbers(2, WIDTHS[0]), numbers(zero))  # lines 20-21
                written.send("client-hub up", "average", numbers(two))  # line 12
            written.send("hub-hub across", "share", numbers(rows, WIDTHS[1]))  # line 18: edge node to hospital
            written.send("hub-hub across", "share", numbers(rows, WIDTHS[0]), numbers(zero))  # and back
            for direction in ("up", "down") if written.round % 2 else ():  # lines 4-9
                written.send(f"group-server {direction}", "average_groups", *model_with_head(one, zero))
                written.send(f"group-server {direction}", "average_groups", numbers(two))
    written.assert_metered(ours)


@pytest.mark.parametrize("text", ["half", "topk(0.5)"])
def test_groups_with_a_codec(text: str) -> None:
    """Clients' embeddings are encoded once and passed on as they are; what is put together for a device is plain."""
    codec = parse_codec(text)
    ours, _, two, zero = hospitals(HSGD(8, 1, 0.1, 0.5), codecs={"share": codec})
    written = Written()
    for written.round, interval in enumerate(CHOSEN):
        ours.run_round()
        for chosen in interval:
            for _ in chosen:
                written.send("client-hub down", "broadcast", numbers(two))
                written.send("client-hub up", "share", encoded(codec, (2, WIDTHS[1])))
                written.send("client-hub down", "share", numbers(2, WIDTHS[0]), numbers(zero))
                written.send("client-hub up", "average", numbers(two))
            whose = torch.zeros(2 * len(chosen), 1, dtype=torch.uint8)  # a byte per row: which device it is of
            written.send("hub-hub across", "share", encoded(codec, *[(2, WIDTHS[1])] * len(chosen)), whose)
            hospital = encoded(codec, (2 * len(chosen), WIDTHS[0]))
            written.send("hub-hub across", "share", hospital, numbers(zero))
    written.assert_metered(ours)


def test_pairs() -> None:
    """JFL: a block for each pair, to and from the server; devices and their hospital exchange the rest."""
    ours, one, two, zero = hospitals(JFL(1, 0.1, 0.5))
    written = Written()
    for written.round, interval in enumerate(CHOSEN):
        ours.run_round()
        for _ in [device for chosen in interval for device in chosen]:
            for direction, exchange in (("down", "broadcast"), ("up", "average")):
                written.send(f"group-server {direction}", exchange, *model_with_head(one, zero))
                written.send(f"client-server {direction}", exchange, numbers(two))
            written.send("client-hub up", "share", numbers(2, WIDTHS[1]))
            written.send("client-hub down", "share", numbers(2, WIDTHS[0]), numbers(zero))
    written.assert_metered(ours)


def test_regions() -> None:
    """`H(8) H(4) V(2) H(2)`: two regions of two groups; every second round a region's average, every fourth all's."""
    groups = np.repeat([0, 1, 2, 3], 4)
    devices = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]
    data = data_of((groups.tolist(), devices), groups=groups, group_shape=(2, 2))
    blocks = linear_blocks(2)
    source = batches([0, 1, 2], [0, 2, 3], [1, 0, 3], [1, 2, 3])  # in every group
    ours = simulate(data, Tiered("H(8) H(4) V(2) H(2)", 0.1, 3), blocks, batches=(source,) * 4)
    written = Written()
    for written.round in range(4):
        ours.run_round()
        for _ in range(4):
            share(written, [{0: 3}, {0: 2, 1: 1}], 3, CLASSES, single=[0])  # which device has two does not matter
            for _ in range(2):
                written.send("client-hub down", "broadcast", numbers(size_of(blocks[1])))
                written.send("client-hub up", "average", numbers(size_of(blocks[1])))
            for _ in range({0: 0, 1: 1, 2: 0, 3: 2}[written.round]):  # averages: of a region, and of all
                for block in blocks:
                    for direction in ("up", "down"):
                        written.send(f"group-server {direction}", "average_groups", numbers(size_of(block)))
    written.assert_metered(ours)


@pytest.mark.parametrize("hops", [0, 2])
def test_tokens(hops: int) -> None:
    """MTCD: a message for every token that moves, and every S hops one from and to each token's agent."""
    walks = np.array([[0, 1, 1, 2, 3, 0, 1], [3, 2, 1, 0, 3, 3, 2], [1, 0, 1, 2, 1, 0, 0]])
    ours = make(MTCD(3, 2, 0.01, hops, Graph("complete")), walks=walks, samples=9, precision=torch.float32)
    written = Written()
    for written.round in range(6):
        ours.run_round()
        for before, after in zip(walks[:, written.round], walks[:, written.round + 1], strict=True):
            if before != after:
                written.send("agent-agent across", "pass token", numbers(9, 1))
            for direction in ("up", "down") if hops and (written.round + 1) % hops == 0 else ():
                written.send(f"agent-server {direction}", "average tokens", numbers(9, 1))
    written.assert_metered(ours)


@pytest.mark.parametrize(("kind", "edges"), [("ring", 5), ("path", 4), ("complete", 10)])
def test_duals(kind: Literal["ring", "path", "complete"], edges: int) -> None:
    """DCPA: a dual along both directions of every edge."""
    ours = make(DCPA(graph=Graph(kind)), agents=5, samples=9, loss=Squared(), precision=torch.float32)
    written = Written()
    for written.round in range(130):  # round 128 takes a byte more
        ours.run_round()
        for _ in range(2 * edges):
            written.send("agent-agent across", "compare duals", numbers(9, 1))
    written.assert_metered(ours)
