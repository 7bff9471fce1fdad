"""`share` with `senders`: only their messages travel, and of all others everybody goes on with what it saw before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from crosshatch.channels import Channel
from crosshatch.codecs import AnyCodec, Draw, parse_codec
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Batch, Blocks, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.protocol.batches import SeededBatches
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.check_federation import check_purity, check_rounds
from crosshatch.testing.federations import FederationCase, make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty
from tests.simulator.written import Written, numbers, size_of
from tests.support.bytes_by_hand import BATCHES, CLASSES, OWNERS, batches, data_of, linear_blocks, simulate
from tests.support.senders import Absences, simulator

THREE, ALONE = make_data((2, 5, 3)), make_data((1, 1, 1))
TURNS = ((0,), (2, 1), (1,), ())
CODED = {"share": "ef(topk(0.5))", "head": "randomk(0.5)", "broadcast": "half"}
CASES = {
    "clients": (THREE, Absences(TURNS), None, {}),
    "all samples": (THREE, Absences(TURNS, batch_size=None), None, {}),
    "several parts": (THREE, Absences(TURNS, parts=2), None, {}),
    "one client per silo": (ALONE, Absences(TURNS, tiers="V(2)"), None, {}),
    "a head": (THREE, Absences(TURNS), 1, {}),
    "a head, one client per silo": (ALONE, Absences(TURNS, tiers="V(2)"), 0, {}),
    "coded": (THREE, Absences(TURNS), None, CODED),
    "coded, a head": (THREE, Absences(TURNS), 2, CODED),
    "error feedback on the head": (THREE, Absences(TURNS, batch_size=4), 2, {"head": "ef(topk(0.5))"}),
    "to one": (THREE, Absences(((0,), (2,), (1,), (0,)), (1, 1, None, 2)), None, {}),
    "to one, coded": (THREE, Absences(((0,), (2,), (1,), (0,)), (1, 1, None, 2)), None, CODED),
    "to one, a head": (THREE, Absences(((0,), (2,), (1, 0), (2,)), (1, 1, None, 2)), 0, {}),
    "one local step": (THREE, Absences(TURNS, local_steps=1), None, {}),
    "two silos": (make_data((2, 4)), Absences(((0,), (1,))), None, {}),
    "one silo": (make_data((3,)), Absences(((0,), ())), None, {}),
    "one silo, a head": (make_data((3,)), Absences(((0,), ())), 0, {}),
    "groups": (make_data((1, 5), groups=(12, 8)), Absences(((1,), (0,)), tiers="H(4) V(2) H(2)"), 0, {}),
}


def case_of(name: str) -> FederationCase:
    data, algorithm, holder, codecs = CASES[name]
    task = make_task(len(data.silos), holder=holder)
    coded = {exchange: parse_codec(text) for exchange, text in codecs.items()}
    return FederationCase(name, data, task, algorithm, {k: v for k, v in coded.items() if k != "head" or holder})


@pytest.mark.parametrize("name", CASES)
def test_simulator_agrees_with_the_parties(name: str) -> None:
    assert check_rounds(simulator, case_of(name), rounds=8) < 1e-12
    check_purity(simulator, case_of(name))


@pytest.mark.parametrize("holder", [None, 1])
def test_all_senders_are_the_default(holder: int | None) -> None:
    plain = FederationCase("", THREE, make_task(3, holder=holder), Absences(((0, 1, 2),)), seed=3)
    check_rounds(simulator, plain, rounds=2)

    class Always(Absences):
        def run_round(self, fed: Any, blocks: Any, r: int) -> Any:
            batch = fed.draw_batch(6, round=r)
            blocks = fed.broadcast(blocks, batch)
            for _ in range(2):
                frozen = fed.share(fed.embed(blocks, batch), batch)
                blocks = fed.descend(blocks, batch, frozen, LocalSteps(2, 0.3))
            return fed.average(blocks, batch)

    for engine in (simulator, PartyByParty):
        ends = []
        for algorithm in (plain.algorithm, Always(())):
            ours = engine(plain.data, plain.task, algorithm, seed=3, codecs={})
            ours.run_round()
            ends.append(ours)
        assert all(map(torch.equal, ends[0].weights, ends[1].weights))
        assert ends[0].meter == ends[1].meter


@pytest.mark.parametrize("codec", [None, "quantise(4)"])
def test_numbers_of_a_naive_loop(codec: str | None) -> None:
    """One client per silo, a sum: what each silo was seen to be is kept in a list, and renewed where it sends."""
    case = replace(case_of("one client per silo"), data=ALONE)
    codecs = {} if codec is None else {"share": parse_codec(codec)}
    ours = Simulator(ALONE, case.task, case.algorithm, seed=3, codecs=codecs, precision=torch.float64, threads=1)
    ours.run_round()
    ids = torch.as_tensor(SeededBatches(3).ids(0, 0, 6, len(ALONE.y_train)))
    blocks = [make_task(3).blocks[j].double() for j in range(3)]
    xs, y = [silo.train[ids] for silo in ALONE.silos], ALONE.y_train[ids]
    seen: list[Tensor] = [torch.empty(0)] * 3
    for use, senders in enumerate(((0, 1, 2), *TURNS)):
        for j in senders:
            with torch.no_grad():
                seen[j] = through(codecs, blocks[j](xs[j]), j, use)
        for j in range(3):
            rest = sum(seen[i] for i in range(3) if i != j)
            for _ in range(2):
                loss = torch.nn.functional.binary_cross_entropy_with_logits((blocks[j](xs[j]) + rest)[:, 0], y)
                loss = loss + 0.005 * sum((p * p).sum() for p in blocks[j].parameters())
                gradients = torch.autograd.grad(loss, list(blocks[j].parameters()))
                with torch.no_grad():
                    for parameter, gradient in zip(blocks[j].parameters(), gradients, strict=True):
                        parameter.sub_(0.3 * gradient)
    for block, found in zip(blocks, ours.weights, strict=True):
        flat = torch.cat([p.detach().reshape(-1) for p in block.parameters()])
        assert float((flat - found).abs().max()) < 1e-12


def through(codecs: Mapping[str, AnyCodec], rows: Tensor, silo: int, use: int) -> Tensor:
    """What arrives of a silo's rows, the seed's draws included."""
    if not codecs:
        return rows
    ids, counts = np.arange(len(rows)), np.array([len(rows)])
    draws = [Draw(3, f"share:{silo}", (0, use)).of(0)]
    return Channel(codecs["share"], len(rows)).transmit(rows, ids, counts, draws=draws)


@pytest.mark.parametrize("senders", [(0,), (1,), (0, 2), (2, 1), ()])
def test_bytes_by_hand(senders: tuple[int, ...]) -> None:
    """Clients of the senders to their hub, on to the other hubs, and their sum to the clients of who got something."""
    blocks = linear_blocks(3)
    ours = simulate(data_of(OWNERS), Absences((senders,), batch_size=5), blocks, batches=batches(*BATCHES))
    written = Written()
    for written.round, ids in enumerate(BATCHES):
        ours.run_round()
        rows = [Counter(OWNERS[j][i] for i in ids) for j in range(3)]
        for block, clients in zip(blocks, rows, strict=True):
            for _ in clients:
                written.send("client-hub down", "broadcast", numbers(size_of(block)))
                written.send("client-hub up", "average", numbers(size_of(block)))
        for step, some in enumerate(((0, 1, 2), senders)):
            _share(written, rows, some, step)
    written.assert_metered(ours)


def _share(written: Written, rows: Sequence[Counter[int]], senders: Sequence[int], step: int) -> None:
    for j in senders:
        for count in rows[j].values():
            written.send("client-hub up", "share", numbers(count, CLASSES), step=step)
        for _ in range(2):
            written.send("hub-hub across", "share", numbers(5, CLASSES), step=step)
    for i in range(3):
        for count in rows[i].values() if set(senders) - {i} else ():
            written.send("client-hub down", "share", numbers(count, CLASSES), step=step)


@dataclass(frozen=True)
class TooEarly(Absences):
    """Nobody has heard of silo 1."""

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.draw_batch(6, round=r)
        blocks = fed.broadcast(blocks, batch)
        fed.share(fed.embed(blocks, batch), batch, senders=(0, 2) if r else None)
        return blocks


@pytest.mark.parametrize("engine", [simulator, PartyByParty])
def test_a_silo_that_sent_nothing_of_this_batch_is_refused(engine: Any) -> None:
    ours = engine(THREE, make_task(3), TooEarly(()), seed=0, codecs={})
    ours.run_round()
    with pytest.raises(ConfigError, match="silo number 1 does not send, and nothing it sent of this"):
        ours.run_round()
