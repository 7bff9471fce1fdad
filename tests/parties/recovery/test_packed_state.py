"""A party's state as bytes: it comes back bit for bit, and anything else is refused in one line."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.errors import ConfigError, RunError
from crosshatch.parties.recovery.packed_state import FORMAT, StoredState, pack, unpack
from crosshatch.testing.check_values import same_value


@dataclass(frozen=True)
class Kept:
    """A value of a kind of its own."""

    block: torch.Tensor | None
    parts: tuple[Any, ...]


VALUE = {
    "round": 7,
    "block": Kept(torch.tensor([1.5, float("nan"), -0.0]), (np.arange(4), None, frozenset([2, 1]))),
    "memory": [torch.zeros(0, 3, dtype=torch.float64), torch.tensor(True), 0.1, "word", (), {3: {"deep": [1]}}],
    "bytes": torch.arange(5, dtype=torch.uint8),
    "scalar": torch.tensor(2.0),
}
SENT = {
    "client-0": {(5, "broadcast", 0): b"the same block" * 1000, (6, "share", 1): b""},
    "client-1": {(5, "broadcast", 0): b"the same block" * 1000},
}
STATE = StoredState("0badcafe", "hub-0-1", 7, VALUE, SENT, {"client-0": 5, "client-1": 4}, bytes(range(32)))
PACKED = pack(STATE, (Kept,))


def read(data: bytes, run: str = "0badcafe", party: str = "hub-0-1") -> StoredState:
    return unpack(data, (Kept,), run=run, party=party)


def test_comes_back_bit_for_bit() -> None:
    found = read(PACKED)
    without_nan, wanted = (replace(one, value=None) for one in (found, STATE))
    assert without_nan == wanted
    bits = found.value["block"].block.view(torch.int32)
    assert torch.equal(bits, VALUE["block"].block.view(torch.int32))  # type: ignore[attr-defined]
    del found.value["block"]
    assert same_value(found.value, {name: one for name, one in VALUE.items() if name != "block"})
    assert pack(read(PACKED), (Kept,)) == PACKED


def test_equal_messages_are_written_once() -> None:
    assert PACKED.count(b"the same block") == 1000
    single = replace(STATE, sent={"client-0": SENT["client-0"]})
    assert len(PACKED) - len(pack(single, (Kept,))) < 60


def test_a_tensor_in_two_places_stays_one() -> None:
    block = torch.ones(1000)
    packed = pack(replace(STATE, value=(block, {"again": block}), sent={}))
    assert len(packed) < 4000 + 400
    first, second = unpack(packed, run="0badcafe", party="hub-0-1").value
    assert first is second["again"]


def test_tensors_lie_in_memory_as_torch_lays_them() -> None:
    found = unpack(pack(replace(STATE, value=torch.ones(9))), run="0badcafe", party="hub-0-1").value
    assert found.data_ptr() % 64 == torch.ones(9).data_ptr() % 64


def signed(content: bytes) -> bytes:
    return content + sha256(content).digest()


def test_other_bytes_are_refused_by_what_they_are() -> None:
    for data, words in (
        (b"", "hub-0-1: 0 bytes that are no state of a party"),
        (b"PK" + bytes(500), "502 bytes that are no state of a party: is it another file, or cut off"),
        (PACKED[:8] + (FORMAT + 1).to_bytes(2, "little") + PACKED[10:], f"format {FORMAT + 1}, this version reads"),
        (PACKED[:-1], "damaged or cut off"),
        (PACKED[:100], "damaged or cut off"),
        (PACKED[:700] + b"?" + PACKED[701:], "damaged or cut off"),
        (signed(PACKED[:-33]), "does not decode"),
        (signed(PACKED[:-32] + b"more"), "does not decode"),
        (signed(PACKED[:10] + (2**62).to_bytes(8, "little") + PACKED[18:-32]), "does not decode"),
    ):
        with pytest.raises(RunError, match=words):
            read(data)


def test_another_partys_or_runs_state_is_refused() -> None:
    with pytest.raises(RunError, match="the state of hub-0-1 in run 0badcafe, not of hub-0-0 in run 0badcafe"):
        read(PACKED, party="hub-0-0")
    with pytest.raises(RunError, match="not of hub-0-1 in run 0badcaff"):
        read(PACKED, run="0badcaff")


@settings(max_examples=300)
@given(st.data())
def test_whatever_is_changed_is_a_typed_error(data: st.DataObject) -> None:
    """With a digest that fits, as nobody but an attacker writes it."""
    place = data.draw(st.integers(0, len(PACKED) - 33))
    changed = bytearray(PACKED[:-32])
    changed[place] = data.draw(st.integers(0, 255))
    with suppress(RunError):  # nothing else, and no crash
        found = read(signed(bytes(changed[: data.draw(st.integers(place, len(changed)))])))
        assert (found.run, found.party) == ("0badcafe", "hub-0-1")


def test_sizes_are_checked_before_memory_is_taken() -> None:
    """A tensor of 10 GB that is announced and not there."""
    start, length = 18, int.from_bytes(PACKED[10:18], "little")
    header = msgspec.msgpack.decode(PACKED[start : start + length])
    header[5][0] = ["torch.float32", [10**5, 10**5]]
    longer = msgspec.msgpack.encode(header)
    forged = PACKED[:10] + len(longer).to_bytes(8, "little") + longer + PACKED[start + length : -32]
    with pytest.raises(RunError, match=r"4000\d+ bytes are announced"):
        read(signed(forged))


def test_what_is_no_data_is_refused_when_it_is_written() -> None:
    with pytest.raises(ConfigError, match="the state of hub-0-1 holds a function"):
        pack(replace(STATE, value={"hook": test_equal_messages_are_written_once}))
    with pytest.raises(ConfigError, match="holds a Kept"):
        pack(STATE)


def test_a_kind_that_is_not_known_is_refused() -> None:
    with pytest.raises(RunError, match="no kind of value that is known here"):
        unpack(PACKED, run="0badcafe", party="hub-0-1")
