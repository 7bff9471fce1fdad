"""FedBCD, Figures 3 and 4a: AUC, training loss and rounds to three targets over a large range of Q, transfer."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf

from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.judging.rules import Check, Holds, below, check
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Curves, Dots, Recipe
from crosshatch.reproduce.recipes.fedbcd.halves import DIFFERS, SAME, STEPS, TARGETS, TRANSFER, name

WHATS = {target: f"rounds to {target.replace('auc=', 'AUC ')}" for target in TARGETS}
MIDDLE = WHATS[TARGETS[1]]
GOOD = (5, 10, 15)


def measure(runs: Measured) -> list[Row]:
    """Rounds to three targets."""
    return [
        Row(name(q), what, runs.of(name(q), reading).to(target), reading=reading)
        for reading in runs.readings
        for target, what in WHATS.items()
        for q in STEPS
    ]


def _inside(n: Mapping[str, float]) -> Holds:
    rounds = list(n.values())
    return None if all(map(isinf, rounds)) else min(rounds) not in (rounds[0], rounds[-1])


def rules(rows: Rows) -> list[Check]:
    of = {what: {name(q): (name(q), what) for q in STEPS} for what in WHATS.values()}
    middle, first, last = of[MIDDLE], name(STEPS[0]), name(STEPS[-1])
    return [
        check("1", "the best of Q = 5, 10, 15 takes fewer than half the rounds of Q = 1 to the middle target", rows,
              middle, lambda n: below(min(n[name(q)] for q in GOOD), n[first] / 2), main=True),
        check("2", "the largest Q takes more rounds than the best, or does not arrive, at the middle target", rows,
              middle, lambda n: below(min(n.values()), n[last]), main=True),
        *(check(f"3, {what}", f"the best Q is neither 1 nor the largest, {what}", rows, of[what], _inside)
          for what in WHATS.values()),
    ]  # fmt: skip


CURVES = (
    Curves("AUC on the test rows", "auc", tuple(map(name, STEPS)), labels=("rounds", "AUC")),
    Curves("training loss", "train_loss", tuple(map(name, STEPS)), labels=("rounds", "training loss")),
)
ROUNDS = (
    Dots(
        "rounds to three targets", "", {what: tuple((q, name(q)) for q in STEPS) for what in WHATS.values()},
        ("Q", "rounds"), (True, False),
    ),
)  # fmt: skip
FIG3 = Recipe(
    "fedbcd-fig3", "FedBCD", "Figure 3", "AUC and training loss over rounds, transfer, a large range of Q", (TRANSFER,),
    measure, rules, CURVES, 10.0, SAME, DIFFERS,
)  # fmt: skip
FIG4A = Recipe(
    "fedbcd-fig4a", "FedBCD", "Figure 4a", "rounds over Q to three AUC targets, transfer", (TRANSFER,),
    measure, rules, ROUNDS, 10.0, SAME, DIFFERS,
)  # fmt: skip
