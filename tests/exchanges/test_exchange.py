"""`exchange` does what a federation allows, and goes on with what it is given, not with what happened before."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from crosshatch.errors import ConfigError
from crosshatch.exchanges import LocalSteps
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.federations import make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty
from tests.exchanges.texts import Text, difference, outcomes
from tests.support.exchanging import STEP, begin

SHARED, HELD = make_data((2, 3)), make_data((2, 3), held=1)


def shares(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    return fed.average(fed.descend(blocks, batch, fed.share(embeddings, batch), STEP), batch)


def asks_the_holder(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    return fed.average(fed.descend(blocks, batch, fed.share_derivatives(embeddings, batch), STEP), batch)


def exchanges(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    return fed.average(fed.descend(blocks, batch, fed.exchange(embeddings, batch), STEP), batch)


@pytest.mark.parametrize(("data", "same"), [(SHARED, shares), (HELD, asks_the_holder)])
def test_exchange_does_what_the_federation_allows(data: Any, same: Any) -> None:
    found, wanted = (outcomes(data, make_task(2), Text(text)) for text in (exchanges, same))
    assert difference(*found) < 1e-12  # type: ignore[operator]
    assert difference(found[0], wanted[0]) == 0


@pytest.mark.parametrize("engine", [Simulator, PartyByParty])
@pytest.mark.parametrize(
    ("data", "text", "said"),
    [
        (HELD, shares, "share is for silos that all have the labels.*use fed.exchange in its place"),
        (SHARED, asks_the_holder, "share_derivatives is for labels that one silo holds.*use fed.exchange in its place"),
    ],
)
def test_an_exchange_that_does_not_belong_is_refused(engine: Any, data: Any, text: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        engine(data, make_task(2), Text(text), precision=torch.float64).run_round()


@pytest.mark.parametrize("text", [shares, exchanges, asks_the_holder])
def test_a_single_silo_has_its_labels_either_way(text: Any) -> None:
    ends = [outcomes(make_data((3,), held=held), make_task(1), Text(text)) for held in (None, 0)]
    assert difference(*ends[0]) < 1e-12  # type: ignore[operator]
    assert difference(ends[0][0], ends[1][0]) == 0


def goes_back(fed: Any, blocks: Any, r: int) -> Any:
    """Two batches, and the first once more."""
    batch, blocks, embeddings = begin(fed, blocks, r)
    frozen = fed.exchange(embeddings, batch)
    other = fed.draw_batch(8, round=r, first=1)
    fed.exchange(fed.embed(fed.broadcast(blocks, other), other), other)
    blocks = fed.descend(blocks, batch, frozen, STEP)
    frozen = fed.exchange(fed.embed(blocks, batch), batch, known=frozen, senders=[0])
    return fed.average(fed.descend(blocks, batch, frozen, STEP), batch)


def stays(fed: Any, blocks: Any, r: int) -> Any:
    """The same without the second batch."""
    batch, blocks, embeddings = begin(fed, blocks, r)
    frozen = fed.exchange(embeddings, batch)
    blocks = fed.descend(blocks, batch, frozen, STEP)
    frozen = fed.exchange(fed.embed(blocks, batch), batch, known=frozen, senders=[0])
    return fed.average(fed.descend(blocks, batch, frozen, STEP), batch)


@pytest.mark.parametrize("data", [SHARED, HELD, make_data((2, 3), held=0)])
@pytest.mark.parametrize("holder", [None, 1])
def test_another_batch_in_between_changes_nothing(data: Any, holder: int | None) -> None:
    if data.label_silo is not None and holder is not None:
        holder = data.label_holder
    task = make_task(2, holder=holder)
    found, wanted = (outcomes(data, task, Text(text)) for text in (goes_back, stays))
    assert difference(*found) < 1e-12  # type: ignore[operator]
    assert not isinstance(found[0], str)
    assert not isinstance(wanted[0], str)
    for mine, theirs in zip(found[0][0], wanted[0][0], strict=True):
        assert float((mine - theirs).abs().max()) < 1e-13


def without_known(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    fed.exchange(embeddings, batch)
    fed.exchange(embeddings, batch, senders=[0])


def of_another_batch(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    frozen = fed.exchange(embeddings, batch)
    other = fed.draw_batch(8, round=r, first=1)
    fed.exchange(fed.embed(fed.broadcast(blocks, other), other), other, known=frozen, senders=[0])


def one_was_not_told(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    return fed.average(fed.descend(blocks, batch, fed.exchange(embeddings, batch, to=0), STEP), batch)


def nobody_was_sent_a_block(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    blocks = fed.average(fed.descend(blocks, batch, fed.exchange(embeddings, batch), STEP), batch)
    return fed.descend(blocks, batch, fed.exchange(embeddings, batch), STEP)


def one_embeds_alone(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, _ = begin(fed, blocks, r)
    fed.embed(blocks, batch, only=1)


def somebody_else(fed: Any, blocks: Any, r: int) -> Any:
    batch, _, embeddings = begin(fed, blocks, r)
    fed.exchange(embeddings, batch, senders=[2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (without_known, "exchange: silo number 1 does not send, and nothing it sent of this batch is known"),
        (of_another_batch, "exchange: embeddings, or what is frozen, are of other samples than the batch"),
        (one_was_not_told, "descend: silo number 1 was not told of the others"),
        (nobody_was_sent_a_block, "clients of silo number 0 have samples of the batch and were not sent their block"),
        (one_embeds_alone, "embed: only=1 without the others' embeddings"),
        (somebody_else, "senders names silo number 2: silos are numbered from 0 to 1"),
    ],
)
def test_both_engines_refuse_alike(text: Any, said: str) -> None:
    ours, theirs = outcomes(SHARED, make_task(2), Text(text))
    assert isinstance(ours, str)
    assert ours.startswith(said)
    assert ours == theirs


def in_turn(fed: Any, blocks: Any, r: int, *, senders: Any = None) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    frozen = None
    for silo in fed.silos:
        others = [j for j in fed.silos if j != silo] if senders is None and not fed.labels_held else senders
        frozen = fed.exchange(embeddings, batch, known=frozen, senders=others, to=silo)
        blocks = fed.descend(blocks, batch, frozen, STEP, only=silo)
        embeddings = fed.embed(blocks, batch, only=silo, known=embeddings)
        senders = (silo,) if fed.labels_held else None
    return fed.average(blocks, batch)


def in_turn_by_default(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    frozen = None
    for silo in fed.silos:
        frozen = fed.exchange(embeddings, batch, known=frozen, to=silo)
        blocks = fed.descend(blocks, batch, frozen, STEP, only=silo)
        embeddings = fed.embed(blocks, batch, only=silo, known=embeddings)
    return fed.average(blocks, batch)


@pytest.mark.parametrize("held", [None, 1])
def test_by_default_those_send_who_have_something_new(held: int | None) -> None:
    data, task = make_data((2, 5, 3), held=held), make_task(3)
    named, default = (outcomes(data, task, Text(text)) for text in (in_turn, in_turn_by_default))
    assert difference(*default) < 1e-12  # type: ignore[operator]
    assert difference(named[0], default[0]) == 0


def within_a_round(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, start = begin(fed, blocks, r)
    now, frozen = start, None
    for q in range(3):
        now = fed.embed(blocks, batch) if q else start
        frozen = fed.exchange(now, batch, known=frozen, around=start, step=q)
        blocks = fed.descend(blocks, batch, frozen, LocalSteps(1, 0.3, first=q))
    return fed.average(blocks, batch)


def at_its_start(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, start = begin(fed, blocks, r)
    return fed.average(fed.descend(blocks, batch, fed.exchange(start, batch), LocalSteps(3, 0.3)), batch)


def test_asking_within_a_round_changes_nothing_where_labels_are_shared() -> None:
    asked, plain = (outcomes(SHARED, make_task(2), Text(text)) for text in (within_a_round, at_its_start))
    assert difference(*asked) < 1e-12  # type: ignore[operator]
    assert difference(asked[0], plain[0]) < 1e-13  # type: ignore[operator]


def spelled_out(fed: Any, blocks: Any, r: int) -> Any:
    batch, blocks, embeddings = begin(fed, blocks, r)
    return fed.average(fed.descend(blocks, batch, fed.share(embeddings, batch), steps=2, step_size=0.3), batch)


def test_single_keywords_of_descend_go_on_with_a_notice() -> None:
    with pytest.warns(DeprecationWarning, match=r"give one value, crosshatch.LocalSteps\(steps=..., step_size=...\)"):
        found = outcomes(SHARED, make_task(2), Text(spelled_out))
    assert difference(found[0], outcomes(SHARED, make_task(2), Text(shares))[0]) == 0
    with pytest.raises(TypeError, match="takes its local steps as one value"):
        outcomes(SHARED, make_task(2), Text(lambda fed, blocks, _: fed.descend(blocks, None, None)))
