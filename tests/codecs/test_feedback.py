"""Error feedback: both ends agree, nothing is lost for good, and over a lossless codec it is not there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from crosshatch.channels import Channel
from crosshatch.codecs import Chain, Codec, Draw, ErrorFeedback, Half, Identity, Quantise, RandomK, TopK
from crosshatch.codecs.feedback import Mode
from crosshatch.errors import ConfigError, DataError

LOSSY: tuple[Codec, ...] = (TopK(0.1), Quantise(16), Half(), RandomK(0.2), Chain(TopK(0.1), Quantise(128)))
MODES: tuple[Mode, ...] = ("ef21", "accumulate")
SAMPLES, WIDTH = 30, 5
modes = pytest.mark.parametrize("mode", MODES)


def rounds(
    count: int, *, seed: int = 0, batch: int = 12
) -> list[tuple[Tensor, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """Values and ids of some rounds, mini-batches of different samples."""
    rng = np.random.default_rng(seed)
    return [
        (
            torch.from_numpy(rng.normal(size=(batch, WIDTH)).astype(np.float32)),
            rng.choice(SAMPLES, batch, replace=False).astype(np.int64),
        )
        for _ in range(count)
    ]


@modes
@pytest.mark.parametrize("codec", [Identity(), TopK(1.0), Chain(Identity(), TopK(1.0))], ids=str)
def test_over_a_lossless_codec_it_is_the_identity(codec: Codec, mode: Mode) -> None:
    sender, receiver, both = (Channel(ErrorFeedback(codec, mode), SAMPLES) for _ in range(3))
    for x, ids in rounds(20):
        data = sender.send(x, ids)
        assert data == Identity().encode(x)
        assert torch.equal(receiver.receive(data, (12, WIDTH), x.dtype, ids), x)
        assert torch.equal(both.transmit(x, ids), x)


@pytest.mark.parametrize("codec", LOSSY, ids=str)
def test_both_ends_hold_the_same_and_the_simulator_agrees(codec: Codec) -> None:
    sender, receiver, both = (Channel(ErrorFeedback(codec), SAMPLES) for _ in range(3))
    for r, (x, ids) in enumerate(rounds(15)):
        draw = Draw(1, "share", (r,))
        data = sender.send(x, ids, draw=draw)
        assert len(data) == sender.codec.size((12, WIDTH), x.dtype)
        value = receiver.receive(data, (12, WIDTH), x.dtype, ids, draw=draw)
        assert torch.equal(value, both.transmit(x, ids, draws=[draw]))
        assert sender.memory is not None
        assert receiver.memory is not None
        assert both.memory is not None
        assert torch.equal(sender.memory, receiver.memory)
        assert torch.equal(sender.memory, both.memory)
        assert torch.equal(value, sender.memory[torch.from_numpy(ids)])


@pytest.mark.parametrize("codec", LOSSY, ids=str)
def test_ef21_against_a_dictionary(codec: Codec) -> None:
    """Memory per sample id, written out: m_i <- m_i + C(x - m)_i for the ids of the batch only."""
    channel, memory = Channel(ErrorFeedback(codec), SAMPLES), {i: torch.zeros(WIDTH) for i in range(SAMPLES)}
    for r, (x, ids) in enumerate(rounds(15)):
        draw = Draw(1, "share", (r,))
        sent = codec.roundtrip(
            torch.stack([row - memory[i] for row, i in zip(x, ids.tolist(), strict=True)]), draw=draw
        )
        for row, i in zip(sent, ids.tolist(), strict=True):
            memory[i] = memory[i] + row
        value = channel.transmit(x, ids, draws=[draw])
        assert torch.equal(value, torch.stack([memory[i] for i in ids.tolist()]))


@pytest.mark.parametrize("codec", LOSSY, ids=str)
def test_accumulate_sends_everything_in_the_end(codec: Codec) -> None:
    """What arrived and what is still owed add up to what was to be sent, and the receiver keeps no memory."""
    sender, receiver, both = (Channel(ErrorFeedback(codec, "accumulate"), SAMPLES) for _ in range(3))
    given_in, arrived = torch.zeros(SAMPLES, WIDTH), torch.zeros(SAMPLES, WIDTH)
    for r, (x, ids) in enumerate(rounds(15)):
        draw, at = Draw(1, "share", (r,)), torch.from_numpy(ids)
        value = receiver.receive(sender.send(x, ids, draw=draw), (12, WIDTH), x.dtype, ids, draw=draw)
        assert torch.equal(value, both.transmit(x, ids, draws=[draw]))
        given_in[at] += x
        arrived[at] += value
    assert sender.memory is not None
    torch.testing.assert_close(arrived + sender.memory, given_in, rtol=0, atol=1e-5)
    assert receiver.memory is not None
    assert not receiver.memory.any()


@given(values=st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=30), k=st.integers(1, 10))
def test_a_constant_vector_gets_through_top_k(values: list[float], k: int) -> None:
    """k entries a time, the largest first: after ceil(n / k) messages all is there."""
    x, channel = torch.tensor([values], dtype=torch.float32), Channel(ErrorFeedback(TopK(k=k)), rows=1)
    for _ in range(-(-len(values) // k)):
        arrived = channel.transmit(x, np.array([0]))
    assert torch.equal(arrived, x)


@pytest.mark.parametrize("codec", [TopK(0.1), Chain(TopK(0.3), Quantise(16)), RandomK(0.2), Quantise(4)], ids=str)
def test_a_constant_converges_where_the_plain_codec_stays_off(codec: Codec) -> None:
    x, _ = rounds(1, batch=SAMPLES)[0]
    ids, channel = np.arange(SAMPLES), Channel(ErrorFeedback(codec), SAMPLES)
    errors = [float((channel.transmit(x, ids, draws=[Draw(1, "share", (r,))]) - x).abs().max()) for r in range(60)]
    assert errors[-1] < 1e-4
    plain = float((codec.roundtrip(x, draw=Draw(1, "share", (0,))) - x).abs().max())
    assert plain > 0.1


@modes
def test_many_messages_share_one_memory(mode: Mode) -> None:
    """One channel for all clients of a silo is one channel a client: they hold different samples."""
    feedback, counts = ErrorFeedback(TopK(0.2), mode), np.array([3, 0, 4, 5])
    together, apart = Channel(feedback, SAMPLES), [Channel(feedback, SAMPLES) for _ in counts]
    owned = np.random.default_rng(0).permutation(SAMPLES)[:12]
    for x, _ in rounds(6):
        parts = zip(apart, torch.split(x, counts.tolist()), np.split(owned, np.cumsum(counts)[:-1]), strict=True)
        each = [channel.transmit(part, ids) for channel, part, ids in parts]
        assert torch.equal(together.transmit(x, owned, counts), torch.cat(each))


def test_resuming_from_a_snapshot_changes_nothing() -> None:
    feedback = ErrorFeedback(Chain(TopK(0.1), Quantise(128)))
    straight, before = Channel(feedback, SAMPLES), Channel(feedback, SAMPLES)
    assert before.memory is None
    expected = [straight.transmit(x, ids) for x, ids in rounds(10)]
    for x, ids in rounds(10)[:5]:
        before.transmit(x, ids)
    assert before.memory is not None
    kept = before.memory.clone()
    before.transmit(*rounds(10)[5])  # a round that a crash undoes
    after = Channel(feedback, SAMPLES)
    after.memory = kept
    for (x, ids), value in zip(rounds(10)[5:], expected[5:], strict=True):
        assert torch.equal(after.transmit(x, ids), value)


def test_an_id_twice_keeps_its_last_row_at_both_ends() -> None:
    ids, x = np.array([2, 0, 2]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    sender, receiver = (Channel(ErrorFeedback(Half()), rows=3) for _ in range(2))
    receiver.receive(sender.send(x, ids), (3, 2), x.dtype, ids)
    expected = torch.tensor([[3.0, 4.0], [0.0, 0.0], [5.0, 6.0]])
    for one in (sender, receiver):
        assert one.memory is not None
        assert torch.equal(one.memory, expected)


def test_a_refused_message_leaves_the_memory_alone() -> None:
    sender, receiver = (Channel(ErrorFeedback(TopK(0.1)), SAMPLES) for _ in range(2))
    x, ids = rounds(1)[0]
    data = sender.send(x, ids)
    with pytest.raises(DataError, match="cut off"):
        receiver.receive(data[:-1], (12, WIDTH), x.dtype, ids)
    receiver.receive(data, (12, WIDTH), x.dtype, ids)
    assert receiver.memory is not None
    assert sender.memory is not None
    assert torch.equal(receiver.memory, sender.memory)


@pytest.mark.parametrize("codec", [*LOSSY, Identity()], ids=str)
def test_a_channel_without_feedback_is_its_codec(codec: Codec) -> None:
    channel, draw = Channel(codec, SAMPLES), Draw(1, "share", (0,))
    x, ids = rounds(1)[0]
    data = channel.send(x, ids, draw=draw)
    assert data == codec.encode(x, draw=draw)
    assert torch.equal(channel.receive(data, (12, WIDTH), x.dtype, ids, draw=draw), codec.roundtrip(x, draw=draw))
    assert torch.equal(channel.transmit(x, ids, draws=[draw]), codec.roundtrip(x, draw=draw))
    assert channel.memory is None


def test_bad_feedback() -> None:
    with pytest.raises(ConfigError, match="goes around a codec"):
        ErrorFeedback(ErrorFeedback(TopK(0.1)))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="ef21, accumulate"):
        ErrorFeedback(TopK(0.1), "ef14")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="leave out unbiased"):
        ErrorFeedback(Chain(RandomK(0.1, unbiased=True), Half()))
    with pytest.raises(ConfigError, match="put error feedback around it"):
        Chain(ErrorFeedback(TopK(0.1)), Half())  # type: ignore[arg-type]
