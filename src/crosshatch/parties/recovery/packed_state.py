"""A party's state as bytes and back: no pickle, checked whole before anything of it is used.

The bytes are a mark, a format number, the length of a msgpack header, the header, tensors and messages as they are, one
after the other, and a digest of all that. Equal messages to several receivers are written once.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from math import prod
from typing import Any

import msgspec
import torch
from torch import Tensor

from crosshatch.errors import RunError
from crosshatch.parties.agents.dual_role import Dual
from crosshatch.parties.agents.token_roles import Tokens
from crosshatch.parties.holdings.agreed import Batch
from crosshatch.parties.holdings.model import KnownOfOthers
from crosshatch.parties.holdings.values import Blocks, Embeddings, Frozen
from crosshatch.parties.line import Key, Name
from crosshatch.parties.recovery.mail import BEGIN_AGAIN
from crosshatch.plain_data import Kinds, put_together, take_apart

FORMAT = 2
KINDS = (Batch, Blocks, Dual, Embeddings, Frozen, KnownOfOthers, Tokens)
"""What a party's state may hold beside tensors, arrays and plain data."""
_START = struct.Struct("<8sHQ")  # mark, format, length of the header
_MARK = b"xhatchst"
_DIGEST = 32
_TYPES = {str(t): t for t in (torch.float16, torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool)}


@dataclass(frozen=True)
class StoredState:
    """What a party goes on from after a crash: `value` is its own state at the start of the round.

    `sent` are its messages of earlier rounds, by receiver, that the receiver has not said to be behind it; `heard` is
    the round that each peer said it has stored. `secret` is what its private randomness comes from. `fingerprint` is
    what decides the last digits of its numbers, `again` how many times all had begun again at an earlier round before
    it was written, and a `clean` one was the last thing its party did: nothing of its round was sent.
    """

    run: str
    party: Name
    round: int
    value: Any
    sent: Mapping[Name, Mapping[Key, bytes]] = field(default_factory=dict)
    heard: Mapping[Name, int] = field(default_factory=dict)
    secret: bytes = field(default=b"", repr=False)
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    again: int = 0
    clean: bool = False


class _Header(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    run: str
    party: str
    round: int
    secret: bytes
    value: Any
    tensors: tuple[tuple[str, tuple[int, ...]], ...]  # type and shape of each, in the order they stand in
    messages: tuple[int, ...]  # bytes of each, behind the tensors
    sent: tuple[tuple[str, Key, int], ...]  # receiver, key, which message
    heard: dict[str, int]
    fingerprint: dict[str, str]
    again: int
    clean: bool


def pack(state: StoredState, kinds: Kinds = KINDS) -> bytes:
    """The state as bytes.

    >>> once = StoredState("0badcafe", "hub-0-0", 3, {"round": 3}, {"client-0-0-0": {(2, "broadcast", 0): bytes(9)}})
    >>> unpack(pack(once), run="0badcafe", party="hub-0-0") == once
    True
    """
    return b"".join(pieces(state, kinds))


def pieces(state: StoredState, kinds: Kinds = KINDS) -> list[bytes]:
    """The state as bytes, one after the other: numbers are copied, messages, which nobody changes, are not.

    `kinds` are the dataclasses that its value may hold.
    """
    found: list[Tensor] = []
    value = take_apart(state.value, kinds, found, f"the state of {state.party}")
    tensors = tuple((str(one.dtype), tuple(one.shape)) for one in found)
    numbers = (one.detach().cpu().contiguous().numpy().tobytes() for one in found)
    places: dict[bytes, int] = {}
    sent = tuple(
        (to, key, places.setdefault(message, len(places)))
        for to, mine in state.sent.items()
        for key, message in mine.items()
    )
    about = _Header(
        state.run, state.party, state.round, state.secret, value, tensors, tuple(map(len, places)), sent,
        dict(state.heard), dict(state.fingerprint), state.again, state.clean,
    )  # fmt: skip
    header = msgspec.msgpack.encode(about)
    content = [_START.pack(_MARK, FORMAT, len(header)), header, *numbers, *places]
    digest = sha256()
    for piece in content:
        digest.update(piece)
    return [*content, digest.digest()]


def unpack(data: bytes, kinds: Kinds = KINDS, *, run: str, party: Name) -> StoredState:
    """The state of this party in this run; anything else is refused before it is read."""
    if len(data) < _START.size + _DIGEST or data[: len(_MARK)] != _MARK:
        raise RunError(f"{party}: {len(data)} bytes that are no state of a party: is it another file, or cut off?")
    _, written, length = _START.unpack_from(data)
    if written != FORMAT:
        raise RunError(
            f"{party}: its state has format {written}, this version reads {FORMAT}: go on with the version that wrote "
            "it, or launch a new run"
        )
    if sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise RunError(
            f"{party}: its state is damaged or cut off, its digest does not fit: restore it, or {BEGIN_AGAIN}"
        )
    try:
        header = msgspec.msgpack.decode(data[_START.size : _START.size + length], type=_Header)
        _require_own(header, run, party)
        sizes = [prod(shape) * _TYPES[kind].itemsize for kind, shape in header.tensors]
        pieces = _cut(data[_START.size + length : -_DIGEST], [*sizes, *header.messages])
        tensors = [_tensor(piece, *about) for piece, about in zip(pieces, header.tensors, strict=False)]
        sent: dict[Name, dict[Key, bytes]] = {}
        for to, key, place in header.sent:
            sent.setdefault(to, {})[key] = pieces[len(sizes) :][place]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError, ValueError) as error:
        raise RunError(f"{party}: its state does not decode ({error!r:.80}): restore it, or {BEGIN_AGAIN}") from None
    value = put_together(header.value, kinds, tensors)
    return StoredState(
        header.run, header.party, header.round, value, sent, header.heard, header.secret, header.fingerprint,
        header.again, header.clean,
    )  # fmt: skip


def _require_own(header: _Header, run: str, party: Name) -> None:
    if (header.run, header.party) != (run, party):
        raise RunError(
            f"{party}: this is the state of {header.party} in run {header.run}, not of {party} in run {run}: give "
            "every party its own folder, and every run a new one"
        )


def _cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Pieces of these sizes, which must be all there is."""
    if min(sizes, default=0) < 0 or sum(sizes) != len(data):
        raise ValueError(f"{sum(sizes)} bytes are announced, {len(data)} are there")
    ends = list(accumulate(sizes))
    return [data[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _tensor(data: bytes, kind: str, shape: tuple[int, ...]) -> Tensor:
    """A copy in torch's own memory: elsewhere kernels may round differently."""
    found = torch.empty(shape, dtype=_TYPES[kind])
    if data:
        found.view(-1).copy_(torch.frombuffer(bytearray(data), dtype=_TYPES[kind]))
    return found
