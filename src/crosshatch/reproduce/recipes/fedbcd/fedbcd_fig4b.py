"""FedBCD, Figure 4b: large Q with and without a proximal term, transfer."""

from __future__ import annotations

from crosshatch.reproduce.judging.rows import NOT_REACHED, Row, Rows
from crosshatch.reproduce.judging.rules import Check, at_most, below, check, some
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Curves, Recipe
from crosshatch.reproduce.recipes.fedbcd.halves import DIFFERS, LARGE, SAME, TRANSFER, name

ID, BEST, WHAT = "fedbcd-fig4b", "best AUC", "rounds to what Q = 15 reaches, less 0.005"
MARGIN, REFERENCE = 0.005, 15


def measure(runs: Measured) -> list[Row]:
    """Best AUC, and rounds to a target that is each seed's own."""
    rows = []
    names = [name(REFERENCE), *(name(q, proximal) for q in LARGE for proximal in (False, True))]
    for reading in runs.readings:
        goals = [best - MARGIN for best in runs.of(name(REFERENCE), reading).best("auc")]
        for one in names:
            series = runs.of(one, reading)
            rounds = tuple(series.to(f"auc={goal}")[i] for i, goal in enumerate(goals))
            rows += [Row(one, BEST, series.best("auc"), reading=reading), Row(one, WHAT, rounds, reading=reading)]
    return rows


def rules(rows: Rows) -> list[Check]:
    plain = {f"q{q}": (name(q), WHAT) for q in (REFERENCE, *LARGE)}
    best = {f"{q}{mark}": (name(q, mark == "+"), BEST) for q in LARGE for mark in ("", "+")}
    return [
        check("1", "without mu at least one of Q = 25, 50, 100 does not reach it, or takes twice the rounds of Q = 15",
              rows, plain, lambda n: None if n["q15"] == NOT_REACHED
              else some(n[f"q{q}"] >= 2 * n["q15"] for q in LARGE), main=True),
        check("2", "for at least two of Q = 25, 50, 100 the best AUC with mu = 0.1 is not lower than without", rows,
              best, lambda n: sum(at_most(n[f"{q}"], n[f"{q}+"]) is True for q in LARGE) >= 2, main=True),
        check("3", "for Q = 100 the best AUC with mu = 0.1 is higher", rows, best,
              lambda n: below(n["100"], n["100+"])),
    ]  # fmt: skip


RECIPE = Recipe(
    ID, "FedBCD", "Figure 4b", "large Q with and without the proximal term mu = 0.1, transfer", (TRANSFER,),
    measure, rules,
    tuple(
        Curves(f"Q = {q}", "auc", (name(REFERENCE), name(q), name(q, proximal=True)), labels=("rounds", "AUC"))
        for q in LARGE
    ),
    10.0, SAME, DIFFERS,
)  # fmt: skip
