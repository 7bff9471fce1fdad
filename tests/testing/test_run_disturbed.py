"""Parties that crash come to the end they would have come to, and a world that notices when they would not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from crosshatch.errors import CrosshatchError
from crosshatch.parties.recovery import packed_state
from crosshatch.parties.recovery.packed_state import StoredState
from crosshatch.seeds import generator
from crosshatch.testing import run_disturbed as module
from crosshatch.testing.faults import NO_FAULTS, FaultCounts, Faults
from crosshatch.testing.run_disturbed import run_disturbed
from crosshatch.testing.world import World
from tests.testing.toy_parties import PEERS, Toy, toys

ROUNDS = 15


def numbers(parties: Mapping[str, Toy]) -> list[Tensor]:
    return [one for party in parties.values() for one in (party.total, party.memory)]


def end(seed: int, faults: Faults | None = None, *, forgets: bool = False) -> tuple[list[Tensor], FaultCounts]:
    found = run_disturbed(toys(forgets=forgets), PEERS, rounds=ROUNDS, seed=seed, faults=faults)
    assert found.counted.kept <= found.rounds_kept
    return numbers(found.parties), found.counted


WANTED = end(0, NO_FAULTS)[0]


def by_hand() -> list[Tensor]:
    """The same numbers without lines: one party after the other."""
    toy, total = toys(), torch.zeros(3, dtype=torch.float64)
    for r in range(ROUNDS):
        told = total
        for k in range(3):
            if generator(5, "work", r, k).random() < 0.5:
                one = toy[f"client-{k}"]
                one.memory = 0.5 * one.memory + torch.sin(told + k + r)
                total = total + one.memory
    toy["hub"].total = total
    return numbers(toy)


def test_undisturbed_is_as_by_hand() -> None:
    assert all(map(torch.equal, WANTED, by_hand()))


def test_bit_for_bit_whatever_happens() -> None:
    every = FaultCounts()
    for seed in range(60):
        found, counted = end(seed)
        assert all(map(torch.equal, found, WANTED)), f"seed {seed}"
        for name, value in vars(counted).items():
            setattr(every, name, getattr(every, name) + value)
    assert every.crashes > 100
    assert min(every.of_everybody, every.cuts, every.repeats) > 10


@pytest.mark.parametrize("late", [0.0, 1.0])
@pytest.mark.parametrize("everybody", [0.0, 1.0])
def test_a_crash_at_every_point(everybody: float, late: float) -> None:
    """Before and after every send, at every receive, before and after every write: of one party, of all of them."""
    occasions = end(1, NO_FAULTS)[1].occasions
    assert occasions > 100
    for point in range(occasions):
        found, counted = end(1, Faults(crash_at=point, everybody=everybody, late=late))
        assert counted.crashes == (4 if everybody else 1)
        assert all(map(torch.equal, found, WANTED)), f"point {point}"


def test_who_keeps_nothing_begins_where_its_hub_is() -> None:
    """A crash at every point, of one or of all, and whatever worlds bring: clients have their first state alone."""
    plain = run_disturbed(toys(follow=True), PEERS, rounds=ROUNDS, seed=1, faults=NO_FAULTS)
    wanted, points = plain.parties["hub"].total, range(plain.counted.occasions)
    faults = [Faults(crash_at=point, everybody=all_of_them, late=0.5) for point in points for all_of_them in (0.0, 1.0)]
    for seed, one in [*enumerate(faults), *enumerate([None] * 100)]:
        found = run_disturbed(toys(follow=True), PEERS, rounds=ROUNDS, seed=seed, faults=one)
        assert torch.equal(found.parties["hub"].total, wanted), f"seed {seed}, {one}"
        assert found.counted.kept <= found.rounds_kept
        assert {party.round for party in found.parties.values()} == {ROUNDS}


def test_who_runs_ahead_is_held_back_by_what_is_kept_for_others() -> None:
    """Clients that wait for nothing would be at the end before their hub has begun."""
    plain = run_disturbed(toys(one_way=True), PEERS, rounds=40, seed=0, faults=NO_FAULTS)
    most = []
    for seed in range(20):
        found = run_disturbed(toys(one_way=True), PEERS, rounds=40, seed=seed)
        assert all(map(torch.equal, numbers(found.parties), numbers(plain.parties))), f"seed {seed}"
        assert found.counted.kept <= found.rounds_kept, f"seed {seed}"
        most.append(found.counted.kept)
    assert max(most) == found.rounds_kept


def fails(seeds: int, **settings: Any) -> int:
    """In how many seeds something is noticed: an error, a party that waits for ever, other numbers."""
    noticed = 0
    for seed in range(seeds):
        try:
            noticed += not all(map(torch.equal, end(seed, **settings)[0], WANTED))
        except (CrosshatchError, AssertionError):
            noticed += 1
    return noticed


def test_a_state_that_lacks_something_is_noticed() -> None:
    assert fails(30, forgets=True) > 10


def test_messages_that_are_not_stored_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent is part of the state: without it parties wait for ever."""

    def without_messages(state: StoredState, kinds: Any = ()) -> bytes:
        return packed_state.pack(replace(state, sent={}), kinds)

    monkeypatch.setattr(module, "pack", without_messages)
    assert fails(30) > 3


def test_who_says_something_else_than_before_is_named() -> None:
    """Clients that come back without their memory: their hub, or their own mail, notices what they say."""
    said = set()
    for seed in range(60):
        try:
            end(seed, forgets=True)
        except CrosshatchError as error:
            said.add(str(error).split(" of round")[0])
    assert said <= {
        *(f"client-{k} sent other bytes for 'up'" for k in range(3)),
        *(f"client-{k} would send hub other bytes for 'up'" for k in range(3)),
    }
    assert said


def test_a_party_whose_disk_is_lost_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kill = World._kill

    def with_its_disk(world: World, name: str) -> None:
        kill(world, name)
        world.disk.pop(name, None)

    monkeypatch.setattr(World, "_kill", with_its_disk)
    said = []
    for point in range(60, 160, 5):
        try:
            found, counted = end(1, Faults(crash_at=point))
        except CrosshatchError as error:
            said.append(str(error))
        else:  # it had not told anybody of a stored round
            assert counted.crashes == 1
            assert all(map(torch.equal, found, WANTED))
    assert len(said) > 10
    assert all("its state is gone" in one and "but had stored round" in one for one in said)
