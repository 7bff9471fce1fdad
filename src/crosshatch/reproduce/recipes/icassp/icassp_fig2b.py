"""ICASSP, Figure 2b: training loss over rounds for several numbers of silos, ridge regression."""

from __future__ import annotations

from functools import partial

from crosshatch.reproduce.judging.rows import Rows
from crosshatch.reproduce.judging.rules import Check, at_most, below, check, rank_correlation, spread
from crosshatch.reproduce.recipe import Curves, Recipe
from crosshatch.reproduce.recipes.icassp.compounds import BY_SILOS, DIFFERS, SAME, SILOS
from crosshatch.reproduce.recipes.icassp.ends import FALL, FIVE, LABELS, LAST, ends

NAMES = tuple(f"N = {n}" for n in SILOS)


def rules(rows: Rows) -> list[Check]:
    last = {name: (name, LAST) for name in NAMES}
    means = {name: (name, FIVE) for name in NAMES}
    return [
        check("1", "the last losses of all N lie within 5% of the fall of N = 2", rows,
              last | {"fall": (NAMES[0], FALL)},
              lambda n: below(spread([n[name] for name in NAMES]), 0.05 * n["fall"]), main=True),
        check("2", "the mean of the last five losses with N = 2 is not above that with the largest N", rows, means,
              lambda n: at_most(n[NAMES[0]], n[NAMES[-1]]), main=True),
        check("3", "that mean rises with N (rank correlation)", rows, means,
              lambda n: rank_correlation(SILOS, [n[name] for name in NAMES]) > 0),
    ]  # fmt: skip


RECIPE = Recipe(
    "icassp-fig2b", "ICASSP", "Figure 2b", "training loss over rounds for several numbers of silos", (BY_SILOS,),
    partial(ends, names=NAMES), rules, (Curves("training loss", "train_loss", NAMES, labels=LABELS),), 2.0,
    (*SAME, "2,000 rows, two clients per silo, Q = 4, batches of 20"),
    DIFFERS | {"N": "2, 4, 8, 16, 41; the paper's text does not give the values, nor the step size of this figure"},
)  # fmt: skip
