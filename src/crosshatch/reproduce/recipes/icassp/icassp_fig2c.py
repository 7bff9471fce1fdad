"""ICASSP, Figure 2c: training loss over rounds for several numbers of clients, ridge regression."""

from __future__ import annotations

from functools import partial

from crosshatch.reproduce.judging.rows import Rows
from crosshatch.reproduce.judging.rules import Check, below, check, spread
from crosshatch.reproduce.recipe import Curves, Recipe
from crosshatch.reproduce.recipes.icassp.compounds import BY_CLIENTS, CLIENTS, DIFFERS, OTHER_STEPS, SAME
from crosshatch.reproduce.recipes.icassp.ends import FALL, LABELS, LAST, ends

NAMES = tuple(f"K = {k}" for k in CLIENTS)
STEPS = tuple(f"K = 5, Q = {q}" for q in OTHER_STEPS)


def rules(rows: Rows) -> list[Check]:
    last = {name: (name, LAST) for name in (*NAMES, *STEPS)}
    return [
        check("1", "the last losses of all K lie within 2% of the fall of K = 1", rows,
              last | {"fall": (NAMES[0], FALL)},
              lambda n: below(spread([n[name] for name in NAMES]), 0.02 * n["fall"]), main=True),
        check("2", "they lie closer together than those of Q = 1, 4, 10 with five clients", rows, last,
              lambda n: below(spread([n[name] for name in NAMES]), spread([n[name] for name in STEPS]))),
    ]  # fmt: skip


RECIPE = Recipe(
    "icassp-fig2c", "ICASSP", "Figure 2c", "training loss over rounds for several numbers of clients", (BY_CLIENTS,),
    partial(ends, names=(*NAMES, *STEPS)), rules, (Curves("training loss", "train_loss", NAMES, labels=LABELS),), 2.0,
    (*SAME, "2,000 rows, four silos, Q = 4, batches of 500"),
    DIFFERS | {"K": "1, 2, 5, 10, 20; the paper's text does not give the values"},
)  # fmt: skip
