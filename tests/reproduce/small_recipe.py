"""A recipe that takes a second: two methods, a search that widens, both readings."""

from __future__ import annotations

from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.judging.rules import Check, Factor, below, check
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Beside, Curves, Dots, Method, Recipe, RunSet, Search

CONFIG = """
data = {name = "breast_cancer", validation = 0.2}
federation = {silos = 2}
algorithm = {name = "fedsgd", batch_size = 32}
evaluate = {every = 1, metrics = ["auc"], smooth = 2}
run = {rounds = 8}
"""
RUNS = RunSet(
    "S1",
    CONFIG,
    (Method("FedSGD"), Method("Q = 5", ("algorithm.name=fedbcd", "algorithm.local_steps=5"))),
    {"quick": (1, 2, 3), "full": (1, 2, 3)},
    search=Search("algorithm.step_size=VALUE", (0.001, 0.003), "fewest rounds to validation auc=0.9", 1, ("Q = 5",)),
)


def measure(runs: Measured) -> list[Row]:
    """Rounds."""
    return [
        Row(method.name, "rounds", runs.of(method.name, reading).to("auc=0.9"), 10.0, reading)
        for reading in runs.readings
        for method in RUNS.methods
    ]


def rules(rows: Rows) -> list[Check]:
    """One check."""
    names = {"q5": ("Q = 5", "rounds"), "sgd": ("FedSGD", "rounds")}
    return [check("1", "Q = 5 takes fewer rounds", rows, names, lambda n: below(n["q5"], n["sgd"]), main=True)]


RECIPE = Recipe(
    "small", "Nobody", "Table 0", "rounds to an AUC", (RUNS,), measure, rules,
    (Beside("rounds", "rounds", "rounds", ("own", "common")),
     Curves("AUC", "auc", ("FedSGD", "Q = 5"), labels=("rounds", "AUC")),
     Dots("rounds over Q", "rounds", {"rounds": ((1, "FedSGD"), (5, "Q = 5"))}, ("Q", "rounds"))),
    5.0, ("all of it",), {"data": "nothing"}, lambda _: [Factor("one", 2.0, 2.0)],
)  # fmt: skip
