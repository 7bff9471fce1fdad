"""ICASSP, Figure 3: training loss over rounds for several Q (a) and K (b), networks on halves of digits."""

from __future__ import annotations

from functools import partial

from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.judging.rules import Check, below, check, falls, spread
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Curves, Method, Recipe, RunSet
from crosshatch.reproduce.recipes.fedbcd.stays import SEEDS
from crosshatch.reproduce.recipes.icassp.ends import FALL, LABELS, LAST, ROUNDS, ends, to_the_end_of

CONFIG = """
data = {name = "mnist", limit = 60000}
federation = {split = "halves", clients = 10}
model = {block = "cnn", channels = 64, dense = 256}
algorithm = {name = "tdcd", batches = "fresh", batch_size = 640, step_size = 0.001, local_steps = 5}
evaluate = {every = 1, metrics = ["accuracy"]}
run = {rounds = 200, checkpoint_every = 20}
"""
SMALL = ("data.limit=3000", "model.channels=8", "model.dense=64", "algorithm.step_size=0.05", "run.rounds=20",
         "evaluate.train_samples=1000", "evaluate.test_samples=500")  # fmt: skip
STEPS, CLIENTS = (1, 5, 10, 20), (1, 5, 25)
BY_STEPS, BY_CLIENTS = (
    RunSet(name, CONFIG, methods, SEEDS, "mnist", changes={"quick": SMALL})
    for name, methods in (
        ("I4", tuple(Method(f"Q = {q}", (f"algorithm.local_steps={q}",)) for q in STEPS)),
        ("I5", tuple(Method(f"K = {k}", (f"federation.clients={k}", "algorithm.batch_size=1250")) for k in CLIENTS)),
    )
)
BY_Q, BY_K = (tuple(method.name for method in runs.methods) for runs in (BY_STEPS, BY_CLIENTS))
DIFFERS = {
    "size": "3,000 images, 8 channels, 64 units, 20 rounds and a step size of 0.05 (quick), since with the paper's "
    "0.001 the loss hardly moves in so few rounds; 60,000 images, 64 channels, 256 units and 0.001 in full",
    "batch": "drawn for the whole silo; figure 3b: 1,250 per silo for every K, so that a silo sees as many samples",
    "step sizes": "one for all, so *own* and *common* are the same",
    "seeds": "three (quick) or five (full); the paper does not say how many",
}
SAME = (
    "ten classes, halves of 28 x 14, two convolutions and a dense layer for each half, scores added, cross-entropy",
)


def measure_steps(runs: Measured) -> list[Row]:
    """Losses at the end, and rounds to what Q = 1 ends with."""
    return ends(runs, BY_Q) + [to_the_end_of("Q = 1", name, runs) for name in BY_Q]


def rules_steps(rows: Rows) -> list[Check]:
    there = {"q10": ("Q = 10", ROUNDS), "q1": ("Q = 1", ROUNDS)}
    return [
        check("1", "the loss at the last common round falls with every larger Q", rows, {q: (q, LAST) for q in BY_Q},
              lambda n: falls([n[name] for name in BY_Q]), main=True),
        check("2", "Q = 10 needs less than a quarter of the rounds of Q = 1 to the loss that Q = 1 ends with", rows,
              there, lambda n: below(n["q10"], n["q1"] / 4), main=True),
    ]  # fmt: skip


def rules_clients(rows: Rows) -> list[Check]:
    last = {name: (name, LAST) for name in BY_K} | {"fall": (BY_K[0], FALL)}
    words = "the last losses of all K lie within 10% of the fall of K = 1"
    return [check("1", words, rows, last, lambda n: below(spread([n[k] for k in BY_K]), 0.1 * n["fall"]), main=True)]


FIG3A = Recipe("icassp-fig3a", "ICASSP", "Figure 3a", "training loss over rounds for several Q, networks", (BY_STEPS,),
               measure_steps, rules_steps, (Curves("training loss", "train_loss", BY_Q, labels=LABELS),), 4.0, SAME,
               DIFFERS)  # fmt: skip
FIG3B = Recipe("icassp-fig3b", "ICASSP", "Figure 3b", "training loss over rounds for several K, networks",
               (BY_CLIENTS,), partial(ends, names=BY_K), rules_clients,
               (Curves("training loss", "train_loss", BY_K, labels=LABELS),), 3.0, SAME, DIFFERS)  # fmt: skip
