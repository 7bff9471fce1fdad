"""FedBCD, Figure 2: AUC and training loss over rounds, logistic regression."""

from __future__ import annotations

from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.judging.rules import Check, at_most, below, check, every
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Curves, Recipe
from crosshatch.reproduce.recipes.fedbcd.fedbcd_table1_lr import DIFFERS, SAME
from crosshatch.reproduce.recipes.fedbcd.stays import TWO

ID = "fedbcd-fig2"
END, HALF, APART = "AUC at the last round", "training loss at half of the rounds", "largest difference of AUC to -p"
SECONDS = "simulated seconds of local steps per round"
FIRST = 20  # from this round on -s and -p are compared
CURVES = ("FedSGD", "FedBCD-p, Q = 5", "FedBCD-p, Q = 50", "FedBCD-s, Q = 5", "FedBCD-s, Q = 50")


def measure(runs: Measured) -> list[Row]:
    """The curves at the rounds that the rules speak of."""
    rows = []
    for reading in runs.readings:
        for method in TWO.methods:
            series = runs.of(method.name, reading)
            end = int(series.runs[0].metrics[-1]["round"])
            rows.append(Row(method.name, END, series.at("auc", end), reading=reading))
            rows.append(Row(method.name, HALF, series.at("train_loss", end // 2), reading=reading))
            # messages take no time in the network of these runs, so that what is left are local steps
            local = tuple(run.metrics[-1]["sim_seconds"] / run.metrics[-1]["round"] for run in series.runs)
            rows.append(Row(method.name, SECONDS, local, reading=reading))
        for q in (5, 50):
            one, other = (runs.of(f"FedBCD-{order}, Q = {q}", reading) for order in "sp")
            rounds = [row["round"] for row in one.runs[0].metrics if row["round"] >= FIRST]
            apart = [[abs(a - b) for a, b in zip(one.at("auc", r), other.at("auc", r), strict=True)] for r in rounds]
            rows.append(Row(f"FedBCD-s, Q = {q}", APART, tuple(map(max, zip(*apart, strict=True))), reading=reading))
    return rows


def rules(rows: Rows) -> list[Check]:
    sgd, p5, p50 = (("FedSGD", END), ("FedBCD-p, Q = 5", END), ("FedBCD-p, Q = 50", END))
    losses = {"p5": ("FedBCD-p, Q = 5", HALF), "sgd": ("FedSGD", HALF)}
    apart = {f"s{q}": (f"FedBCD-s, Q = {q}", APART) for q in (5, 50)}
    turns = {f"{order}{q}": (f"FedBCD-{order}, Q = {q}", SECONDS) for order in "sp" for q in (5, 50)}
    return [
        check("1", "where FedSGD ends, AUC with Q = 5 and with Q = 50 is not lower", rows,
              {"sgd": sgd, "p5": p5, "p50": p50},
              lambda n: every((at_most(n["sgd"], n["p5"]), at_most(n["sgd"], n["p50"]))), main=True),
        check("2", "at half of the rounds the training loss is lower with Q = 5 than for FedSGD", rows,
              losses, lambda n: below(n["p5"], n["sgd"]), main=True),
        check("3", f"from round {FIRST} on AUC of -s and -p differs by less than 0.01 at equal rounds", rows,
              apart, lambda n: every(below(n[key], 0.01) for key in apart)),
        check("4", "the local steps of a round of -s take exactly twice the simulated time of -p, with two parties",
              rows, turns, lambda n: n["s5"] == 2 * n["p5"] and n["s50"] == 2 * n["p50"]),
    ]  # fmt: skip


PANELS = (
    Curves("AUC on the test rows", "auc", CURVES, labels=("rounds", "AUC")),
    Curves("training loss", "train_loss", CURVES, labels=("rounds", "training loss")),
)
RECIPE = Recipe(
    ID, "FedBCD", "Figure 2", "AUC and training loss over rounds, logistic regression, several Q", (TWO,),
    measure, rules, PANELS, 4.0, SAME, DIFFERS,
)  # fmt: skip
