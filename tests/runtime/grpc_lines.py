"""Parties of one process that talk over real connections, on the loopback interface."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from crosshatch.errors import CrosshatchError
from crosshatch.parties.line import Name
from crosshatch.parties.recovery.mail import Mail
from crosshatch.runtime.complaints import Complaints
from crosshatch.runtime.identity import Identity, Peers
from crosshatch.runtime.joined import JoinedLine
from crosshatch.runtime.streams import Streams
from crosshatch.testing.check_line import Lines, Program

ROUNDS = 4
LONGEST = 10_000_000


class Joined:
    """One party: its mail, line and streams."""

    def __init__(self, me: Identity, certificates: Mapping[Name, bytes], say: Callable[[str], object]) -> None:
        self.complaints = Complaints(say)
        mail = Mail(me.name, tuple(certificates), lambda peer, frame: self.streams.transmit(peer, frame), rounds=ROUNDS)
        self.line = line = JoinedLine(mail, self.complaints, wait=30.0)
        self.streams = Streams(
            me, Peers(certificates), line.connected, line.arrived, line.fail, lambda *_: LONGEST, self.complaints
        )


class GrpcLines(Lines):
    """Everybody in one process; who comes later in the alphabet dials."""

    def __init__(self) -> None:
        self.parties: dict[Name, Joined] = {}
        self.identities: dict[Name, Identity] = {}
        self.ports: dict[Name, int] = {}
        self.said: list[str] = []
        self.kept = 0

    def run(self, programs: Mapping[Name, Program]) -> dict[Name, Any]:
        self.parties.clear()
        return asyncio.run(self._run(programs))

    async def _run(self, programs: Mapping[Name, Program]) -> dict[Name, Any]:
        self.identities = {name: self.identities.get(name) or Identity.make(name) for name in programs}
        pems = {name: one.certificate for name, one in self.identities.items()}
        for name, me in self.identities.items():
            others = {peer: pem for peer, pem in pems.items() if peer != name}
            self.parties[name] = Joined(me, others, self.said.append)
        self.ports = {name: await one.streams.serve("127.0.0.1", 0) for name, one in self.parties.items()}
        for name, one in self.parties.items():
            for peer in programs:
                if peer < name:
                    one.streams.dial(peer, f"127.0.0.1:{self.ports[peer]}")
        loop, results, errors = asyncio.get_running_loop(), dict[Name, Any](), list[CrosshatchError]()

        def live(name: Name) -> None:
            line = self.parties[name].line
            try:
                results[name] = programs[name](Counting(self, line))
            except CrosshatchError as error:
                line.fail(error)
                errors.append(error)

        with ThreadPoolExecutor(len(programs)) as threads:
            await asyncio.gather(*(loop.run_in_executor(threads, live, name) for name in programs))
        await asyncio.gather(*(one.streams.close() for one in self.parties.values()))
        if errors:
            raise errors[0]
        return results

    def cut(self, one: Name, other: Name) -> None:
        self.parties[one].streams.cut(other)

    def store(self, name: Name, round: int) -> None:
        self.parties[name].line.has_stored(round)

    @property
    def most_kept(self) -> tuple[int, int]:
        return self.kept, ROUNDS + 1


class Counting:
    """A line that notes for how many rounds messages are kept."""

    def __init__(self, lines: GrpcLines, line: JoinedLine) -> None:
        self.lines, self.line = lines, line

    def send(self, to: Name, key: tuple[int, str, int], message: bytes) -> None:
        self.line.send(to, key, message)
        kept, _ = self.line.kept()
        self.lines.kept = max(self.lines.kept, *(len({k[0] for k in mine}) for mine in kept.values()))

    def recv(self, sender: Name, key: tuple[int, str, int]) -> bytes:
        return self.line.recv(sender, key)
