"""The evaluation's text, which every party runs with its own part of each value, and what a party carries along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from crosshatch.parties.evaluation.found import Verdict
from crosshatch.parties.line import Line
from crosshatch.parties.post import Post


class EvaluatingFederation(Protocol):
    """What the text asks of a party's role; everything of one `round` goes under keys of its own."""

    @property
    def post(self) -> Post: ...

    def begin_round(self, round: int) -> None:
        """A round begins, in which there may be evaluations."""
        ...

    def model(self, values: Any) -> Any:
        """The party's part of the federation's model, from what the algorithm's text has left with it."""
        ...

    def tell(self, model: Any) -> Any:
        """Who computes gets the block to compute with; a party's own part of that."""
        ...

    def look(self, told: Any) -> Any:
        """The training objective, and scores and labels of the rows held out: at the label's holder, None elsewhere."""
        ...

    def look_again(self, told: Any) -> Any:
        """The scores and labels of the rows held out alone."""
        ...

    def judge(self, found: Any, done: int) -> Verdict:
        """What the holder makes of it; of others nobody asks."""
        ...

    def close(self, scored: Any, done: int) -> None: ...

    def decide(self, verdict: Verdict) -> Verdict:
        """The holder's word goes to everybody."""
        ...

    def state(self) -> dict[str, Any]:
        """Counters, and what the holder has found so far."""
        ...

    def load(self, state: Mapping[str, Any]) -> None: ...


@dataclass
class Evaluation:
    """A party's: the text below, before the first round, after every so many (`every`) and after the last.

    `kept` is its part of the best model so far. When `ended`, no round follows.
    """

    fed: EvaluatingFederation
    every: int
    rounds: int
    kept: Any = None
    ended: bool = False
    noted: Callable[[int], object] = lambda _: None  # told of every evaluation when it is over

    def join(self, line: Line) -> None:
        """Put it on a line to the others."""
        self.fed.post.line = line

    def is_due(self, done: int) -> bool:
        """Whether the model is looked at after so many rounds."""
        return done % self.every == 0 or done == self.rounds

    def run(self, values: Any, done: int) -> None:
        """The text: how good is the model, is it the best, does the run end?"""
        fed = self.fed
        model = fed.model(values)
        verdict = fed.decide(fed.judge(fed.look(fed.tell(model)), done))
        if Verdict.BEST in verdict:
            self.kept = model
        if Verdict.END in verdict or done == self.rounds:
            fed.close(fed.look_again(fed.tell(model if self.kept is None else self.kept)), done)
            self.ended = True
        self.noted(done)

    def state(self) -> dict[str, Any]:
        """What later evaluations depend on."""
        return {"kept": self.kept, "ended": self.ended, **self.fed.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.kept, self.ended = state["kept"], state["ended"]
        self.fed.load(state)
