"""ICASSP, Figure 2a: training loss over rounds for several Q, ridge regression."""

from __future__ import annotations

from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.judging.rules import Check, at_most, below, check, every, falls
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Curves, Recipe
from crosshatch.reproduce.recipes.icassp.compounds import BY_STEPS, DIFFERS, SAME, STEPS
from crosshatch.reproduce.recipes.icassp.ends import LABELS, LAST, ROUNDS, to_the_end_of

AT = (50, 100)


def measure(runs: Measured) -> list[Row]:
    """Losses at rounds 50 and 100 and at the end, and rounds to what Q = 1 ends with, for each seed its own."""
    rows = []
    for q in STEPS:
        series = runs.of(f"Q = {q}")
        rows += [Row(f"Q = {q}", f"loss at round {r}", series.at("train_loss", r)) for r in AT]
        rows += [Row(f"Q = {q}", LAST, series.last("train_loss")), to_the_end_of("Q = 1", f"Q = {q}", runs)]
    return rows


def rules(rows: Rows) -> list[Check]:
    at = {f"{q}@{r}": (f"Q = {q}", f"loss at round {r}") for q in STEPS for r in AT}
    ends = {str(q): (f"Q = {q}", LAST) for q in STEPS}
    there = {"q10": ("Q = 10", ROUNDS), "q1": ("Q = 1", ROUNDS)}
    return [
        check("1", "at rounds 50 and 100 the loss falls with every larger Q from 1 to 20", rows, at,
              lambda n: every(falls([n[f"{q}@{r}"] for q in STEPS[:5]]) for r in AT), main=True),
        check("2", "Q = 10 needs less than a third of the rounds of Q = 1 to the loss that Q = 1 ends with", rows,
              there, lambda n: below(n["q10"], n["q1"] / 3), main=True),
        check("3", "the last loss of the largest Q is not below the best of the others by more than 1%", rows, ends,
              lambda n: at_most(0.99 * min(n[str(q)] for q in STEPS[:-1]), n[str(STEPS[-1])])),
    ]  # fmt: skip


NAMES = tuple(f"Q = {q}" for q in STEPS)
RECIPE = Recipe(
    "icassp-fig2a", "ICASSP", "Figure 2a", "training loss over rounds for several Q, ridge regression", (BY_STEPS,),
    measure, rules, (Curves("training loss", "train_loss", NAMES, labels=LABELS, logarithmic=(False, True)),), 2.0,
    (*SAME, "20,000 rows, four silos of five clients, batches of 100"),
    DIFFERS | {"Q": "1, 2, 5, 10, 20, 50; the paper's text does not give the values"},
)  # fmt: skip
