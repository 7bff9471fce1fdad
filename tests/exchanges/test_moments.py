"""Heads and passes of the moment that embeddings are of: what was made since does not count, in either engine."""

from __future__ import annotations

from typing import Any

import pytest

from crosshatch.codecs import parse_codec
from crosshatch.exchanges import LocalSteps
from crosshatch.testing.federations import make_data, make_task
from tests.exchanges.texts import Text, difference, outcomes
from tests.support.exchanging import STEP, begin

AHEAD = LocalSteps(2, 0.3, anticipation=2.0)


def other_silo_embeds(fed: Any, blocks: Any, r: int) -> Any:
    """The head's holder, silo 1, has moved since; another silo alone embeds anew."""
    batch, blocks, now = begin(fed, blocks, r)
    frozen = fed.exchange(now, batch)
    blocks = fed.descend(blocks, batch, frozen, STEP, only=1)
    now = fed.embed(blocks, batch, only=0, known=now)
    frozen = fed.exchange(now, batch, known=frozen)
    return fed.average(fed.descend(blocks, batch, frozen, STEP if fed.labels_held else AHEAD), batch)


def goes_back_to_an_older_head(fed: Any, blocks: Any, r: int) -> Any:
    """The holder does not send, and what was known is of the first exchange: so is the head."""
    batch, blocks, now = begin(fed, blocks, r)
    first = fed.exchange(now, batch)
    blocks = fed.descend(blocks, batch, first, STEP)
    blocks = fed.descend(blocks, batch, fed.exchange(fed.embed(blocks, batch), batch), STEP)
    third = fed.exchange(fed.embed(blocks, batch), batch, known=first, senders=[0])
    return fed.descend(blocks, batch, third, STEP)


def asks_around_the_start(fed: Any, blocks: Any, r: int) -> Any:
    """Silos have moved since what they tell each other: the head that travels is of then too."""
    batch, blocks, start = begin(fed, blocks, r)
    blocks = fed.descend(blocks, batch, fed.exchange(start, batch), STEP)
    frozen = fed.exchange(fed.embed(blocks, batch), batch, around=start)
    return fed.average(fed.descend(blocks, batch, frozen, STEP), batch)


def asks_one_after_the_other(fed: Any, blocks: Any, r: int) -> Any:
    """What one silo was told stays known when the next is told; then all of them go on."""
    batch, blocks, now = begin(fed, blocks, r)
    frozen = None
    for silo in fed.silos:
        frozen = fed.exchange(now, batch, known=frozen, to=silo)
    return fed.average(fed.descend(blocks, batch, frozen, STEP), batch)


def goes_back_to_another_batch(fed: Any, blocks: Any, r: int) -> Any:
    """Every group has its own samples of the batch from earlier, and knows something else of them."""
    batch, blocks, now = begin(fed, blocks, r)
    first, other = fed.exchange(now, batch), fed.draw_batch(8, round=r, first=1)
    blocks = fed.broadcast(blocks, other)
    frozen = fed.exchange(fed.embed(blocks, other), other)
    blocks = fed.descend(blocks, other, frozen, LocalSteps(4, 0.3), earlier=[(batch, first)])
    return fed.average_groups(fed.average(blocks, other), round=r)


def begins_with_the_second_part(fed: Any, blocks: Any, r: int) -> Any:
    """The pass of the exchange that is kept is that of the first part."""
    batch = fed.draw_batch(6, round=r, parts=2)
    blocks = fed.broadcast(blocks, batch)
    frozen = fed.exchange(fed.embed(blocks, batch), batch)
    return fed.average(fed.descend(blocks, batch, frozen, LocalSteps(2, 0.3, first=1)), batch)


@pytest.mark.parametrize(
    ("text", "tiers", "data", "holder"),
    [
        (other_silo_embeds, "V(2) H(2)", make_data((3, 2)), 1),
        (other_silo_embeds, "V(2) H(2)", make_data((3, 2), held=1), 1),
        (other_silo_embeds, "V(2)", make_data((1, 1)), 1),
        (goes_back_to_an_older_head, "V(2)", make_data((1, 1, 1)), 1),
        (asks_one_after_the_other, "V(2) H(2)", make_data((2, 1, 4)), None),
        (asks_one_after_the_other, "V(2) H(2)", make_data((2, 1, 4), held=0), None),
        (asks_one_after_the_other, "V(2) H(2)", make_data((2, 1, 4), held=0), 0),
        (goes_back_to_another_batch, "H(2) V(2) H(2)", make_data((1, 3), groups=(9, 10)), None),
        (asks_around_the_start, "V(2)", make_data((1, 1)), 1),
        (asks_around_the_start, "V(2) H(2)", make_data((3, 2)), 0),
        (begins_with_the_second_part, "V(2) H(2)", make_data((3, 2)), None),
        (begins_with_the_second_part, "V(2) H(2)", make_data((3, 2)), 0),
    ],
)
def test_both_engines_go_by_the_moment(text: Any, tiers: str, data: Any, holder: int | None) -> None:
    found = outcomes(data, make_task(len(data.silos), holder=holder), Text(text, tiers))
    assert difference(*found) < 1e-12  # type: ignore[operator]


@pytest.mark.parametrize("codec", ["randomk(0.5)", "ef(topk(0.5))"])
@pytest.mark.parametrize(
    ("text", "tiers", "data"),
    [
        (goes_back_to_an_older_head, "V(2)", make_data((1, 1, 1))),
        (asks_around_the_start, "V(2) H(2)", make_data((3, 2))),
    ],
)
def test_a_coded_head_is_drawn_for_each_use(text: Any, tiers: str, data: Any, codec: str) -> None:
    """A round sends it more than once: either engine encodes every message under its own name."""
    found = outcomes(data, make_task(len(data.silos), holder=1), Text(text, tiers), codecs={"head": parse_codec(codec)})
    assert difference(*found) < 1e-12  # type: ignore[operator]
