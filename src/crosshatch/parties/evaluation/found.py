"""What the label's holder finds out in one evaluation, and who makes figures and a decision of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Protocol

from torch import Tensor


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
