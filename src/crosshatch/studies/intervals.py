"""What methods reach on the test rows, how sure that is, and differences between them.

A paired bootstrap: test rows are drawn again with replacement, the same ones for all methods and seeds, and of each
draw the mean over the seeds counts. Intervals hold 95% of the draws. They do not know of other training rows or seeds.
Of very few rows they are too narrow (scores that are apart on six rows are so in every draw): then nothing is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from crosshatch.errors import RunError
from crosshatch.runs.trained.judged import SCORES
from crosshatch.task.losses import Loss
from crosshatch.task.measuring.decisions import decide
from crosshatch.task.measuring.ranks import Floats
from crosshatch.task.measuring.resampled import draw_counts, resampled

MOST_DRAWS, LEAST_DRAWS, MOST_NUMBERS = 2000, 200, 12_000_000
SHARE = 0.95
FEWEST_ROWS, FEWEST_OF_A_CLASS = 20, 10


@dataclass(frozen=True)
class Kept:
    """Scores (n, c) of test and validation rows with their labels; `without` has those with a silo's rows shuffled."""

    scores: Tensor
    y: Tensor
    validation_scores: Tensor
    validation_y: Tensor
    without: Mapping[str, Tensor] = field(default_factory=dict)


def read_kept(run: Path) -> Kept:
    """What a run directory has."""
    path = run / SCORES
    if not path.is_file():
        raise RunError(f"{path} is missing: it was removed after the run ended; start the study again in another --out")
    found = load_file(path)
    before = "without."
    return Kept(
        found["test.scores"], found["test.y"], found["validation.scores"], found["validation.y"],
        {name.removeprefix(before): one for name, one in found.items() if name.startswith(before)},
    )  # fmt: skip


def scores_rows(kept: Mapping[str, Sequence[Kept]], seeds: Sequence[int]) -> Iterator[list[object]]:
    """One line per validation and test row: its label, and its scores by every method and seed, in full."""
    first = next(iter(kept.values()))[0]
    width = first.scores.shape[1]
    names = [
        f"{name}, seed {seed}" + (f", score {c}" if width > 1 else "")
        for name, each in kept.items()
        for seed, _ in zip(seeds, each, strict=False)
        for c in range(width)
    ]
    yield ["part", "row", "label", *names]
    for part in ("validation", "test"):
        labels = first.y if part == "test" else first.validation_y
        table = torch.cat(
            [one.scores if part == "test" else one.validation_scores for each in kept.values() for one in each], dim=1
        ).double()
        for row, (label, scores) in enumerate(zip(labels.tolist(), table.tolist(), strict=True)):
            yield [part, row, label, *scores]


@dataclass(frozen=True)
class Interval:
    """A value, and from where to where 95% of the draws lie; `enough`: rows to call anything shown."""

    value: float
    low: float
    high: float
    enough: bool = True

    @property
    def shown(self) -> bool:
        """Whether it is shown to differ from nothing."""
        return self.enough and (self.low > 0 or self.high < 0)

    def __neg__(self) -> Interval:
        return Interval(-self.value, -self.high, -self.low, self.enough)


@dataclass(frozen=True)
class JudgedMethods:
    """Of each method and metric the value on the test rows, then that of every draw: (1 + draws,), means over seeds.

    `lost` has the same of each silo: what the metric loses when that silo's rows are shuffled.
    """

    values: Mapping[str, Mapping[str, Floats]]
    lost: Mapping[str, Mapping[str, Mapping[str, Floats]]]
    rows: int
    draws: int
    enough: bool = True

    def of(self, method: str, metric: str) -> Interval | None:
        """None where it was not measured."""
        found = self.values[method].get(metric)
        return None if found is None else interval(found, self.enough)

    def difference(self, one: str, other: str, metric: str) -> Interval:
        """How much more the one has than the other."""
        return interval(self.values[one][metric] - self.values[other][metric], self.enough)

    def loses(self, method: str, silo: str, metric: str) -> Interval | None:
        """What a method loses when a silo's rows are shuffled; None where that was not tried."""
        found = self.lost.get(method, {}).get(silo, {}).get(metric)
        return None if found is None else interval(found, self.enough)


def judge(kept: Mapping[str, Sequence[Kept]], metrics: Sequence[str], loss: Loss) -> JudgedMethods:
    """All methods, each with the kept scores of its seeds."""
    first = next(iter(kept.values()))[0]
    rows = len(first.y)
    draws = max(LEAST_DRAWS, min(MOST_DRAWS, MOST_NUMBERS // rows))
    # the rows themselves first: every one once
    counts = np.concatenate([np.ones((1, rows)), draw_counts(rows, draws, seed=0)])
    values: dict[str, dict[str, Floats]] = {}
    lost: dict[str, dict[str, dict[str, Floats]]] = {}
    for name, each in kept.items():
        found = [_measure(one, one.scores, metrics, loss, counts) for one in each]
        values[name] = whole = _mean(found)
        lost[name] = {}
        for silo in each[0].without:
            rest = _mean([_measure(one, one.without[silo], metrics, loss, counts) for one in each])
            lost[name][silo] = {metric: whole[metric] - rest[metric] for metric in rest}
    rarest = int(first.y.long().bincount(minlength=2).min()) if loss.target == "binary" else FEWEST_OF_A_CLASS
    return JudgedMethods(values, lost, rows, draws, rows >= FEWEST_ROWS and rarest >= FEWEST_OF_A_CLASS)


def interval(values: Floats, enough: bool = True) -> Interval:
    """Of a value and the draws behind it."""
    drawn = values[1:][np.isfinite(values[1:])]
    if not len(drawn):
        return Interval(float(values[0]), float("nan"), float("nan"), enough)
    low, high = np.quantile(drawn, [(1 - SHARE) / 2, (1 + SHARE) / 2])
    return Interval(float(values[0]), float(low), float(high), enough)


def _measure(kept: Kept, scores: Tensor, metrics: Sequence[str], loss: Loss, counts: Floats) -> dict[str, Floats]:
    threshold = None
    if loss.target == "binary":
        chosen = (loss.predict(kept.validation_scores.double()).numpy(), kept.validation_y.long().numpy())
        threshold = decide(chosen[0], chosen[1], chosen).threshold
    return resampled(metrics, scores, kept.y, loss, counts, threshold)


def _mean(found: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    return {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}
