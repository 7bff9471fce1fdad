"""FedBCD, Figure 5: AUC over rounds for 2, 5 and 17 parties."""

from __future__ import annotations

from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.judging.rules import Check, at_most, below, check, every
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Curves, Recipe
from crosshatch.reproduce.recipes.fedbcd.fedbcd_table1_lr import DIFFERS, SAME
from crosshatch.reproduce.recipes.fedbcd.stays import HIGHER, LOWER, MANY

ID = "fedbcd-fig5"
WHAT, EASIER = "rounds to the higher AUC", "rounds to the lower AUC"
PARTIES = (2, 5, 17)


def measure(runs: Measured) -> list[Row]:
    """Rounds to both targets."""
    return [
        Row(method.name, what, runs.of(method.name, reading).to(target), reading=reading)
        for reading in runs.readings
        for what, target in ((WHAT, HIGHER), (EASIER, LOWER))
        for method in MANY.methods
    ]


def rules(rows: Rows) -> list[Check]:
    """As the specification has them, the same for -p and for -s."""
    return [one for order in "ps" for one in _rules(rows, order)]


def _rules(rows: Rows, o: str) -> list[Check]:
    five = {f"{o}{k}": (f"FedBCD-{o}, Q = 5, K = {k}", WHAT) for k in PARTIES}
    sgd = {f"sgd{k}": (f"FedSGD, K = {k}", WHAT) for k in PARTIES}
    begin = f"FedBCD-{o} with Q = 5"
    return [
        check(f"1{o}", f"{begin} takes fewer than half the rounds of FedSGD, for every number of parties", rows,
              five | sgd, lambda n: every(below(n[f"{o}{k}"], n[f"sgd{k}"] / 2) for k in PARTIES), main=True),
        check(f"2{o}", f"{begin}: 17 parties take at most twice the rounds of two", rows,
              five, lambda n: at_most(n[f"{o}17"], 2 * n[f"{o}2"]), main=True),
        check(f"3{o}", f"{begin}: 17 parties take at least 0.9 of the rounds of two", rows,
              five, lambda n: at_most(0.9 * n[f"{o}2"], n[f"{o}17"])),
    ]  # fmt: skip


PANELS = tuple(
    Curves(
        f"FedBCD-{order}", "auc",
        (*(f"FedSGD, K = {k}" for k in PARTIES), *(f"FedBCD-{order}, Q = 5, K = {k}" for k in PARTIES)),
        labels=("rounds", "AUC"), last=100,
    )
    for order in "ps"
)  # fmt: skip
RECIPE = Recipe(
    ID, "FedBCD", "Figure 5", "AUC over rounds for 2, 5 and 17 parties, logistic regression", (MANY,),
    measure, rules, PANELS, 4.0, (*SAME[:2], "parties hold whole variables"),
    DIFFERS | {"step size": "eta_0 is searched for each number of parties, which includes the paper's 1 / sqrt(K)"},
)  # fmt: skip
