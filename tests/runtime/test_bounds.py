"""A peer that is let in still cannot send what is another's, or more than its exchange can bring."""

from __future__ import annotations

import pytest

from crosshatch.errors import MessageError
from crosshatch.parties.longest_messages import longest_of
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.recovery.mail import Frame, FrameKind
from crosshatch.runtime.envelope import Opener, pack
from crosshatch.testing.federations import vertical_cases


@pytest.mark.parametrize(
    ("sender", "exchange", "size"),
    [
        ("hub-0-0", "average_groups", 20),  # the server's
        ("client-0-1-2", "broadcast", 20),  # the hub's own
        ("server-0-0", "average_groups", 1_000_000),
        ("client-0-1-2", "average", 1_000_000),
        ("hub-0-0", "share", 1_000_000),
    ],
)
def test_a_message_is_refused_by_its_first_piece(sender: str, exchange: str, size: int) -> None:
    case = next(case for case in vertical_cases() if case.name == "HSGD")
    hub = parties_of(case.data, case.task, case.algorithm, seed=case.seed)["hub-0-1"]
    longest = longest_of(hub, lambda _: 100_000_000)
    opener = Opener(lambda key: longest(sender, key))
    first = next(pack([Frame(FrameKind.MESSAGE, 0, (0, exchange, 0), bytes(size))]))
    with pytest.raises(MessageError, match=f"{size} bytes announced for '{exchange}' of round 0, use 0, .* the most"):
        opener.open(first)
