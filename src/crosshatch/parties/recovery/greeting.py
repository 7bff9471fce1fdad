"""The first thing that two parties tell each other: what must be the same at both, and what is good to know."""

from collections.abc import Mapping

import msgspec

from crosshatch.errors import MessageError
from crosshatch.parties.line import Name

_SHOWN = 60  # characters of a value in a line


class Greeting(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """`agreed` must be the same at both (run, digests of federation and text, versions), by what it is called.

    `about` may differ: the versions and the processor that its sender's numbers come from.
    """

    agreed: dict[str, str]
    about: dict[str, str]

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)


def read_greeting(message: bytes, sender: Name) -> Greeting:
    """What a peer greets with; without a word, a greeting that says nothing."""
    if not message:
        return Greeting({}, {})
    try:
        return msgspec.msgpack.decode(message, type=Greeting)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MessageError(f"{sender} greets with what is no greeting ({error!s:.80}): another version?") from None


def require_agreed(mine: Mapping[str, str], theirs: Mapping[str, str], me: Name, peer: Name) -> None:
    """Refuse a peer with whom a round would not be the same round.

    >>> require_agreed({"run": "0badcafe", "text": "1f"}, {"run": "0badcafe", "text": "2e"}, "hub-0-0", "hub-0-1")
    Traceback (most recent call last):
        ...
    crosshatch.errors.MessageError: hub-0-1 and hub-0-0 do not fit: text is 2e at hub-0-1, 1f at hub-0-0: give both the\
 same, then resume the run
    """
    other = [name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)]
    if other:
        told = "; ".join(
            f"{name} is {_say(theirs.get(name))} at {peer}, {_say(mine.get(name))} at {me}" for name in other
        )
        raise MessageError(f"{peer} and {me} do not fit: {told}: give both the same, then resume the run")


def _say(value: str | None) -> str:
    return "not told" if value is None else value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
