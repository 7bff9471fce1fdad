"""A party: its role's federation, the algorithm's text, and what it holds at the start of a round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosshatch.errors import ConfigError
from crosshatch.exchanges import Memory, declared
from crosshatch.meter import Meter
from crosshatch.parties.evaluation.text import Evaluation
from crosshatch.parties.holdings.agreed import Beforehand
from crosshatch.parties.holdings.values import Blocks
from crosshatch.parties.line import Line, Name
from crosshatch.parties.post import Correspondent
from crosshatch.protocol.refusals import require_memory


@dataclass(kw_only=True)
class AnyRole(Correspondent):
    """What every role answers beside the exchanges that the text asks for; `beforehand` is what all had settled."""

    beforehand: Beforehand

    def set_out(self, blocks: Any) -> Any:
        """What happens once, before the first round, to what the text is handed; mostly nothing."""
        return blocks


@dataclass
class Party:
    """Runs the text, round after round, with its own part of every value.

    Parties of one `house` live in one process: roles of the same party, between which nothing is counted (an
    organisation that is hub and client in one), or clients that share one. `blocks` is what the text is handed at the
    start of a round: of agents it is their tokens or duals.
    """

    name: Name
    role: AnyRole
    text: Any
    house: Name
    blocks: Any
    memory: Memory = ()
    round: int = 0
    evaluation: Evaluation | None = None

    def join(self, line: Line) -> None:
        self.role.post.line = line
        if self.evaluation is not None:
            self.evaluation.join(line)

    @property
    def ended(self) -> bool:
        return self.evaluation is not None and self.evaluation.ended

    @property
    def meter(self) -> Meter:
        return self.role.post.meter

    @property
    def follows(self) -> Name | None:
        """Its hub, where it keeps nothing from round to round and begins where that is; None: it has a state."""
        return self.role.post.follows

    def catch_up(self, round: int, *, over: bool) -> None:
        """Begin where its hub is, with nothing, as always; or be at the end, if its hub says that the run is over."""
        self.round, self.blocks, self.memory = round, Blocks(), ()
        if self.evaluation is not None:
            self.evaluation.ended = over

    def run_round(self) -> None:
        """The text once, from what it holds to what it holds then, and an evaluation where one is due.

        That before the first round and that after a round belong to the round: it is run again with them.
        """
        self.role.begin_round(self.round)
        if self.evaluation is not None:
            self.evaluation.fed.begin_round(self.round)
        if self.round == 0:
            self.blocks = self.role.set_out(self.blocks)
            self._evaluate()
        if declared(self.text).remembers:
            after = self.text.run_round(self.role, self.blocks, self.round, self.memory)
            self.blocks, self.memory = require_memory(self.text, after)
        else:
            self.blocks = self.text.run_round(self.role, self.blocks, self.round)
        if self.follows is not None and (self.blocks, self.memory) != (Blocks(), ()):
            raise ConfigError(
                f"algorithm {type(self.text).__name__} declares `returns_blocks`, but its clients hold something after "
                f"round {self.round}: end a round with `average`, or declare `returns_blocks = False`"
            )
        self.round += 1
        self._evaluate()

    def _evaluate(self) -> None:
        if self.evaluation is not None and self.evaluation.is_due(self.round):
            self.evaluation.run(self.blocks, self.round)

    def state(self) -> dict[str, Any]:
        """Everything a later round depends on, taken between two rounds; values are handed out as they are."""
        evaluated = {} if self.evaluation is None else {"evaluation": self.evaluation.state()}
        return {"round": self.round, "blocks": self.blocks, "memory": self.memory, **self.role.state(), **evaluated}

    def load(self, state: Mapping[str, Any]) -> None:
        self.round, self.blocks, self.memory = state["round"], state["blocks"], state["memory"]
        self.role.load(state)
        if self.evaluation is not None:
            self.evaluation.load(state["evaluation"])
