"""The evaluation's text, which every party runs with its own part of each value; what is found, and by whom."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Protocol

from torch import Tensor

from crosshatch.parties.line import Line
from crosshatch.parties.post import Correspondent


class Verdict(IntFlag):
    """What is told to everybody after an evaluation."""

    GO_ON = 0
    BEST = 1
    """The model is the best so far: keep it."""
    END = 2
    """No round follows."""


@dataclass(frozen=True)
class Scored:
    """Scores (n, c) and labels (n,) of rows held out, validation rows first; they stay where they were put together."""

    scores: Tensor
    y: Tensor
    validation: int  # how many of them are validation rows

    def part(self, of: str) -> tuple[Tensor, Tensor]:
        """Scores and labels of the "validation" or the "test" rows."""
        rows = slice(None, self.validation) if of == "validation" else slice(self.validation, None)
        return self.scores[rows], self.y[rows]


@dataclass(frozen=True)
class Found:
    """Of one model: the training objective, what it is with scores of zero, and the rows held out."""

    objective: float
    zero_objective: float
    held_out: Scored


class Judge(Protocol):
    """At the label's holder: makes figures of what was found, writes them down, and decides."""

    def see(self, found: Found, done: int) -> Verdict:
        """The model after so many rounds. Seen again after a crash, it is the same line in the same place."""
        ...

    def close(self, scored: Scored, done: int) -> None:
        """The rows held out under the model that the run ends with: the best, where there are validation rows."""
        ...

    def state(self) -> Any:
        """Plain data to go on from."""
        ...

    def load(self, state: Mapping[str, Any]) -> None: ...


@dataclass(kw_only=True)
class EvaluatingFederation(Correspondent):
    """What the text asks of a party's role, which a party without rows answers as here; `judging`: at the holder alone.

    Everything of one `round` goes under keys of its own.
    """

    judging: Judge | None = None

    def model(self, values: Any) -> Any:  # noqa: ARG002
        """The party's part of the federation's model, from what the algorithm's text has left with it."""
        return None

    def tell(self, model: Any) -> Any:
        """Who computes gets the block to compute with; a party's own part of that."""
        return model

    def look(self, told: Any) -> Found | None:  # noqa: ARG002
        """The training objective, and scores and labels of the rows held out: at the label's holder, None elsewhere."""
        return None

    def look_again(self, told: Any) -> Scored | None:  # noqa: ARG002
        """The scores and labels of the rows held out alone."""
        return None

    def judge(self, found: Found | None, done: int) -> Verdict:
        """What the holder makes of it; of others nobody asks."""
        return Verdict.GO_ON if found is None or self.judging is None else self.judging.see(found, done)

    def close(self, scored: Scored | None, done: int) -> None:
        if scored is not None and self.judging is not None:
            self.judging.close(scored, done)

    @abstractmethod
    def decide(self, verdict: Verdict) -> Verdict:
        """The holder's word goes to everybody."""

    def state(self) -> dict[str, Any]:
        """Counters, and what the holder has found so far."""
        judged = None if self.judging is None else self.judging.state()
        return {**super().state(), "judged": judged}

    def load(self, state: Mapping[str, Any]) -> None:
        super().load(state)
        if self.judging is not None and state["judged"] is not None:
            self.judging.load(state["judged"])


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
        self.fed.post.line = line

    def is_due(self, done: int) -> bool:
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
        return {"kept": self.kept, "ended": self.ended, **self.fed.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.kept, self.ended = state["kept"], state["ended"]
        self.fed.load(state)
