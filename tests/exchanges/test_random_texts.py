"""Random texts over the exchanges: both engines come to the same blocks and bytes, or both refuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from crosshatch.codecs import parse_codec
from crosshatch.exchanges import LocalSteps
from crosshatch.testing.federations import make_data, make_task
from crosshatch.topology import Topology
from tests.exchanges.texts import difference, outcomes

FEDERATIONS: dict[str, tuple[Any, str]] = {
    "two silos": (make_data((2, 3)), "V(2) H(2)"),
    "two silos, labels held": (make_data((3, 2), held=1), "V(2) H(2)"),
    "three silos": (make_data((2, 5, 1)), "V(2) H(2)"),
    "three silos, labels held": (make_data((2, 1, 4), held=0), "V(2) H(2)"),
    "one client per silo": (make_data((1, 1, 1)), "V(2)"),
    "one client per silo, labels held": (make_data((1, 1, 1), held=2), "V(2)"),
    "groups": (make_data((1, 3), groups=(9, 8)), "H(2) V(2) H(2)"),
    "groups, labels held": (make_data((1, 3), groups=(9, 8), held=0), "H(2) V(2) H(2)"),
    "one silo": (make_data((3,)), "H(2)"),
}
CODECS: tuple[dict[str, str], ...] = (
    {},
    {"share": "ef(topk(0.5))"},
    {"derivatives": "quantise(8)", "broadcast": "half"},
    {"average": "half"},
    {"head": "ef(topk(0.5))", "share": "randomk(0.5)"},
)
Line = tuple[str, dict[str, Any]]


@st.composite
def lines(draw: st.DrawFn, silos: int) -> Line:
    """A line of a text; `batch`, `embeddings` and `frozen` count back from the newest."""
    silo, back = st.integers(0, silos - 1), st.sampled_from([0, 0, 0, 0, 1])
    some = st.none() | st.lists(silo, unique=True)
    only = st.none() | silo
    kinds: dict[str, dict[str, st.SearchStrategy[Any]]] = {
        "draw": {"size": st.sampled_from([None, 4, 6]), "parts": st.integers(1, 2), "first": st.integers(0, 1)},
        "broadcast": {"batch": back},
        "embed": {"batch": back, "only": only, "known": st.booleans()},
        "exchange": {
            "embeddings": back, "known": st.booleans(), "senders": some, "to": only, "around": st.none() | back,
            "step": st.integers(0, 2),
        },
        "descend": {
            "frozen": back, "only": only, "earlier": st.integers(0, 2),
            "local": st.builds(
                LocalSteps, st.integers(1, 3), st.just(0.1), first=st.integers(0, 2),
                proximal=st.sampled_from([0.0, 0.5]), anticipation=st.sampled_from([1.0, 1.0, 1.5]),
                continued=st.booleans(),
            ),
        },
        "average": {"batch": back, "weights": st.sampled_from(["equal", "samples", "at_work"])},
        "groups": {},
        "decide": {"by": silo},
        "turn": {"silo": silo},
    }  # fmt: skip
    kind = draw(st.sampled_from([*kinds, "exchange", "descend", "embed", "turn"]))
    return kind, {name: draw(strategy) for name, strategy in kinds[kind].items()}


@dataclass
class Reader:
    """Reads a text to a federation."""

    fed: Any
    blocks: Any
    round: int
    batches: list[Any] = field(default_factory=list)
    embedded: list[tuple[Any, Any]] = field(default_factory=list)  # with the batch
    exchanged: list[tuple[Any, Any]] = field(default_factory=list)

    def draw(self, size: int | None, parts: int, first: int) -> None:
        self.batches.append(self.fed.draw_batch(size, round=self.round, parts=parts, first=first))

    def broadcast(self, batch: int) -> None:
        self.blocks = self.fed.broadcast(self.blocks, _back(self.batches, batch))

    def embed(self, batch: int, only: int | None, known: bool) -> None:
        samples = _back(self.batches, batch)
        before = next((found for of, found in reversed(self.embedded) if of is samples), None) if known else None
        self.embedded.append((samples, self.fed.embed(self.blocks, samples, only=only, known=before)))

    def exchange(
        self, embeddings: int, known: bool, senders: list[int] | None, to: int | None, around: int | None, step: int
    ) -> None:
        batch, found = _back(self.embedded, embeddings)
        before = next((frozen for of, frozen in reversed(self.exchanged) if of is batch), None) if known else None
        start = None if around is None else _back(self.embedded, around)[1]
        frozen = self.fed.exchange(found, batch, known=before, around=start, step=step, senders=senders, to=to)
        self.exchanged.append((batch, frozen))

    def descend(self, frozen: int, only: int | None, earlier: int, local: LocalSteps) -> None:
        batch, known = _back(self.exchanged, frozen)
        before = [one for one in reversed(self.exchanged) if one[0] is not batch][:earlier]
        self.blocks = self.fed.descend(self.blocks, batch, known, local, only=only, earlier=before)

    def average(self, batch: int, weights: Any) -> None:
        self.blocks = self.fed.average(self.blocks, _back(self.batches, batch), weights=weights)

    def groups(self) -> None:
        self.blocks = self.fed.average_groups(self.blocks, round=self.round)

    def decide(self, by: int) -> None:
        assert self.fed.decide(self.round + 0.5, round=self.round, by=by) == self.round + 0.5

    def turn(self, silo: int) -> None:
        """What a text that takes turns does for one silo."""
        batch, embeddings = self.embedded[-1]
        known = next((frozen for of, frozen in reversed(self.exchanged) if of is batch), None)
        frozen = self.fed.exchange(embeddings, batch, known=known, to=silo)
        self.blocks = self.fed.descend(self.blocks, batch, frozen, LocalSteps(2, 0.1), only=silo)
        self.exchanged.append((batch, frozen))
        self.embedded.append((batch, self.fed.embed(self.blocks, batch, only=silo, known=embeddings)))


def _back(values: list[Any], count: int) -> Any:
    return values[-1 - min(count, len(values) - 1)]


@dataclass(frozen=True)
class RandomText:
    """Every round begins with an exchange, goes on with the lines and ends with averages; two exchanges are kept."""

    lines: tuple[Line, ...]
    tiers: str
    remembers: bool = True
    local_steps: int = 2
    step_size: float = 0.1

    @property
    def topology(self) -> Topology:
        return Topology.parse(self.tiers)

    def run_round(self, fed: Any, blocks: Any, r: int, memory: Any) -> Any:
        reader = Reader(fed, blocks, r, exchanged=list(memory))
        begin: list[Line] = [
            ("draw", {"size": 6, "parts": 1, "first": 0}),
            ("broadcast", {"batch": 0}),
            ("embed", {"batch": 0, "only": None, "known": False}),
            ("exchange", {"embeddings": 0, "known": False, "senders": None, "to": None, "around": None, "step": 0}),
        ]
        for kind, named in (*begin, *self.lines):
            getattr(reader, kind)(**named)
        reader.average(0, "equal")
        if self.topology.above:
            reader.groups()
        return reader.blocks, tuple(reader.exchanged[-2:])


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, RandomText, int | None, dict[str, str]]:
    """A federation by name, a text for it, the head's holder, and codecs."""
    name = draw(st.sampled_from(sorted(FEDERATIONS)))
    data, tiers = FEDERATIONS[name]
    silos = len(data.silos)
    found = draw(st.lists(lines(silos), max_size=7))
    holder = draw(st.none() | st.integers(0, silos - 1))
    if holder is not None and data.label_silo is not None:
        holder = data.label_holder
    return name, RandomText(tuple(found), tiers), holder, draw(st.sampled_from(CODECS))


def check(text: tuple[str, RandomText, int | None, dict[str, str]]) -> None:
    name, algorithm, holder, codecs = text
    data, _ = FEDERATIONS[name]
    coded = {exchange: parse_codec(codec) for exchange, codec in codecs.items()}
    ours, theirs = outcomes(data, make_task(len(data.silos), holder=holder), algorithm, codecs=coded)
    event("refused" if isinstance(ours, str) else "trained")
    if isinstance(ours, str) and isinstance(theirs, str):
        return
    apart = difference(ours, theirs)
    assert isinstance(apart, float), apart
    assert apart < 1e-12


@settings(max_examples=100, deadline=None)
@given(text=texts())
def test_both_engines_agree_on_any_text(text: Any) -> None:
    check(text)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(text=texts())
def test_both_engines_agree_on_many_texts(text: Any) -> None:
    check(text)
