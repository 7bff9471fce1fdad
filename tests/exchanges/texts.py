"""Texts of rounds for both engines: the same blocks and the same bytes, or the same refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from crosshatch.data.federated import FederatedData
from crosshatch.errors import CrosshatchError
from crosshatch.meter import Meter
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.task import Task
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.topology import Topology

Round = Callable[[Any, Any, int], Any]


@dataclass(frozen=True)
class Text:
    """An algorithm whose round is given."""

    round: Round
    tiers: str = "V(2) H(2)"
    local_steps: int = 2
    step_size: float = 0.1

    @property
    def topology(self) -> Topology:
        return Topology.parse(self.tiers)

    def run_round(self, fed: Any, blocks: Any, r: int) -> Any:
        return self.round(fed, blocks, r)


Outcome = tuple[list[torch.Tensor], Meter] | str


def outcomes(
    data: FederatedData, task: Task, algorithm: Any, *, rounds: int = 2, codecs: Mapping[str, Any] | None = None
) -> tuple[Outcome, Outcome]:
    """What the simulator and the parties make of a text: the model and the meter, or the line of a refusal."""
    found: list[Outcome] = []
    for engine in (Simulator, PartyByParty):
        try:
            one = engine(data, task, algorithm, seed=5, precision=torch.float64, codecs=codecs or {})
            for _ in range(rounds):
                one.run_round()
            found.append((list(one.weights), one.meter))
        except CrosshatchError as error:
            found.append(str(error))
    return found[0], found[1]


def difference(ours: Outcome, theirs: Outcome) -> float | str:
    """How far two outcomes are apart; a line where one of them is a refusal, or bytes differ."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return 0.0 if ours == theirs else f"simulator: {ours}; parties: {theirs}"
    if (ours[1].links, ours[1].exchanges) != (theirs[1].links, theirs[1].exchanges):
        return f"simulator: {ours[1].exchanges}; parties: {theirs[1].exchanges}"
    pairs = zip(ours[0], theirs[0], strict=True)
    return max(float((one - other).abs().max()) for one, other in pairs)
