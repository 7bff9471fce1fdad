"""`local_steps = "measure"`: Q found by trials before training, where the theorems' worst case says little.

Every candidate trains from the start for the same number of bytes; the one with the lowest training loss stays, of
nearly equal ones the shortest. None is given up earlier: long intervals overshoot at first. With groups P is Q.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from crosshatch.errors import TrainingError
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import AnyAlgorithm
from crosshatch.simulator.simulator import Simulator

CANDIDATES = (1, 2, 5, 10, 20, 50)
ROUNDS = 12
"""The trials' bytes are those of so many rounds with one local step."""
NEAR = 0.01
"""Losses closer than this share of the best are taken for equal."""
_SAMPLES = 4096  # the first so many training samples are looked at

Simulate = Callable[[AnyAlgorithm], Simulator]


@dataclass
class Trial:
    """A candidate Q, and its training loss after each round."""

    steps: int
    simulator: Simulator
    losses: list[float] = field(default_factory=list)
    diverged: bool = False

    def go_on(self, budget: float) -> None:
        """Rounds until so many bytes are sent."""
        try:
            while self.sent < budget and not self.diverged:
                self.simulator.run_round()
                self.losses.append(self.simulator.objective(_SAMPLES))
        except TrainingError:
            self.diverged = True

    @property
    def sent(self) -> int:
        """Bytes so far; rounds where nothing is sent, as with one silo of one party."""
        return self.simulator.meter.bytes or self.simulator.round

    @property
    def loss(self) -> float:
        """The median of the second half: single rounds go up and down, with long intervals a lot."""
        return float("inf") if self.diverged else median(self.losses[len(self.losses) // 2 :])


def measure(config: Config, simulate: Simulate) -> Config:
    """The config with a number in place of "measure"."""
    if not config.measured:
        return config
    algorithm = config.algorithm
    return replace(config, algorithm=algorithm.with_interval(best_of(algorithm, simulate)), measured=())


def best_of(algorithm: AnyAlgorithm, simulate: Simulate, candidates: Sequence[int] = CANDIDATES) -> int:
    """The Q whose trial ends lowest."""
    trials = [Trial(steps, simulate(algorithm.with_interval(steps))) for steps in candidates]
    trials[0].go_on(1)
    budget = ROUNDS * trials[0].sent
    for trial in trials:
        trial.go_on(budget)
    least = min(trial.loss for trial in trials)
    return min(trial.steps for trial in trials if trial.loss <= least * (1 + NEAR))
