"""A party's ends and everybody's together: the same numbers, and memories that go through a snapshot."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from crosshatch.channels import Channels
from crosshatch.codecs import parse_codec

TEXTS = ["half", "randomk(0.5)", "ef(topk(0.4))", "ef(topk(0.4), accumulate)", "ef(identity)"]


def channels(text: str) -> Channels:
    return Channels({"average": parse_codec(text)}, seed=5)


def values(r: int) -> Tensor:
    return torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(r))


@pytest.mark.parametrize("text", TEXTS)
def test_parties_and_bulk_agree(text: str) -> None:
    hub, bulk, clients = channels(text), channels(text), [channels(text) for _ in range(3)]
    for r, at_work in enumerate([[0, 1, 2], [1], [0, 2], [0, 1, 2]]):
        sent, senders = values(r)[at_work], np.array(at_work)
        together = bulk.transmit("average", "0", (r, 0), sent, senders, 3, senders, np.ones_like(senders))
        for row, client, expected in zip(sent, at_work, together, strict=True):
            draw = clients[client].draw("average", "0", (r, 0), client)
            content = clients[client].write_vector(draw, row)
            assert torch.equal(clients[client].see_vector(draw, content, 6, row.dtype), expected)
            assert torch.equal(hub.read_vector(draw, content, 6, row.dtype), expected)


@pytest.mark.parametrize("text", TEXTS)
def test_a_snapshot_goes_on(text: str) -> None:
    straight, broken = channels(text), channels(text)
    draws = [straight.draw("average", "0", (r, 0), 1) for r in range(4)]
    for r, draw in enumerate(draws):
        if r == 2:
            kept, broken = broken.snapshot(), channels(text)
            broken.restore(kept)
        pair = [one.write_vector(draw, values(r)[0]) for one in (straight, broken)]
        assert torch.equal(*pair)
    broken.restore({})
    assert broken.snapshot() == {}


def test_an_exchange_without_a_codec_travels_as_it_is() -> None:
    one, rows = channels("half"), values(0)
    draw = one.draw("share", "0", (0, 0))
    assert one.write(draw, rows, np.arange(3), 3) is rows
    assert one.read(draw, rows, 6, rows.dtype, np.arange(3), 3) is rows
    assert one.write_vector(draw, rows[0]).data_ptr() == rows[0].data_ptr()


def test_who_missed_a_message_that_the_next_builds_on() -> None:
    one = Channels({"broadcast": parse_codec("ef(topk(0.5))")}, seed=1)
    assert one.missed("broadcast", "0", np.array([0, 1])) is None  # there was none before
    assert one.missed("broadcast", "0", np.array([0, 1])) is None
    missed = one.missed("broadcast", "0", np.array([1, 2]))
    assert missed is not None
    assert missed.tolist() == [False, True]
    later = Channels(one.codecs, seed=1)
    later.restore(one.snapshot())
    missed = later.missed("broadcast", "0", np.array([0, 1, 2]))
    assert missed is not None
    assert missed.tolist() == [True, False, False]


def test_older_checkpoints_have_a_flag_per_client() -> None:
    one = Channels({"broadcast": parse_codec("ef(topk(0.5))")}, seed=1)
    one.restore({"broadcast:0.up_to_date": torch.tensor([True, False, True])})
    missed = one.missed("broadcast", "0", np.array([0, 1, 2]))
    assert missed is not None
    assert missed.tolist() == [False, True, False]
