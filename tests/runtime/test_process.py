"""Every kind of party over real connections: the model and the meter of parties in memory, to the bit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch

from crosshatch.parties.line import Name
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.packed_state import unpack
from crosshatch.parties.seeing_all import model_of, total
from crosshatch.runs.launching.seating import free_ports
from crosshatch.runtime.identity import Identity
from crosshatch.runtime.process import Course, Process, Seat
from crosshatch.runtime.store import Store
from crosshatch.testing.check_restarts import restart_cases, undisturbed

RUN = "0badcafe"


async def run(name: str, folder: Path) -> dict[Name, Party]:
    """The parties of a case after its rounds; roles of one party share a process."""
    case, rounds = restart_cases()[name]
    peers = undisturbed(name)[2]
    parties = parties_of(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)
    identities, ports = {one: Identity.make(one) for one in parties}, free_ports(parties)
    houses: dict[Name, list[Seat]] = {}
    for me, party in parties.items():
        outside = [peer for peer in peers[me] if parties[peer].house != party.house]
        houses.setdefault(party.house, []).append(
            Seat(
                party,
                identities[me],
                folder / me,
                {peer: identities[peer].certificate for peer in outside},
                [peer for peer in peers[me] if peer not in outside],
                {peer: f"127.0.0.1:{ports[peer]}" for peer in outside if peer < me},
                ports[me] if any(peer > me for peer in outside) else None,
            )
        )
    said: list[str] = []
    course = Course(RUN, {"text": "1f"}, rounds, lambda _: 1_000_000, wait=60.0)
    await asyncio.gather(*(Process(seats, course, said.append).run() for seats in houses.values()))
    assert said == []
    return parties


@pytest.mark.parametrize("name", restart_cases())
def test_over_streams_as_in_memory(name: str, tmp_path: Path) -> None:
    parties = asyncio.run(run(name, tmp_path))
    weights, meter, _ = undisturbed(name)
    assert all(map(torch.equal, model_of(parties), weights))
    assert total(party.meter for party in parties.values()) == meter
    rounds = restart_cases()[name][1]
    for one in parties:  # the last round is stored before anybody says that it is done
        written = Store(tmp_path / one).read()
        assert written is not None
        assert unpack(written, run=RUN, party=one).round == rounds
