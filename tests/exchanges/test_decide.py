"""`decide`: one party says which way a text goes, everybody is told, and every message of it is counted."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from crosshatch import wire
from crosshatch.exchanges import LocalSteps
from crosshatch.testing.federations import make_data, make_task
from tests.exchanges.texts import Text, difference, outcomes

NUMBER = (torch.zeros(1, dtype=torch.float64),)


def stops(fed: Any, blocks: Any, r: int) -> Any:
    """Trains for two rounds."""
    if fed.decide(r >= 2, round=r, by=1):
        return blocks
    batch = fed.draw_batch(6, round=r)
    blocks = fed.broadcast(blocks, batch)
    frozen = fed.exchange(fed.embed(blocks, batch), batch)
    step_size = fed.decide(0.1 * (r + 1), round=r)
    return fed.average(fed.descend(blocks, batch, frozen, LocalSteps(2, step_size)), batch)


def test_everybody_is_told_once() -> None:
    ours, theirs = outcomes(make_data((2, 4, 1)), make_task(3), Text(stops), rounds=4)
    assert difference(ours, theirs) < 1e-12  # type: ignore[operator]
    assert not isinstance(ours, str)
    first, second = (len(wire.encode("0badcafe", 0, "decide", NUMBER, use=use)) for use in (0, 1))
    asked = 4 * first + 2 * second  # in all rounds whether to go on, in two of them how far
    assert ours[1].exchanges["decide"] == [(2 + 7) * asked, (2 + 7) * 6]
    two = outcomes(make_data((2, 4, 1)), make_task(3), Text(stops), rounds=2)[0]
    assert not isinstance(two, str)
    assert all(map(torch.equal, ours[0], two[0]))


@pytest.mark.parametrize("by", [0, 1, 2])
def test_whatever_others_say_the_named_hub_decides(by: int) -> None:
    """Every party has come to another step size; who answers for all of them has that of the hub that decides."""

    def text(fed: Any, blocks: Any, r: int) -> Any:
        own = 0.1 * (1 + getattr(fed, "silo", by))
        batch = fed.draw_batch(6, round=r)
        blocks = fed.broadcast(blocks, batch)
        frozen = fed.exchange(fed.embed(blocks, batch), batch)
        return fed.average(fed.descend(blocks, batch, frozen, LocalSteps(2, fed.decide(own, round=r, by=by))), batch)

    found = outcomes(make_data((2, 4, 1)), make_task(3), Text(text))
    assert difference(*found) < 1e-12  # type: ignore[operator]


@pytest.mark.parametrize(
    ("data", "tiers"),
    [
        (make_data((1, 1)), "V(2)"),
        (make_data((1, 3), groups=(8, 9, 7)), "H(2) V(2) H(2)"),
        (make_data((1, 3), groups=(6, 8, 5, 7), shape=(2, 2)), "H(4) H(2) V(2) H(2)"),
        (make_data((3,)), "H(2)"),
        (make_data((5, 8), branches=(2, 2)), "V(4) H(4) H(2) H(1)"),
        (make_data((1, 4), branches=(2,)), "V(4) H(4) H(2)"),
    ],
)
def test_in_other_federations(data: Any, tiers: str) -> None:
    def text(fed: Any, blocks: Any, r: int) -> Any:
        assert fed.decide(r + 3, round=r) == r + 3
        assert fed.decide(True, round=r) is True
        return blocks

    ours, theirs = outcomes(data, make_task(len(data.silos)), Text(text, tiers))
    assert difference(ours, theirs) == 0.0


@pytest.mark.parametrize(
    ("value", "by", "said"), [(float("nan"), 0, "decide: nan is to be told to all"), (1, 2, "by names silo number 2")]
)
def test_what_cannot_be_told_is_refused(value: float, by: int, said: str) -> None:
    ours, theirs = outcomes(make_data((2, 3)), make_task(2), Text(lambda fed, _, r: fed.decide(value, round=r, by=by)))
    assert isinstance(ours, str)
    assert ours.startswith(said)
    assert ours == theirs
