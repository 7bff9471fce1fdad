"""What every codec must do, whatever it is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from crosshatch import wire
from crosshatch.codecs import Chain, Codec, Draw, Half, Identity, Quantise, RandomK, Step, TopK
from crosshatch.codecs.codec import Array
from crosshatch.errors import ConfigError, DataError, TrainingError


@dataclass(frozen=True)
class Jitter(Step):
    """A step that draws, one generator per message."""

    by: float

    def __str__(self) -> str:
        return f"jitter({self.by})"

    def change(self, values: Array, draws: Sequence[Draw | None]) -> Array:
        noise = [(draw or DRAW).generator().normal(size=values.shape[1]) for draw in draws]
        changed: Array = values + self.by * np.array(noise)
        return changed


CODECS: tuple[Codec, ...] = (
    Jitter(0.1),
    Chain(Jitter(0.1), TopK(0.3)),
    Identity(),
    Half(),
    TopK(0.01),
    TopK(0.3),
    TopK(1.0),
    TopK(k=5),
    RandomK(0.1),
    RandomK(0.5, unbiased=True),
    RandomK(1.0),
    Quantise(2),
    Quantise(3),
    Quantise(128),
    Quantise(1000),
    Quantise(2**24),
    Chain(TopK(0.1), Quantise(128)),
    Chain(TopK(0.1), Half()),
    Chain(Half(), TopK(0.5), Quantise(7)),
    Chain(RandomK(0.5, unbiased=True), Quantise(128)),
    Chain(TopK(0.5), TopK(0.5)),
    Chain(Identity(), Identity()),
)
DTYPES = (torch.float16, torch.float32, torch.float64)
SHAPES = ((1, 1), (1, 2), (7, 1), (3, 5), (32, 16), (1, 1001), (13,), (2, 3, 4), (0, 4), (3, 0))
DRAW = Draw(7, "share", (3, 0))
codecs = pytest.mark.parametrize("codec", CODECS, ids=str)


def tensor(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> Tensor:
    """Normal numbers, some of them zero."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=shape) * (rng.random(shape) > 0.2)).to(dtype)


@codecs
def test_size_is_the_length_and_decode_is_the_round_trip(codec: Codec) -> None:
    for shape, dtype in itertools.product(SHAPES, DTYPES):
        x = tensor(shape, dtype)
        data = codec.encode(x, draw=DRAW)
        assert codec.size(shape, dtype) == len(data), (shape, dtype)
        decoded, fast = codec.decode(data, shape, dtype, draw=DRAW), codec.roundtrip(x, draw=DRAW)
        assert decoded.dtype == fast.dtype == dtype
        assert decoded.shape == fast.shape == x.shape
        assert decoded.numpy().tobytes() == fast.numpy().tobytes(), "bit for bit, signs of zeros too"


@codecs
@settings(max_examples=25)
@given(data=st.data())
def test_any_numbers(codec: Codec, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=40))
    x = torch.tensor(values, dtype=torch.float32)
    encoded, result = codec.encode_and_roundtrip(x, draw=DRAW)
    assert len(encoded) == codec.size(x.shape, x.dtype)
    assert encoded == codec.encode(x, draw=DRAW)
    decoded = codec.decode(encoded, x.shape, x.dtype, draw=DRAW)
    assert decoded.numpy().tobytes() == result.numpy().tobytes() == codec.roundtrip(x, draw=DRAW).numpy().tobytes()


@codecs
@pytest.mark.parametrize("counts", [[4, 4, 4], [1] * 12, [3, 0, 5, 3, 1], [12], [0, 12, 0]])
def test_many_messages_at_once_are_each_by_itself(codec: Codec, counts: list[int]) -> None:
    x = tensor((12, 6), torch.float32)
    draws = [DRAW.of(i) for i in range(len(counts))]
    each = [codec.roundtrip(part, draw=draw) for part, draw in zip(torch.split(x, counts), draws, strict=True)]
    assert torch.equal(codec.roundtrip_each(x, np.array(counts), draws=draws), torch.cat(each))


@codecs
def test_views_and_gradients_do_not_matter(codec: Codec) -> None:
    x = tensor((6, 8), torch.float32)
    turned = x.t().contiguous().t().requires_grad_()
    assert codec.encode(turned, draw=DRAW) == codec.encode(x, draw=DRAW)
    assert not codec.roundtrip(turned, draw=DRAW).requires_grad


@codecs
def test_input_is_left_alone(codec: Codec) -> None:
    x = tensor((6, 8), torch.float32)
    before = x.clone()
    codec.encode(x, draw=DRAW)
    codec.roundtrip(x, draw=DRAW)
    assert torch.equal(x, before)


