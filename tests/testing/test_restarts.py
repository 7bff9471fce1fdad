"""Federations in worlds where parties crash and connections break: the undisturbed model and meter, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from crosshatch.parties.party import Party
from crosshatch.testing.check_restarts import check_restarts, restart_cases

CASES = list(restart_cases())
BESIDES = {"MTCD, small networks", "transfer, ABCD, distance, labels held", "JFL", "branches, coded"}
QUICK, ALL, AT_ONCE = 30, 500, 10


@pytest.mark.parametrize(
    ("case", "first"), [(case, n) for case in CASES for n in range(0, AT_ONCE if case in BESIDES else QUICK, AT_ONCE)]
)
def test_crashes_leave_no_trace(case: str, first: int) -> None:
    happened = [check_restarts(case, seed) for seed in range(first, first + AT_ONCE)]
    assert sum(one.crashes for one in happened) > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_crashes_leave_no_trace_in_many_worlds(case: str) -> None:
    happened = [check_restarts(case, seed) for seed in range(ALL)]
    assert sum(one.crashes for one in happened) > ALL
    assert all(sum(getattr(one, what) for one in happened) > 100 for what in ("of_everybody", "cuts", "repeats"))


@pytest.mark.parametrize("lost", ["blocks", "memory", "channels", "moments", "meter"])
def test_a_party_that_comes_back_without_something_is_noticed(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its state a party would ruin the model, or the count of bytes: the worlds show each of them."""
    load = Party.load

    def forgetful(party: Party, state: Mapping[str, Any]) -> None:
        fresh = party.state()
        load(party, {**state, lost: fresh[lost]} if lost in state else state)

    monkeypatch.setattr(Party, "load", forgetful)
    noticed = 0
    for seed in range(AT_ONCE):
        try:
            check_restarts("ABCD", seed)
        except AssertionError as error:
            assert f'python -m crosshatch.testing.check_restarts "ABCD" {seed}' in str(error)  # noqa: PT017
            noticed += 1
    assert noticed > 0
