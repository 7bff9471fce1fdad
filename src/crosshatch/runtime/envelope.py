"""What travels on a stream: mail's frames in pieces of a bounded size, checked before memory is taken for them.

One transport message holds a list of envelopes, at most `FRAME` bytes together. A message that is longer goes in
several pieces, one after the other; nothing comes between them. The messages inside are counted by the meter, the
envelopes are control.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from crosshatch.errors import MessageError
from crosshatch.parties.line import Key
from crosshatch.parties.recovery.mail import Frame, FrameKind

FRAME = 1 << 20
"""Bytes of the largest transport message."""
_OVERHEAD = 256  # of an envelope beside its piece, at most
PIECE = FRAME - _OVERHEAD
"""Bytes of each piece of a long message but the last: what is put together takes no more memory than its length."""
_WORDS = 4096  # bytes of a greeting, or of why somebody stops
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Name = Annotated[str, msgspec.Meta(max_length=60)]


class Envelope(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A piece of a frame: what it is of, how long all of it is, how much went before."""

    kind: FrameKind
    stored: _Count
    key: tuple[Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**53)], _Name, _Count]
    length: _Count
    before: _Count
    piece: memoryview


_encoder, _decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(list[Envelope])


def pack(frames: Sequence[Frame]) -> Iterator[bytes]:
    """Frames as transport messages, each as full as it may be.

    >>> long = Frame(FrameKind.MESSAGE, 3, (4, "share", 0), bytes(2_500_000))
    >>> [len(one) for one in pack([long, Frame(FrameKind.STORED, 4)])]
    [1048344, 1048348, 403399]
    """
    waiting: list[Envelope] = []
    size = 0
    for frame in frames:
        for before in range(0, max(1, len(frame.message)), PIECE):
            piece = memoryview(frame.message)[before : before + PIECE]
            if waiting and size + len(piece) + _OVERHEAD > FRAME:
                yield _encoder.encode(waiting)
                waiting, size = [], 0
            waiting.append(Envelope(frame.kind, frame.stored, frame.key, len(frame.message), before, piece))
            size += len(piece) + _OVERHEAD
    if waiting:
        yield _encoder.encode(waiting)


@dataclass
class Opener:
    """Puts together what one connection brings; `longest(key)` is the most bytes that are due under a key.

    Whatever does not fit is a MessageError, before memory is taken for it: the connection it came on is to be cut.
    """

    longest: Callable[[Key], int]
    _frame: Envelope | None = field(default=None, init=False)  # the first piece of what is coming in
    _pieces: list[memoryview] = field(default_factory=list, init=False)  # all but the last are full

    def open(self, data: bytes) -> list[Frame]:
        """The frames that are complete with this transport message."""
        if len(data) > FRAME:
            raise MessageError(f"{len(data)} bytes at once, {FRAME} are the most")
        try:
            envelopes = _decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MessageError(f"no envelope ({error!s:.80})") from None
        return [frame for one in envelopes if (frame := self._add(one)) is not None]

    def _add(self, one: Envelope) -> Frame | None:
        first = self._frame
        if first is None:
            most = self.longest(one.key) if one.kind == FrameKind.MESSAGE else _WORDS
            if one.length > most:
                raise MessageError(f"{one.length} bytes announced for {_say(one)}, {most} are the most")
            if one.before:
                raise MessageError(f"the middle of {_say(one)} without its beginning")
        elif (one.kind, one.key, one.length, one.before) != (first.kind, first.key, first.length, self._have):
            raise MessageError(f"a piece of {_say(one)} amid {_say(first)}")
        have = self._have + len(one.piece)
        if have > one.length or (have < one.length and len(one.piece) != PIECE):
            raise MessageError(f"{have} bytes of {one.length} for {_say(one)}")
        self._pieces.append(one.piece)
        if have < one.length:
            self._frame = first or one
            return None
        content, self._pieces, self._frame = b"".join(self._pieces), [], None
        return Frame(one.kind, one.stored, one.key, content)

    @property
    def _have(self) -> int:
        return PIECE * len(self._pieces)


def _say(one: Envelope) -> str:
    if one.kind != FrameKind.MESSAGE:
        return one.kind.name.lower()
    return f"'{one.key[1]}' of round {one.key[0]}, use {one.key[2]}"