@codecs
def test_cut_off_and_overlong_messages(codec: Codec) -> None:
    x = tensor((6, 8), torch.float32)
    data = codec.encode(x, draw=DRAW)
    for damaged in (data[:-1], data + b"\0", b"", data[: len(data) // 2]):
        with pytest.raises(DataError, match=rf"message of {len(damaged)} bytes where .* takes {len(data)}"):
            codec.decode(damaged, x.shape, x.dtype, draw=DRAW)


@codecs
def test_no_memory_is_taken_for_a_size_the_bytes_do_not_bear_out(codec: Codec) -> None:
    with pytest.raises(DataError):
        codec.decode(b"\0" * 100, (10**9, 10**6), torch.float32, draw=DRAW)


@codecs
@settings(max_examples=25)
@given(noise=st.binary(min_size=300, max_size=300))
def test_noise_decodes_or_is_refused(codec: Codec, noise: bytes) -> None:
    size = codec.size((6, 8), torch.float32)
    try:
        outcome = str(tuple(codec.decode(noise[:size], (6, 8), torch.float32, draw=DRAW).shape))
    except DataError as error:
        outcome = str(error)
    assert outcome == "(6, 8)" or "damaged" in outcome


@codecs
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_are_refused_or_kept(codec: Codec, bad: float) -> None:
    x = tensor((6, 8), torch.float32)
    x[2, 3] = bad
    if isinstance(codec.stages[0], RandomK):  # may not draw it
        x[:] = bad
    if codec.lossless or isinstance(codec, RandomK):
        assert not codec.roundtrip(x, draw=DRAW).isfinite().all()
    else:
        with pytest.raises(TrainingError, match=r"lower algorithm\.step_size"):
            codec.roundtrip(x, draw=DRAW)


@codecs
def test_lossless_says_so(codec: Codec) -> None:
    x = tensor((20, 30), torch.float32) * 1000 + 1
    assert codec.lossless == torch.equal(codec.roundtrip(x, draw=DRAW), x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.bfloat16])
def test_other_types_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(DataError, match="float16, float32 or float64"):
        Identity().encode(torch.zeros(3, dtype=dtype))
    with pytest.raises(DataError, match="float16, float32 or float64"):
        Identity().size((3,), dtype)


def test_chain_of_nothing_and_bad_order() -> None:
    with pytest.raises(ConfigError, match="at least two codecs, got 0"):
        Chain()
    with pytest.raises(ConfigError, match="at least two codecs, got 1"):
        Chain(TopK(0.1))
    with pytest.raises(ConfigError, match=r"quantise\(4\) must come last"):
        Chain(Quantise(4), TopK(0.1))
    with pytest.raises(ConfigError, match="single codecs"):
        Chain(TopK(0.1), Chain(Half(), Quantise(4)))  # type: ignore[arg-type]


def test_chain_quantises_the_kept_values_only() -> None:
    x = tensor((20, 30), torch.float32)
    kept = TopK(0.1).roundtrip(x)
    stays = kept != 0
    expected = torch.zeros_like(x)
    expected[stays] = Quantise(128).roundtrip(x[stays])
    assert torch.equal(Chain(TopK(0.1), Quantise(128)).roundtrip(x), expected)
    size = Chain(TopK(0.1), Quantise(128)).size(x.shape, x.dtype)
    assert size == TopK(0.1).size(x.shape, x.dtype) - 60 * 4 + 8 + 60 * 7 // 8 + 1


def test_all_entries_and_the_most_levels_are_nearly_the_identity() -> None:
    for dtype in (torch.float32, torch.float64):
        x = tensor((200, 30), dtype)
        arrived = Chain(TopK(1.0), Quantise(2**24)).roundtrip(x)
        assert float((arrived - x).abs().max()) <= 1e-6 * float(x.max() - x.min())


@codecs
def test_a_message_on_the_wire_is_as_long_as_foretold(codec: Codec) -> None:
    x = tensor((32, 16), torch.float32)
    payload = torch.frombuffer(bytearray(codec.encode(x, draw=DRAW)), dtype=torch.uint8)
    message = wire.encode("0badcafe", 3, "share", (payload,))
    assert len(message) == wire.size(3, "share", ((torch.uint8, (codec.size(x.shape, x.dtype),)),))
    _, (arrived,) = wire.decode(message)
    decoded = codec.decode(arrived.numpy().tobytes(), x.shape, x.dtype, draw=DRAW)
    assert torch.equal(decoded, codec.roundtrip(x, draw=DRAW))


def test_half_rounds_to_nearest_and_saturates() -> None:
    x = tensor((50, 20), torch.float32)
    assert torch.equal(Half().roundtrip(x), x.half().float())
    assert Half().roundtrip(torch.tensor([7e4, -1e30, 65503.9])).tolist() == [65504.0, -65504.0, 65504.0]
    assert Half().size((50, 20), torch.float64) == 2000
