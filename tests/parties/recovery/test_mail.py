"""Mail, rule by rule: what is kept, what is dropped, what is sent again, and what ends a run."""

from __future__ import annotations

import msgspec
import pytest

from crosshatch.errors import MessageError, RunError
from crosshatch.parties.line import Key, Name
from crosshatch.parties.recovery.greeting import Greeting, read_greeting
from crosshatch.parties.recovery.mail import Frame, FrameKind, Mail


class Desk:
    """A party's mail, and the frames it handed to its connections."""

    def __init__(self, me: Name = "hub", peers: tuple[Name, ...] = ("a",), **settings: object) -> None:
        self.frames: list[tuple[Name, Frame]] = []
        self.mail = Mail(me, peers, lambda to, frame: self.frames.append((to, frame)), **settings)  # type: ignore[arg-type]

    def greet(self, peer: Name = "a", stored: int = 0) -> None:
        self.mail.connected(peer)
        self.mail.arrived(peer, Frame(FrameKind.GREETING, stored))

    def said(self) -> list[tuple[Name, FrameKind, int, Key]]:
        found = [(to, frame.kind, frame.stored, frame.key) for to, frame in self.frames]
        self.frames.clear()
        return found


def key(round: int, use: int = 0) -> Key:
    return (round, "share", use)


def message(round: int, content: bytes = b"x", stored: int = 0) -> Frame:
    return Frame(FrameKind.MESSAGE, stored, key(round), content)


def test_every_frame_tells_what_its_sender_has_stored() -> None:
    desk = Desk()
    desk.greet()
    desk.mail.send("a", key(0), b"")
    desk.mail.has_stored(1)
    desk.mail.send("a", key(1), b"")
    assert [frame[2] for frame in desk.said()] == [0, 0, 1]


def test_who_sent_nothing_for_a_round_says_what_it_has_stored() -> None:
    desk = Desk(peers=("a", "b"))
    desk.greet("a")
    desk.greet("b")
    desk.said()
    desk.mail.has_stored(1)
    assert desk.said() == []  # the next message will say it
    desk.mail.send("a", key(1), b"")
    desk.said()
    desk.mail.has_stored(2)
    assert desk.said() == [("b", FrameKind.STORED, 2, (0, "", 0))]
    desk.mail.say_stored()
    assert [(to, stored) for to, _, stored, _ in desk.said()] == [("a", 2), ("b", 2)]


def test_what_a_peer_has_behind_it_is_forgotten_and_nothing_else() -> None:
    desk = Desk(peers=("a", "b"))
    desk.greet("a")
    for r in range(4):
        for peer in ("a", "b"):
            desk.mail.send(peer, key(r), bytes([r]))
    desk.mail.arrived("a", Frame(FrameKind.STORED, 2))
    assert [k[0] for k in desk.mail.kept()["a"]] == [2, 3]
    assert [k[0] for k in desk.mail.kept()["b"]] == [0, 1, 2, 3]
    desk.mail.arrived("a", Frame(FrameKind.MESSAGE, 3, key(3), b""))
    assert [k[0] for k in desk.mail.kept()["a"]] == [3]
    desk.mail.arrived("a", Frame(FrameKind.MESSAGE, 1, key(2), b""))  # one that was under way for long
    assert desk.mail.heard["a"] == 3


def test_a_round_that_is_run_again_is_not_sent_to_who_has_it_behind_it() -> None:
    desk = Desk(heard={"a": 3})
    desk.greet("a", stored=3)
    desk.said()
    desk.mail.send("a", key(2), b"old")
    desk.mail.send("a", key(3), b"new")
    assert [k[0] for *_, k in desk.said()] == [3]
    assert list(desk.mail.kept()["a"]) == [key(3)]


def test_a_greeting_is_answered_with_all_that_may_be_needed_in_order() -> None:
    desk = Desk(sent={"a": {key(1, 4): b"4", key(1, 2): b"2", key(0): b"0"}})
    desk.mail.send("a", key(2), b"early")  # before any connection
    assert desk.said() == []
    desk.greet(stored=1)
    assert [k for _, kind, _, k in desk.said() if kind == FrameKind.MESSAGE] == [key(1, 4), key(1, 2), key(2)]
    desk.greet(stored=2)  # a new connection
    assert [k for _, kind, _, k in desk.said() if kind == FrameKind.MESSAGE] == [key(2)]


def test_what_was_stored_between_two_greetings_is_told() -> None:
    """A state that is written after one's own greeting and before the peer's: nothing else might ever tell it."""
    desk = Desk()
    desk.mail.connected("a")
    desk.mail.has_stored(3)
    desk.mail.arrived("a", Frame(FrameKind.GREETING, 0))
    assert [(kind, stored) for _, kind, stored, _ in desk.said()] == [(FrameKind.GREETING, 0), (FrameKind.STORED, 3)]


