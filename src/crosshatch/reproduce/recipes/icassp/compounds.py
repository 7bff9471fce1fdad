"""I1 to I3: superconductivity, ridge regression, Q fresh mini-batches per round."""

from __future__ import annotations

from crosshatch.reproduce.recipe import Method, RunSet
from crosshatch.reproduce.recipes.fedbcd.stays import SEEDS

# One bias, in the first block, is the paper's column of ones: it is regularised like the rest.
CONFIG = """
data = {name = "superconductivity", test_fraction = 0.05, limit = 20000}
federation = {silos = 4, clients = 5}
model = {bias = false, l2 = 1.0, blocks = {silo1 = {bias = true}}}
algorithm = {name = "tdcd", batches = "fresh", batch_size = 100, step_size = 0.001, local_steps = 1}
evaluate = {every = 1, metrics = ["rmse"], test_samples = 100}
run = {rounds = 150, checkpoint_every = 150}
"""
STEPS = (1, 2, 5, 10, 20, 50)
SILOS = (2, 4, 8, 16, 41)
CLIENTS = (1, 2, 5, 10, 20)
OTHER_STEPS = (1, 4, 10)
FEWER = "data.limit=2000"
BY_STEPS = RunSet(
    "I1",
    CONFIG,
    tuple(Method(f"Q = {q}", (f"algorithm.local_steps={q}",)) for q in STEPS),
    SEEDS,
    "superconductivity",
)
BY_SILOS = RunSet(
    "I2",
    CONFIG,
    tuple(
        Method(f"N = {n}", (FEWER, "algorithm.local_steps=4", "algorithm.batch_size=20", "federation.clients=2",
                            f"federation.silos={n}"))
        for n in SILOS
    ),
    SEEDS,
    "superconductivity",
    changes={"full": ("run.rounds=300",)},
)  # fmt: skip
BY_CLIENTS = RunSet(
    "I3",
    CONFIG,
    (
        *(Method(f"K = {k}", (FEWER, "algorithm.local_steps=4", "algorithm.batch_size=500", f"federation.clients={k}"))
          for k in CLIENTS),
        *(Method(f"K = 5, Q = {q}", (FEWER, f"algorithm.local_steps={q}", "algorithm.batch_size=500"))
          for q in OTHER_STEPS),
    ),
    SEEDS,
    "superconductivity",
    changes={"full": ("run.rounds=300",)},
)  # fmt: skip
SAME = (
    "ridge regression: mean half squared residual plus half the squared norm, one bias that is regularised too",
    "Q fresh mini-batches per round, step size 0.001 throughout, 81 standardised features",
)
DIFFERS = {
    "data": "5 of the 81 columns are rebuilt and the rows are in another order; which rows the paper took is not known",
    "batch": "B samples are drawn for the whole silo, as the paper's Algorithm 1 says",
    "step sizes": "the paper's own for all, so *own* and *common* are the same",
    "seeds": "three (quick) or five (full); the paper does not say how many",
}
