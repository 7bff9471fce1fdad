"""What any line between parties must do, whatever carries it: in memory, in virtual time, over a network.

An implementation plugs in as `Lines`; each of `LINE_CHECKS` is then called with it, and an AssertionError says what is
wrong.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from crosshatch.errors import ConfigError, CrosshatchError
from crosshatch.parties.line import Key, Line, Name

Program = Callable[[Line], Any]
_LARGE = 3_000_001  # bytes: several frames of a megabyte, and a rest


class Lines(ABC):
    """Parties that are joined by lines of one kind, each with everybody."""

    @abstractmethod
    def run(self, programs: Mapping[Name, Program]) -> dict[Name, Any]:
        """Run every party's program over its own line; what each returned. The first error of any is raised."""

    @abstractmethod
    def cut(self, one: Name, other: Name) -> None:
        """Break the connection of two parties, with all that is under way; it comes back. May do nothing."""

    @abstractmethod
    def store(self, name: Name, round: int) -> None:
        """The party will never ask for anything from before this round again."""

    @property
    @abstractmethod
    def most_kept(self) -> tuple[int, int] | None:
        """For how many rounds messages were kept for one party, and for how many they may be; None: without limit."""


def check_order(lines: Lines) -> None:
    """What is asked for is what was sent under the key, in whatever order; exchange, use and sender tell apart."""
    keys = [(r, exchange, use) for r in range(3) for exchange in ("share", "average") for use in range(3)]

    def give(name: Name) -> Program:
        def send(line: Line) -> None:
            for key in keys:
                line.send("hub", key, f"{name} {key}".encode())

        return send

    def take(line: Line) -> dict[tuple[Name, Key], bytes]:
        wanted = [(name, key) for name in ("a", "b") for key in keys]
        Random(1).shuffle(wanted)
        return {(name, key): line.recv(name, key) for name, key in wanted}

    found = lines.run({"hub": take, "a": give("a"), "b": give("b")})["hub"]
    assert len(found) == 2 * len(keys)
    assert all(message == f"{name} {key}".encode() for (name, key), message in found.items())


def check_waiting(lines: Lines) -> None:
    """Who asks first waits; the same key may go both ways, and to several parties with other bytes."""
    key = (0, "share", 0)

    def play(me: str, other: str) -> Program:
        def run(line: Line) -> list[bytes]:
            if me == "a":
                line.send(other, key, b"from a")
            found = [line.recv(other, key)]
            if me == "b":
                line.send(other, key, b"from b")
            line.send("c", key, f"{me} to c".encode())
            return found

        return run

    programs = {"a": play("a", "b"), "b": play("b", "a"), "c": lambda line: [line.recv(x, key) for x in "ba"]}
    assert lines.run(programs) == {"a": [b"from b"], "b": [b"from a"], "c": [b"b to c", b"a to c"]}


def check_repeats(lines: Lines) -> None:
    """A message that is sent again arrives once; other bytes under its key are an error that names who and what."""
    key = (2, "average", 1)

    def twice(second: bytes) -> Program:
        def run(line: Line) -> None:
            line.send("b", key, b"one")
            line.send("b", key, second)
            line.send("b", (2, "average", 2), b"end")

        return run

    def read(line: Line) -> list[bytes]:
        return [line.recv("a", key), line.recv("a", (2, "average", 2))]

    assert lines.run({"a": twice(b"one"), "b": read})["b"] == [b"one", b"end"]
    said = _refused(lines, {"a": twice(b"two"), "b": read})
    assert all(word in said.split("'")[0] for word in ("a ", "other bytes")), said
    assert "'average' of round 2" in said, said