def test_nothing_is_said_or_heard_before_the_greeting_and_a_second_one_is_ignored() -> None:
    desk = Desk()
    desk.mail.connected("a")
    desk.mail.send("a", key(0), b"x")
    desk.mail.arrived("a", message(0))
    assert desk.mail.take("a", key(0)) is None
    assert [kind for _, kind, *_ in desk.said()] == [FrameKind.GREETING]
    desk.mail.arrived("a", Frame(FrameKind.GREETING, 0))
    assert [kind for _, kind, *_ in desk.said()] == [FrameKind.MESSAGE]
    desk.mail.arrived("a", Frame(FrameKind.GREETING, 0))
    assert desk.said() == []
    desk.mail.arrived("a", message(0))
    assert desk.mail.take("a", key(0)) == b"x"


def test_a_message_is_handed_out_once_and_old_ones_never() -> None:
    desk = Desk(stored=2)
    desk.greet()
    for r in (1, 2, 2, 3):
        desk.mail.arrived("a", message(r))
    assert [desk.mail.take("a", key(r)) for r in (1, 2, 2, 3)] == [None, b"x", None, b"x"]
    desk.mail.arrived("a", message(2))  # once more, after it was read
    assert desk.mail.take("a", key(2)) is None


def test_what_arrived_is_forgotten_when_its_round_is_stored() -> None:
    desk = Desk()
    desk.greet()
    desk.mail.arrived("a", message(0))
    desk.mail.has_stored(1)
    assert desk.mail.take("a", key(0)) is None
    desk.mail.arrived("a", message(0, b"whatever"))  # nobody needs it any more, so nobody compares it


def test_other_bytes_under_a_key_stop_the_run_and_name_the_sender() -> None:
    desk = Desk()
    desk.greet()
    desk.mail.arrived("a", message(3, b"one"))
    desk.mail.take("a", key(3))
    with pytest.raises(MessageError, match=r"^a sent other bytes for 'share' of round 3, use 0, than before"):
        desk.mail.arrived("a", message(3, b"two"))


def test_who_would_say_something_else_than_before_its_crash_stops() -> None:
    desk = Desk(sent={"a": {key(3): b"one"}})
    desk.mail.send("a", key(3), b"one")
    with pytest.raises(RunError, match=r"hub would send a other bytes for 'share' of round 3.*kind of processor"):
        desk.mail.send("a", key(3), b"two")


def test_a_peer_whose_state_is_gone_is_named() -> None:
    desk = Desk()
    desk.greet(stored=5)
    with pytest.raises(MessageError, match="a begins at round 0, but had stored round 5: its state is gone"):
        desk.greet(stored=0)
    with pytest.raises(MessageError, match="its state is gone"):  # who was told so before its own crash knows it still
        Desk(heard={"a": 5}).greet(stored=4)


def test_who_is_refused_is_told_so() -> None:
    desk = Desk(heard={"a": 5})
    with pytest.raises(MessageError, match="its state is gone"):
        desk.greet(stored=4)
    desk.said()
    desk.mail.stop("its state is gone")
    assert [(to, kind) for to, kind, *_ in desk.said()] == [("a", FrameKind.STOP)]


def test_a_peer_of_another_run_is_named_with_all_that_differs() -> None:
    mine = Greeting({"run": "1", "text": "7", "torch": "2.13"}, {"kernels": "avx2"})
    desk = Desk(greeting=mine)
    desk.mail.connected("a")
    assert read_greeting(desk.frames[0][1].message, "a") == mine
    desk.mail.arrived("a", Frame(FrameKind.GREETING, 0, message=Greeting(mine.agreed, {"kernels": "avx512"}).encode()))
    theirs = Greeting({"run": "2", "text": "7"}, {})
    desk.mail.connected("a")
    with pytest.raises(MessageError) as raised:
        desk.mail.arrived("a", Frame(FrameKind.GREETING, 0, message=theirs.encode()))
    assert str(raised.value).startswith(
        "a and hub do not fit: run is 2 at a, 1 at hub; torch is not told at a, 2.13 at hub: give both the same"
    )


@pytest.mark.parametrize("message", [b"rubbish", b"\x92\x80", b"\x91" * 3000, b"\x92\x81\xa1a\x01\x80"])
def test_what_is_no_greeting_is_refused(message: bytes) -> None:
    desk = Desk()
    desk.mail.connected("a")
    with pytest.raises(MessageError, match="a greets with what is no greeting"):
        desk.mail.arrived("a", Frame(FrameKind.GREETING, 0, message=message))


def test_who_is_past_a_round_is_known_by_messages_and_by_what_is_stored() -> None:
    desk = Desk()
    desk.greet()
    assert not desk.mail.is_past("a", 3)
    desk.mail.arrived("a", message(3))
    assert not desk.mail.is_past("a", 3)
    desk.mail.arrived("a", message(4))
    assert desk.mail.is_past("a", 3)
    assert not desk.mail.is_past("a", 4)
    desk.mail.arrived("a", Frame(FrameKind.STORED, 5))
    assert desk.mail.is_past("a", 4)


