"""F5: credit default, transfer under homomorphic encryption, of which the costs are charged."""

from __future__ import annotations

from crosshatch.reproduce.recipe import Method, RunSet, Search
from crosshatch.reproduce.recipes.fedbcd.stays import SEEDS, STEP

# Seconds of operations on 3072 bits, two cores: the least of three measurements, fixed so that runs are equal.
CONFIG = """
data = {name = "credit_default", categorical = ["SEX", "EDUCATION", "MARRIAGE"], clip = 5.0, validation = 0.2}
algorithm = {name = "fedsgd", batch_size = 256, draw = "anew"}
run = {rounds = 60, checkpoint_every = 60, stop_at_targets = true}
[federation]
labels = "payments"
common = 2000
silos = [{name = "payments", groups = ["pay_status", "bill_amount", "pay_amount"]},
         {name = "profile", groups = ["demographic_limit"]}]
[model]
block = "mlp"
hidden = [8]
outputs = 8
fusion = "transfer"
loss = "taylor_logistic"
alignment = "distance"
alignment_weight = 0.01
l2 = 0.001
[privacy]
encryption = "paillier"
key_bits = 3072
accept_leakage = true
seconds = {encrypt = 0.00056, multiply = 2e-5, pack = 0.0018, mask = 0.0845, decrypt = 0.0159}
[network]
kind = "bandwidth"
links = {hub-hub = {latency = 0.01, up = 100.0, down = 100.0}}
step_seconds = 1e-4
[evaluate]
every = 1
metrics = ["auc"]
targets = ["auc=0.62", "validation_auc=0.61"]
"""
MINUTE = 60.0
NAMES = {1: "FedSGD", 5: "Q = 5", 10: "Q = 10"}
TARGETS = {"lowest": "auc=0.6", "middle": "auc=0.61", "highest": "auc=0.62"}
METHODS = tuple(
    Method(name, () if q == 1 else ("algorithm.name=fedbcd", f"algorithm.local_steps={q}")) for q, name in NAMES.items()
)
LARGE = ("model.hidden=[64]", "model.outputs=64")
RUNS = RunSet(
    "F5",
    CONFIG,
    METHODS,
    SEEDS,
    "credit_default",
    Search(STEP, (1.0, 3.0, 10.0), "fewest rounds to validation auc=0.61", common_by=("Q = 10",)),
    {"full": (*LARGE, "run.rounds=300")},
)
