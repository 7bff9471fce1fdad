"""Settings that are "measure": the step size and Q, found by trials of the algorithm itself before training.

The step size is looked for on a grid of half decades, from the middle to the better side until both neighbours are
worse: in short trials first, then around what was found in longer ones. Of Q all from the middle down are tried, which
costs little, and those above until more no longer help, at the step size that was given, or found for the Q before; as
more local steps may want to be shorter, an open step size is tried half a decade off as well. Of those as good as the
best, up to the noise, the shortest stays.

At the end the choice alone goes on for as many rounds as the run will have, up to a limit: what diverges late gives way
to a shorter step, or to fewer of them where the step size was given. With groups P is Q.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import NoReturn

from crosshatch.errors import ConfigError
from crosshatch.report.units import human_number
from crosshatch.runs.choosing.trials import Simulate, Tell, Trial, TrialResult, trial_rounds
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import AnyAlgorithm
from crosshatch.schedules import Constant

INTERVALS = (1, 2, 5, 10, 20, 50)
MIDDLE = 10
FIRST, LOWEST, HIGHEST = -2, -16, 6
"""Half decades: 0.1, 1e-8 and 1000."""
STAGES = (0.25, 0.5, 1.0)
"""Trials of step sizes have this share of the rounds first, then more."""
LONGEST = 200
"""So many rounds at most of what was chosen."""


def measure(config: Config, simulate: Simulate, tell: Tell) -> Config:
    """The config with numbers in place of "measure"; `simulate` takes data with samples put aside."""
    rounds = trial_rounds(config.run.rounds)
    search = StepSearch(config.algorithm, simulate, rounds, tell)
    keys = [key for key in config.measured if key != "global_steps"]
    names = " and ".join(f"algorithm.{key}" for key in keys)
    tell(f"{names}: trials of up to {rounds} rounds, judged by training samples put aside")
    first = Candidate(None if keys == ["step_size"] else MIDDLE, FIRST if "step_size" in keys else None)
    found = search.best_step(first) if first.local_steps is None else search.best_interval(first)
    found = search.lasting(found, min(config.run.rounds, LONGEST))
    tell(f"chosen: {found}")
    return replace(config, algorithm=found.of(config.algorithm), measured=())


@dataclass(frozen=True)
class Candidate:
    """A Q, and a step size as a number of half decades above 1; None: what the algorithm has.

    >>> str(Candidate(5, -3)), str(Candidate(local_steps=20))
    ('local_steps = 5, step_size = 0.032', 'local_steps = 20')
    """

    local_steps: int | None = None
    half_decades: int | None = None

    @property
    def step_size(self) -> float | None:
        return None if self.half_decades is None else float(f"{10 ** (self.half_decades / 2):.2g}")

    def of(self, algorithm: AnyAlgorithm) -> AnyAlgorithm:
        changed = algorithm if self.local_steps is None else algorithm.with_interval(self.local_steps)
        return changed if self.step_size is None else changed.with_step_size(Constant(self.step_size))

    def beside(self, half_decades: int) -> tuple[Candidate, ...]:
        """The same with a step size so much longer; none beyond the grid, or where it was given."""
        if self.half_decades is None or not LOWEST <= self.half_decades + half_decades <= HIGHEST:
            return ()
        return (replace(self, half_decades=self.half_decades + half_decades),)

    def __str__(self) -> str:
        named = {"local_steps": self.local_steps, "step_size": self.step_size}
        return ", ".join(f"{key} = {value:g}" for key, value in named.items() if value is not None)


@dataclass
class StepSearch:
    """Trials of an algorithm, the longest of so many `rounds`.

    What was found of each candidate is kept, its simulation as long as it may go on.
    """

    algorithm: AnyAlgorithm
    simulate: Simulate
    rounds: int
    tell: Tell = lambda _: None
    verdicts: dict[Candidate, TrialResult] = field(default_factory=dict)
    _trials: dict[Candidate, Trial] = field(default_factory=dict)
    _bytes: float = 0.0  # of a round of the first candidate

    def best_step(self, at: Candidate) -> Candidate:
        """The step size around which shorter and longer ones are worse."""
        for share in STAGES:
            while math.isinf(self._loss(at, share)):
                at = self._below(at)
            while (best := self._best((at, *at.beside(-1), *at.beside(1)), share)) != at:
                at = best
            self._keep((at, *at.beside(-1), *at.beside(1)))
        return at

    def best_interval(self, first: Candidate) -> Candidate:
        """The shortest Q, with its step size where that is open, of those as good as the best."""
        found = [first if first.step_size is None else self.best_step(first)]
        fewer = [steps for steps in reversed(INTERVALS) if steps < MIDDLE]
        more = [steps for steps in INTERVALS if steps > MIDDLE]
        for side, turned in ((fewer, 1), (more, -1)):
            at = found[0]
            for steps in side:
                best = self._loss(self._best(found))
                if turned < 0 and math.isinf(self._loss(found[0])):
                    break
                same = replace(at, local_steps=steps)
                at = self._best((same, *same.beside(turned)), share=0.5)
                found.append(at)
                self._keep(found)
                if turned < 0 and self._loss(at) >= best:
                    break
        best_one = self._best(found)
        if math.isinf(self._loss(best_one)):
            self._give_up(best_one)
        found.sort(key=lambda one: one.local_steps or 0)
        return next(one for one in found if self.verdicts[one].is_as_good_as(self.verdicts[best_one]))

    def lasting(self, found: Candidate, rounds: int) -> Candidate:
        """What was found, or the next below it that does not diverge within so many rounds."""
        while self._note(found, self._trial(found).go_on(rounds)).error:
            found = self._below(found)
        return found

    def _best(self, candidates: Collection[Candidate], share: float = 1.0) -> Candidate:
        return min(candidates, key=lambda one: self._loss(one, share))

    def _loss(self, candidate: Candidate, share: float = 1.0) -> float:
        """After a share of the rounds, fewer where a round sends more bytes than that of the first candidate did."""
        known = self.verdicts.get(candidate)
        if known is None or not known.error:
            trial = self._trial(candidate)
            trial.go_on(1)
            self._bytes = self._bytes or trial.bytes_a_round
            ratio = self._bytes / trial.bytes_a_round if trial.bytes_a_round else 1.0
            self._note(candidate, trial.go_on(max(1, round(share * ratio * self.rounds))))
        return self.verdicts[candidate].loss

    def _note(self, candidate: Candidate, verdict: TrialResult) -> TrialResult:
        if self.verdicts.get(candidate) is not verdict:
            said = f"loss {human_number(verdict.loss)}" if not verdict.error else "diverged"
            self.tell(f"tried {candidate}: {said} after round {verdict.round}")
        self.verdicts[candidate] = verdict
        return verdict

    def _trial(self, candidate: Candidate) -> Trial:
        if candidate not in self._trials:
            self._trials[candidate] = Trial(self.simulate(candidate.of(self.algorithm)))
        return self._trials[candidate]

    def _below(self, at: Candidate) -> Candidate:
        """A shorter step or, where the step size was given, fewer of them."""
        if at.step_size is not None:
            return at.beside(-1)[0] if at.beside(-1) else self._give_up(at)
        fewer = [steps for steps in INTERVALS if steps < (at.local_steps or 1)]
        return replace(at, local_steps=fewer[-1]) if fewer else self._give_up(at)

    def _give_up(self, at: Candidate) -> NoReturn:
        key = "local_steps" if at.step_size is None else "step_size"
        remedy = 'lower step_size, or set it to "measure"' if at.step_size is None else "look at features and labels"
        raise ConfigError(
            f"algorithm.{key}: training diverged in all trials, at last with {at} ({self.verdicts[at].error}): {remedy}"
        )

    def _keep(self, candidates: Collection[Candidate]) -> None:
        """Give up the other simulations, and their memory."""
        self._trials = {candidate: trial for candidate, trial in self._trials.items() if candidate in candidates}