def test_room_is_given_by_what_a_peer_has_stored() -> None:
    desk = Desk(rounds=3)
    desk.greet()
    for r in range(4):
        assert desk.mail.has_room("a", r)
        desk.mail.send("a", key(r), b"")
    assert not desk.mail.has_room("a", 4)
    desk.mail.arrived("a", Frame(FrameKind.STORED, 1))
    assert desk.mail.has_room("a", 4)
    assert not desk.mail.has_room("a", 5)
    assert Desk(rounds=3).mail.has_room("a", 1000)  # who was sent nothing is owed nothing


def test_who_sends_more_rounds_than_it_may_is_named() -> None:
    desk = Desk(rounds=3)
    desk.greet()
    for r in range(100, 104):
        desk.mail.arrived("a", message(r))
    with pytest.raises(MessageError, match="a is more than 3 rounds ahead of what hub has stored"):
        desk.mail.arrived("a", message(104))


def test_who_stops_says_why_also_to_those_who_come_later() -> None:
    desk, peer = Desk(peers=("a", "b")), Desk(me="a", peers=("hub",))
    desk.greet("a")
    desk.said()
    desk.mail.stop("the disk is full")
    assert [(to, kind) for to, kind, *_ in desk.said()] == [("a", FrameKind.STOP)]
    desk.greet("b")
    assert [(to, kind) for to, kind, *_ in desk.said()] == [("b", FrameKind.GREETING), ("b", FrameKind.STOP)]
    peer.greet("hub")
    with pytest.raises(MessageError, match="hub has stopped the run: the disk is full"):
        peer.mail.arrived("hub", Frame(FrameKind.STOP, 0, message=b"the disk is full"))


def test_everybody_has_stored_when_all_said_so() -> None:
    desk = Desk(peers=("a", "b"))
    desk.greet("a", stored=4)
    assert not desk.mail.everybody_has(4)
    desk.greet("b", stored=5)
    assert desk.mail.everybody_has(4)


def test_frames_go_through_bytes() -> None:
    frame = message(3, b"content", stored=2)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(frame), type=Frame) == frame


def test_for_who_follows_a_hub_keeps_what_it_sent_since_its_own_state_and_stores_none_of_it() -> None:
    desk = Desk(followers=frozenset({"a"}))
    desk.greet("a")
    for r in range(4):
        desk.mail.send("a", key(r), bytes([r]))
    desk.mail.arrived("a", Frame(FrameKind.STORED, 3))  # which decides nothing
    desk.said()
    desk.greet("a")  # it came back with nothing, and is not refused
    assert [frame[3][0] for frame in desk.said()[1:]] == [0, 1, 2, 3]
    desk.mail.has_stored(2)
    desk.said()
    desk.greet("a")
    assert [(stored, of[0]) for _, _, stored, of in desk.said()[1:]] == [(2, 2), (2, 3)]
    assert desk.mail.kept() == {}


def test_who_follows_is_left_behind_where_its_hub_has_stored_a_later_round_or_is_at_the_end() -> None:
    desk = Desk("a", ("hub", "b"), follows="hub")
    desk.greet("hub", stored=2)
    desk.greet("b", stored=9)
    assert [desk.mail.is_left_behind(r) for r in range(4)] == [True, True, False, False]
    desk.mail.arrived("hub", message(1, stored=2))
    desk.mail.arrived("hub", message(2, stored=2))
    assert (desk.mail.take("hub", key(1)), desk.mail.take("hub", key(2))) == (None, b"x")
    desk.mail.arrived("b", Frame(FrameKind.OVER, 9))
    assert not desk.mail.is_left_behind(2)
    desk.mail.arrived("hub", Frame(FrameKind.OVER, 2))
    assert [desk.mail.is_left_behind(r) for r in range(4)] == [True, True, True, False]
    assert desk.mail.stored == 0  # it has nothing on disk, and claims nothing


def test_who_follows_may_hear_much_more_than_it_takes() -> None:
    """Of a hub that needs nothing of it for a while: it gets no further than what is kept, and is not stopped."""
    desk = Desk("a", ("hub",), follows="hub", rounds=3)
    desk.greet("hub")
    for r in range(100):
        desk.mail.arrived("hub", message(r, stored=max(0, r - 3)))
    assert [r for r in range(100) if desk.mail.take("hub", key(r)) is not None] == [96, 97, 98, 99]
    with pytest.raises(MessageError, match="hub is more than 3 rounds ahead of what a has stored"):
        desk.mail.arrived("hub", message(100, stored=96))


def test_who_is_at_the_end_says_so_on_every_connection() -> None:
    desk = Desk()
    desk.greet("a")
    desk.mail.has_stored(3)
    desk.said()
    desk.mail.say_stored(over=True)
    desk.greet("a")
    assert [kind for _, kind, _, _ in desk.said()] == [FrameKind.OVER, FrameKind.GREETING, FrameKind.OVER]
