"""What a party begins from: its state, a copy that all begin again at, or nothing; everything else is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crosshatch.errors import RunError
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.packed_state import FORMAT, StoredState, pack, unpack
from crosshatch.runtime.beginning import Beginning
from crosshatch.runtime.store import Store, write_whole
from crosshatch.testing.check_restarts import restart_cases

HERE = {"torch": "2.13.0", "threads": "1", "kernels": "avx2"}
NEW = Beginning("0badcafe", HERE)


@cache
def party() -> Party:
    case, _ = restart_cases()["ABCD"]
    return parties_of(case.data, case.task, case.algorithm, codecs=case.codecs)["client-0-0-0"]


def state(round: int, **changed: Any) -> bytes:
    heard = {"hub-0-0": round + 3}
    sent = {"hub-0-0": {(round - 1, "share", 0): b"x"}}
    made = StoredState("0badcafe", "client-0-0-0", round, party().state(), sent, heard, b"s" * 32, HERE)
    return pack(replace(made, **changed))


def on_disk(folder: Path) -> StoredState:
    return unpack((folder / "state").read_bytes(), run="0badcafe", party="client-0-0-0")


def begun(folder: Path, newest: bytes | None, *copies: int) -> Store:
    """The folder of a party that has begun."""
    for round in copies:
        write_whole(folder / f"state-{round}", state(round))
    write_whole(folder / "begun", b"")
    if newest is not None:
        write_whole(folder / "state", newest)
    return Store(folder)


def test_the_first_state_is_on_disk_before_anything_is_said(tmp_path: Path) -> None:
    first = NEW.state_of(party(), Store(tmp_path))
    assert (first.round, len(first.secret), first.fingerprint) == (0, 32, HERE)
    assert on_disk(tmp_path).secret == first.secret
    assert NEW.state_of(party(), Store(tmp_path)).secret == first.secret


@pytest.mark.parametrize(
    ("newest", "why"),
    [
        (None, r"its state is gone from .*: restore it, or have all .* --resume --from ROUND \(kept there: 10, 20\)"),
        (state(25, run="deadbeef"), "the state of client-0-0-0 in run deadbeef, not of client-0-0-0 in run 0badcafe"),
        (state(25, party="hub-0-0"), "the state of hub-0-0 in run 0badcafe"),
        (state(25)[:8] + bytes([FORMAT + 1]) + state(25)[9:], "its state has format 3, this version reads 2"),
        (state(25)[:-1], "damaged or cut off, .* --from ROUND"),
        (b"", "no state of a party"),
        (state(25, again=1), "begun again 1 times by its state, 0 times by what it is told"),
    ],
)
def test_a_state_that_is_gone_or_another_is_refused(newest: bytes | None, why: str, tmp_path: Path) -> None:
    store = begun(tmp_path, newest, 10, 20)
    with pytest.raises(RunError, match=why) as raised:
        NEW.state_of(party(), store)
    assert str(raised.value).startswith("client-0-0-0")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("newest", [None, state(25), state(25, run="deadbeef"), state(25)[:-1]])
def test_all_begin_again_at_a_copy_whatever_the_newest_is(newest: bytes | None, tmp_path: Path) -> None:
    store, again = begun(tmp_path, newest, 10, 20), replace(NEW, again=(10,))
    for _ in range(2):  # a crash after it changes nothing
        found = again.state_of(party(), store)
        assert (found.round, found.again, found.sent, found.heard) == (10, 1, {}, {})
        assert on_disk(tmp_path).round == 10
    assert store.copies() == [10]
    write_whole(tmp_path / "state", state(14, again=1))
    assert again.state_of(party(), store).round == 14  # it goes on from there, and not back again
    assert replace(NEW, again=(10, 10)).state_of(party(), store).round == 10


def test_a_round_that_was_not_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"has kept no state of round 15: choose another ROUND \(kept there: 10, 20\)"):
        replace(NEW, again=(15,)).state_of(party(), begun(tmp_path, state(25), 10, 20))


def test_who_keeps_nothing_begins_again_at_any_round(tmp_path: Path) -> None:
    case, _ = restart_cases()["TDCD"]
    client = parties_of(case.data, case.task, case.algorithm)["client-0-0-0"]
    store, again = begun(tmp_path, state(25)), replace(NEW, again=(10,))
    for _ in range(2):
        found = again.state_of(client, store)
        assert (found.round, found.value["round"], found.again, found.sent, found.heard) == (10, 10, 1, {}, {})
        assert on_disk(tmp_path).round == 10


def test_after_a_crash_another_processor_is_refused_unless_it_is_allowed(tmp_path: Path) -> None:
    store, other = begun(tmp_path, state(25)), {**HERE, "kernels": "avx512"}
    with pytest.raises(RunError, match=r"kernels was avx2 and is avx512: go on where it was, allow it \(--anywhere\)"):
        replace(NEW, here=other).state_of(party(), store)
    assert on_disk(tmp_path).fingerprint == HERE
    assert replace(NEW, here=other, anywhere=True).state_of(party(), store).round == 25
    assert on_disk(tmp_path).fingerprint == other


def test_after_a_clean_stop_it_goes_on_anywhere_and_is_not_clean_from_then_on(tmp_path: Path) -> None:
    store, other = begun(tmp_path, state(25, clean=True)), {**HERE, "torch": "2.14.0"}
    assert replace(NEW, here=other).state_of(party(), store).round == 25
    assert (on_disk(tmp_path).clean, on_disk(tmp_path).fingerprint) == (False, other)
    with pytest.raises(RunError, match=r"torch was 2.14.0 and is 2.13.0"):
        NEW.state_of(party(), store)


def test_at_a_copy_another_processor_is_none_of_a_matter(tmp_path: Path) -> None:
    store = begun(tmp_path, None, 10)
    assert replace(NEW, here={**HERE, "threads": "2"}, again=(10,)).state_of(party(), store).round == 10
