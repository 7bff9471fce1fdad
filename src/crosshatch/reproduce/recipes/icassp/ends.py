"""What recipes measure at the end of training, and rounds to where another method ends."""

from __future__ import annotations

from crosshatch.reproduce.judging.rows import Row
from crosshatch.reproduce.measured import Measured

LAST, FIVE, FALL = "last loss", "mean of the last five losses", "fall of the loss"
ROUNDS = "rounds to the last loss of Q = 1"
LABELS = ("communication rounds", "training loss")


def ends(runs: Measured, names: tuple[str, ...]) -> list[Row]:
    """Losses at the end, and how far they fell."""
    rows = []
    for one in names:
        series, last = runs.of(one), runs.of(one).last("train_loss")
        fall = tuple(first - end for first, end in zip(series.first("train_loss"), last, strict=True))
        rows += [Row(one, LAST, last), Row(one, FIVE, series.last("train_loss", 5)), Row(one, FALL, fall)]
    return rows


def to_the_end_of(slow: str, name: str, runs: Measured) -> Row:
    """Rounds to the training loss that another method ends with, for each seed its own."""
    goals, series = runs.of(slow).last("train_loss"), runs.of(name)
    return Row(name, ROUNDS, tuple(series.to(f"train_loss={goal!r}")[i] for i, goal in enumerate(goals)))
