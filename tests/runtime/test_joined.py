"""How long a party waits: what others need to start is no waiting."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from crosshatch.errors import RunError
from crosshatch.parties.recovery.mail import Mail
from crosshatch.runtime import joined
from crosshatch.runtime.complaints import Complaints


class Clock(nullcontext[None]):
    """A clock, and somebody who waits by it and never hears anything."""

    now = 0.0

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("round", "seconds"), [(7, 120), (8, 3)])
def test_in_the_round_it_begins_with_a_party_waits_until_others_have_started(
    round: int, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, mail = Clock(), Mail("hub-0-0", ("client-0-0-0",), lambda *_: None, stored=7)
    line = joined.JoinedLine(mail, Complaints(print), wait=3.0)
    monkeypatch.setattr(joined, "monotonic", lambda: clock.now)
    monkeypatch.setattr(line, "_news", clock)
    with pytest.raises(RunError, match=f"hub-0-0 waited {seconds} s for 'share' of round {round} from client-0-0-0"):
        line.recv("client-0-0-0", (round, "share", 0))


def test_who_hears_at_its_end_that_others_do_not_come_to_theirs_says_so() -> None:
    mail = Mail("hub-0-0", ("client-0-0-0",), lambda *_: None, stored=8, heard={"client-0-0-0": 7})
    line = joined.JoinedLine(mail, Complaints(print), wait=3.0)
    line.fail(RunError("the disk of client-0-0-0 is full"))
    with pytest.raises(RunError, match="the disk of client-0-0-0 is full"):
        line.finish(8, over=False)
    mail.heard["client-0-0-0"] = 8
    line.finish(8, over=False)
