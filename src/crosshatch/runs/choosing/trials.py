"""Trials before training: a candidate trains from the start, and is judged by samples that were put aside for it.

They are shorter than the run, a third of its rounds: much shorter ones favour steps that are too many or too long, as
what they overfit has not hurt yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData, keep_samples, unweighted_labels
from crosshatch.data.split import split_rows
from crosshatch.errors import ConfigError, DataError, TrainingError
from crosshatch.runs.config_names import AnyAlgorithm
from crosshatch.seeds import torch_seed
from crosshatch.simulator.divergence import GROWTH
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.losses import SampleWeighted

SHARE = 0.2
MOST_ASIDE = 4096
"""No more samples than this are put aside: judging must not take longer than training."""


def put_aside(data: FederatedData, *, seed: int, key: str) -> FederatedData:
    """The data for trials, by which a key of [algorithm] is chosen; a ConfigError where the samples are too few."""
    samples = len(data.y_train)
    groups = np.zeros(samples, np.int64) if data.groups is None else data.groups
    y = unweighted_labels(data)
    labels = y.cpu().numpy() if data.target in ("binary", "multiclass") else np.zeros(samples)
    kinds = np.unique(np.stack([groups.astype(np.float64), labels.astype(np.float64)]), axis=1, return_inverse=True)[1]
    share = min(SHARE, MOST_ASIDE / samples)
    try:
        rest, aside = split_rows(kinds.reshape(-1), share, seed=torch_seed(seed, "trials"), stratify=True)
    except DataError:
        raise ConfigError(
            f"algorithm.{key}: {samples} training samples are too few to put some aside, by which trials are judged: "
            "give a number"
        ) from None
    rows = torch.as_tensor(aside, device=data.y_train.device)
    judged = tuple(silo.train.index_select(0, rows) for silo in data.silos)
    kept = keep_samples(data, rest)
    silos = tuple(replace(silo, test=test) for silo, test in zip(kept.silos, judged, strict=True))
    return replace(kept, silos=silos, y_test=y.index_select(0, rows))


LEAST_ROUNDS, MOST_ROUNDS = 16, 64
"""No fewer and no more rounds than these, whatever the run has; never more than the run."""

Simulate = Callable[[AnyAlgorithm], Simulator]
Tell = Callable[[str], None]


def trial_rounds(rounds: int) -> int:
    """How many rounds trials have before a run of so many.

    >>> [trial_rounds(rounds) for rounds in (4, 12, 60, 1000)]
    [4, 12, 20, 64]
    """
    return min(rounds, max(LEAST_ROUNDS, min(MOST_ROUNDS, rounds // 3)))


@dataclass(frozen=True)
class TrialResult:
    """The `losses` (n,) of the samples put aside, each the mean over the last quarter of the rounds, or an `error`."""

    round: int = 0
    losses: Tensor | None = None
    error: str = ""

    @property
    def loss(self) -> float:
        """The mean over samples; infinite where training diverged."""
        return float("inf") if self.losses is None else float(self.losses.mean())

    def is_as_good_as(self, best: TrialResult) -> bool:
        """Whether the best one is ahead by no more than the standard error of the difference, sample by sample."""
        if self.losses is None or best.losses is None:
            return False
        worse_by = self.losses - best.losses
        return bool(worse_by.mean() <= worse_by.std(correction=0) / len(worse_by) ** 0.5)


class Trial:
    """A candidate under way, on data whose test samples are those put aside."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.verdict = TrialResult()
        self._highest = GROWTH * max(float(self._look().mean()), simulator.zero_objective())

    @property
    def bytes_a_round(self) -> float:
        """So far; 0 before the first round, and where nothing is sent."""
        return self._simulator.meter.bytes / max(1, self._simulator.round)

    def go_on(self, rounds: int) -> TrialResult:
        """Up to so many rounds in all. A trial that has diverged, by the rule that ends runs, stays as it is."""
        seen: list[Tensor] = []
        try:
            while self._simulator.round < rounds and not self.verdict.error:
                self._simulator.run_round()
                if 4 * self._simulator.round > 3 * rounds:
                    seen.append(self._look())
        except TrainingError as error:
            self.verdict = TrialResult(self._simulator.round, error=str(error))
        if seen and not self.verdict.error:
            self.verdict = TrialResult(rounds, torch.stack(seen).mean(0))
            if self.verdict.loss > self._highest:
                self.verdict = TrialResult(
                    rounds, error=f"round {rounds}: the loss has grown to {self.verdict.loss:.4g}"
                )
        return self.verdict

    def _look(self) -> Tensor:
        """Every sample's loss; of classes, as if one of the samples had another one's label.

        A few samples that all happen to be right would ask for scores, and steps, without end.
        """
        data, loss = self._simulator.data, self._simulator.task.loss
        if isinstance(loss, SampleWeighted):  # samples put aside have no weights; classes keep theirs
            loss = loss.loss
        scores = self._simulator.scores([silo.test for silo in data.silos]).double()
        if not torch.isfinite(scores).all():
            raise TrainingError(f"round {self._simulator.round}: a score is not finite")
        labels = data.y_test.double() if data.y_test.is_floating_point() else data.y_test
        if data.target == "regression":
            return loss.value(scores, labels)
        samples = len(labels)
        return ((samples - 1) * loss.value(scores, labels) + loss.value(scores, labels.roll(1, 0))) / samples
