"""The wire format: what is written is read again, what is broken is refused before memory is taken."""

from __future__ import annotations

import struct
import tracemalloc
from math import prod
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch import wire
from crosshatch.errors import DataError

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8)
shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
infos = st.lists(st.tuples(st.sampled_from(DTYPES), shapes), max_size=3).map(tuple)
# msgpack writes an integer in 1, 2, 3, 5 or 9 bytes: numbers around every border
numbers = st.sampled_from([0, 1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**40])
Info = tuple[tuple[torch.dtype, tuple[int, ...]], ...]


def fill(given_infos: Info, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Tensors of these types and shapes with all kinds of bytes in them."""
    numbers = torch.Generator().manual_seed(seed)
    tensors = []
    for dtype, shape in given_infos:
        values = torch.randint(-100 if dtype.is_signed else 0, 100, shape, generator=numbers)
        tensors.append(values.to(dtype) / 7 if dtype.is_floating_point else values.to(dtype))
    return tuple(tensors)


def by_hand(tensors: list[Any], body: bytes = b"", *, fields: list[Any] | None = None) -> bytes:
    """A message put together without the package."""
    header = msgspec.msgpack.encode(["0badcafe", 1, "share", 0, tensors] if fields is None else fields)
    return struct.pack("<I", len(header)) + header + body


@settings(max_examples=100)
@given(given_infos=infos, round=numbers, step=numbers, exchange=st.text(max_size=40), seed=st.integers(0, 99))
def test_what_is_written_is_read_again(given_infos: Info, round: int, step: int, exchange: str, seed: int) -> None:
    tensors = fill(given_infos, seed)
    message = wire.encode("0badcafe", round, exchange, tensors, use=step)
    header, found = wire.decode(message)
    assert (header.run, header.round, header.exchange, header.use) == ("0badcafe", round, exchange, step)
    assert len(found) == len(tensors)
    for ours, theirs in zip(found, tensors, strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)
        assert ours.shape == theirs.shape


@settings(max_examples=100)
@given(given_infos=infos, round=numbers, step=numbers, exchange=st.text(max_size=40))
def test_size_is_the_length_of_the_message(given_infos: Info, round: int, step: int, exchange: str) -> None:
    message = wire.encode("0badcafe", round, exchange, fill(given_infos), use=step)
    assert wire.size(round, exchange, given_infos, use=step) == len(message)


@pytest.mark.parametrize("rows", [0, 1, 127, 128, 255, 256, 65535, 65536, 70000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_size_counts_wide_integers_of_shapes(rows: int, dtype: torch.dtype) -> None:
    message = wire.encode("0badcafe", 3, "share", (torch.zeros(rows, 1, dtype=dtype),))
    assert wire.size(3, "share", ((dtype, (rows, 1)),)) == len(message)


def test_a_message_by_hand() -> None:
    """Byte for byte, so that the format cannot change unnoticed."""
    body = struct.pack("<4f", 1.0, 2.0, 3.0, 4.0)
    message = by_hand([["f4", [2, 2]]], body)
    assert wire.encode("0badcafe", 1, "share", (torch.tensor([[1.0, 2.0], [3.0, 4.0]]),)) == message
    # array of 5, "0badcafe", 1, "share", 0, array of 1 of array of 2: "f4", array of 2: 2, 2
    assert message[4:30] == b"\x95\xa80badcafe\x01\xa5share\x00\x91\x92\xa2f4\x92\x02\x02"


def test_tensors_that_are_views_are_written_in_order() -> None:
    columns = torch.arange(6.0).reshape(2, 3).T
    _, (found,) = wire.decode(wire.encode("0badcafe", 0, "share", (columns,)))
    assert torch.equal(found, columns)
    leaf = torch.ones(2, requires_grad=True)
    _, (found,) = wire.decode(wire.encode("0badcafe", 0, "share", (leaf,)))
    assert not found.requires_grad


def test_what_was_read_is_its_own() -> None:
    message = bytearray(wire.encode("0badcafe", 0, "share", (torch.zeros(2),)))
    _, (found,) = wire.decode(bytes(message))
    found.add_(1)  # writable, and no warning about read-only memory
    assert found.tolist() == [1.0, 1.0]


@settings(max_examples=50)
@given(given_infos=infos, data=st.data())
def test_a_message_cut_anywhere_is_refused(given_infos: Info, data: st.DataObject) -> None:
    message = wire.encode("0badcafe", 300, "average", fill(given_infos))
    with pytest.raises(DataError):
        wire.decode(message[: data.draw(st.integers(0, len(message) - 1))])


@settings(max_examples=50)
@given(given_infos=infos, more=st.binary(min_size=1, max_size=20))
def test_bytes_behind_the_last_tensor_are_refused(given_infos: Info, more: bytes) -> None:
    with pytest.raises(DataError, match="behind its last tensor"):
        wire.decode(wire.encode("0badcafe", 0, "share", fill(given_infos)) + more)


@settings(max_examples=200)
@given(noise=st.binary(max_size=60))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(DataError):
        wire.decode(noise)


@settings(max_examples=200)
@given(position=st.integers(0, 60), value=st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(position: int, value: int) -> None:
    """Never another kind of error, never a tensor of another size than the bytes there are."""
    message = bytearray(wire.encode("0badcafe", 1, "share", (torch.zeros(2, 3), torch.zeros(3))))
    message[position % len(message)] = value
    try:
        _, tensors = wire.decode(bytes(message))
    except DataError:
        return
    assert sum(t.numel() * t.itemsize for t in tensors) <= len(message)


def test_text_that_is_none_is_refused() -> None:
    message = bytearray(wire.encode("0badcafe", 1, "share", ()))
    message[message.index(b"share")] = 0xFF
    with pytest.raises(DataError):
        wire.decode(bytes(message))


@pytest.mark.parametrize(
    "tensors",
    [
        [["f4", [-1]]],
        [["f4", [-2, -2]]],
        [["f4", [2**63, 2**63]]],
        [["f8", [2**40]]],
        [["f4", [2]], ["f4", [10**12]]],
        [["c8", [1]]],
        [["O", [1]]],
        [["", [0]]],
        [["f4", [1.0]]],
        [["f4", "11"]],
        [["f4"]],
        "f4",
        None,
    ],
)
def test_a_lying_header_is_refused_without_taking_memory(tensors: Any) -> None:
    message = by_hand(tensors, b"\0" * 8)
    tracemalloc.start()
    try:
        with pytest.raises(DataError):
            wire.decode(message)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [[0, 2**63], [2**64 - 1, 0]])
def test_an_empty_tensor_with_an_impossible_dimension_is_refused(shape: list[int]) -> None:
    assert prod(shape) == 0
    with pytest.raises(DataError):
        wire.decode(by_hand([["f4", shape]]))


@pytest.mark.parametrize(
    "fields", [[], ["0badcafe"], [1, 2, 3, 4, []], ["0badcafe", "1", "share", 0, []], ["0badcafe", 1, b"share", 0, []]]
)
def test_other_headers_are_refused(fields: list[Any]) -> None:
    with pytest.raises(DataError, match="header"):
        wire.decode(by_hand([], fields=fields))


def test_an_oversize_header_is_refused_by_its_length_alone() -> None:
    with pytest.raises(DataError, match="header of 4294967295 bytes"):
        wire.decode(struct.pack("<I", 2**32 - 1) + b"\0" * 100)
    long = by_hand([], fields=["0" * 70000, 1, "share", 0, []])
    with pytest.raises(DataError, match="header of"):
        wire.decode(long)
