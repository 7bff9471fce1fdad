"""Parties of several processes stop after the same round, wherever each of them was."""

from __future__ import annotations

from threading import Thread

from crosshatch.runtime.limit import Limit


def test_all_end_after_the_latest_round_that_anybody_had_begun() -> None:
    ended: dict[str, int] = {}

    def live(name: str, limit: Limit, round: int) -> None:
        while limit.may_begin(round):
            round += 1
        ended[name] = round

    limits = {"idle": Limit(100), "slow": Limit(100)}
    begun = {"idle": 7, "slow": 3}
    for name, rounds in begun.items():
        assert all(limits[name].may_begin(round) for round in range(rounds))
    held = {name: limit.hold() for name, limit in limits.items()}
    assert held == {name: limit.hold() for name, limit in limits.items()} == begun  # asking twice is no matter
    threads = [Thread(target=live, args=(name, limits[name], begun[name])) for name in limits]
    for one in threads:
        one.start()
    for limit in limits.values():
        limit.until(max(held.values()))
    for one in threads:
        one.join(10)
    assert ended == {"idle": 7, "slow": 7}


def test_who_has_just_been_started_again_is_where_its_state_is() -> None:
    limit = Limit(100)
    limit.start_at(57)
    limit.start_at(55)
    assert limit.hold() == 57
    limit.until(57)
    assert limit.may_begin(55)
    assert not limit.may_begin(57)


def test_nobody_goes_beyond_the_last_round() -> None:
    limit = Limit(2)
    assert [limit.may_begin(round) for round in range(3)] == [True, True, False]
    limit.until(50)
    assert not limit.may_begin(2)
