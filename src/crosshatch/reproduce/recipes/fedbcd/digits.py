"""F2: convolutional networks on the halves of two digits."""

from __future__ import annotations

from crosshatch.reproduce.recipe import Method, RunSet, Search
from crosshatch.reproduce.recipes.fedbcd.stays import SEEDS, fedbcd

CONFIG = """
data = {name = "mnist", classes = [3, 8], validation = 0.03}
federation = {split = "halves"}
model = {block = "cnn", channels = 64, dense = 256}
algorithm = {name = "fedsgd", batch_size = 256}
optimiser = {name = "adam", state = "kept"}
run = {rounds = 60, checkpoint_every = 60, stop_at_targets = true}
[evaluate]
every = 1
metrics = ["auc"]
targets = ["auc=0.997", "validation_auc=0.997"]
train_samples = 64
test_samples = 500
"""
BOTH, SMALLER, AROUND = (0.0001, 0.001), (0.0003, 0.001), (0.0003, 0.001, 0.003)
RUNS = RunSet(
    "F2",
    CONFIG,
    (
        Method("FedSGD", (), AROUND),
        *(Method(f"FedBCD-p, Q = {q}", fedbcd(q), BOTH if q == 5 else (0.001,)) for q in (3, 5)),
        Method("FedBCD-s, Q = 1", fedbcd(1, "sequential"), SMALLER),
        *(Method(f"FedBCD-s, Q = {q}", fedbcd(q, "sequential"), BOTH if q == 5 else (0.001,)) for q in (3, 5)),
    ),
    SEEDS,
    "mnist",
    Search("algorithm.step_size=VALUE", BOTH, "fewest rounds to validation auc=0.997", widen=0,
           common_by=("FedBCD-p, Q = 5", "FedBCD-s, Q = 5")),
    {"full": ("evaluate.test_samples=", "evaluate.train_samples=")},
)  # fmt: skip