def check_reconnection(lines: Lines) -> None:
    """Connections that break between any two messages lose nothing and repeat nothing."""
    keys = [(i // 5, "share", i % 5) for i in range(40)]

    def talk(me: str, other: str) -> Program:
        def run(line: Line) -> list[bytes]:
            found = []
            for i, key in enumerate(keys):
                line.send(other, key, f"{me} {i}".encode())
                if i % 3 == 0:
                    lines.cut(me, other)
                found.append(line.recv(other, key))
                lines.store(me, key[0])
            return found

        return run

    found = lines.run({"a": talk("a", "b"), "b": talk("b", "a")})
    for me, other in (("a", "b"), ("b", "a")):
        assert found[me] == [f"{other} {i}".encode() for i in range(len(keys))]


def check_sizes(lines: Lines) -> None:
    """Empty messages arrive as such, large ones whole."""
    contents = [b"", b"\x00", Random(2).randbytes(_LARGE), b"", bytes(range(256)) * 256]

    def send(line: Line) -> None:
        for use, content in enumerate(contents):
            line.send("b", (0, "broadcast", use), content)

    found = lines.run({"a": send, "b": lambda line: [line.recv("a", (0, "broadcast", i)) for i in range(5)]})["b"]
    assert all(type(one) is bytes for one in found)
    assert found == contents


def check_slow_receiver(lines: Lines) -> None:
    """Somebody runs ahead of who reads: all arrives, and no more is kept than may be."""
    rounds = 60

    def send(line: Line) -> None:
        for r in range(rounds):
            line.send("b", (r, "share", 0), f"round {r}".encode() * 100)
            lines.store("a", r + 1)

    def read(line: Line) -> list[bytes]:
        found = []
        for r in range(rounds):
            found.append(line.recv("a", (r, "share", 0)))
            lines.store("b", r + 1)
        return found

    assert lines.run({"a": send, "b": read})["b"] == [f"round {r}".encode() * 100 for r in range(rounds)]
    if lines.most_kept is not None:
        kept, most = lines.most_kept
        assert kept <= most, f"messages of {kept} rounds were kept for one party, {most} may be"


def check_closing(lines: Lines) -> None:
    """What was sent arrives after its sender has come to its end; who fails takes the others along, with its reason."""
    key = (0, "decide", 0)

    def late(line: Line) -> bytes:
        line.recv("c", key)
        return line.recv("a", key)

    said = lines.run(
        {"a": lambda line: line.send("b", key, b"bye"), "b": late, "c": lambda line: line.send("b", key, b"")}
    )
    assert said["b"] == b"bye"

    def fail(line: Line) -> None:
        line.recv("b", key)
        raise ConfigError("there is no more paper")

    def wait(line: Line) -> None:
        line.send("a", key, b"go on")
        line.recv("a", key)

    assert "there is no more paper" in _refused(lines, {"a": fail, "b": wait})


def check_any_pattern(lines: Lines) -> None:
    """Many parties, messages drawn at random, asked for at random times later."""
    random, names = Random(3), tuple("abcde")
    plan = []
    for i in range(150):
        sender, to = random.sample(names, 2)
        plan.append((i, sender, to, (i // 30, random.choice(("share", "average")), i), random.randbytes(i % 7 * 50)))
    events = sorted(
        [(i, True, one) for i, one in enumerate(plan)]
        + [(i + random.choice((0.5, 10.5, 40.5)), False, one) for i, one in enumerate(plan)],
        key=lambda event: event[0],
    )

    def play(me: Name) -> Program:
        def run(line: Line) -> dict[int, bytes]:
            found = {}
            for _, sends, (i, sender, to, key, content) in events:
                if sends and me == sender:
                    line.send(to, key, content)
                if not sends and me == to:
                    found[i] = line.recv(sender, key)
            return found

        return run

    found = lines.run({name: play(name) for name in names})
    assert {i: content for mine in found.values() for i, content in mine.items()} == {p[0]: p[-1] for p in plan}


def _refused(lines: Lines, programs: Mapping[Name, Program]) -> str:
    """What is said where these programs must not come to their end."""
    try:
        lines.run(programs)
    except CrosshatchError as error:
        return str(error)
    raise AssertionError("something is wrong and nobody noticed")


LINE_CHECKS: tuple[Callable[[Lines], None], ...] = (
    check_order, check_waiting, check_repeats, check_reconnection, check_sizes, check_slow_receiver, check_closing,
    check_any_pattern,
)  # fmt: skip
