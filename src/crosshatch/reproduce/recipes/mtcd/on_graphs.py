"""M1 to M3: STCD, MTCD and DCPA on graphs; suboptimality is (f - f*) / (f(0) - f*)."""

from __future__ import annotations

from crosshatch.reproduce.recipe import PROFILES, Method, RunSet, Search
from crosshatch.reproduce.recipes.fedbcd.stays import SEEDS

RIDGE = """
data = {name = "mtcd_ridge", standardise = false}
federation = {silos = 20}
model = {bias = false, l2 = 10.0}
algorithm = {name = "stcd", local_steps = 20, step_size = 1e-5}
evaluate = {every = 20, metrics = ["suboptimality"], targets = ["suboptimality=0.001"], test_samples = 1}
run = {rounds = 16000, checkpoint_every = 4000, precision = "float64", stop_at_targets = true}
"""
SPARSE = """
data = {name = "madelon"}
federation = {silos = 20}
model = {bias = false, l1 = 20.0}
algorithm = {name = "stcd", local_steps = 30, step_size = "auto"}
evaluate = {every = 20, metrics = ["suboptimality"], targets = ["suboptimality=0.01"], test_samples = 1}
run = {rounds = 8000, checkpoint_every = 4000, precision = "float64", stop_at_targets = true}
"""
RANDOM, CHAIN = "algorithm.graph={kind = 'connectivity', ratio = 0.4}", "algorithm.graph={kind = 'path'}"
DCPA = ("algorithm.name=dcpa", "algorithm.local_steps=", "evaluate.every=10")
STEP = "algorithm.step_size=VALUE"
PAPERS_STEPS = ("algorithm.dual_step=0.0003", "algorithm.consensus_step=0.03", "run.rounds=1000", "evaluate.every=50")
STCD_RIDGE = RunSet(
    "M1",
    RIDGE,
    (Method("STCD, random graph", (RANDOM,)), Method("STCD, chain", (CHAIN,))),
    SEEDS,
)
DCPA_RIDGE = RunSet(
    "M1, DCPA",
    RIDGE,
    (
        Method("DCPA, random graph", (*DCPA, RANDOM, "run.rounds=1000")),
        Method("DCPA, chain", (*DCPA, CHAIN, "run.rounds=1000")),
        Method("DCPA, random graph, the paper's steps", (*DCPA, RANDOM, *PAPERS_STEPS), (0.01,)),
    ),
    SEEDS,
    search=Search(STEP, (0.0003, 0.001, 0.003), "fewest rounds to suboptimality=0.01", widen=1),
)
STCD_SPARSE = RunSet(
    "M2",
    SPARSE,
    (Method("STCD, random graph", (RANDOM,)), Method("STCD, chain", (CHAIN,))),
    SEEDS,
    "madelon",
)
DCPA_SPARSE = RunSet(
    "M2, DCPA",
    SPARSE,
    (
        Method("DCPA, random graph", (*DCPA, RANDOM, "run.rounds=1500")),
        Method("DCPA, chain", (*DCPA, CHAIN, "run.rounds=1500")),
    ),
    SEEDS,
    "madelon",
    Search(STEP, (0.0003, 0.001, 0.003), "fewest rounds to suboptimality=0.1", widen=1),
)
AGENTS = (20, 40, 80)
CHAINS = RunSet(
    "M3",
    RIDGE,
    tuple(
        Method(f"{name}, K = {k}", (*changes, CHAIN, f"federation.silos={k}"))
        for k in AGENTS
        for name, changes in (
            ("STCD", ("run.rounds=80000",)),
            ("MTCD", ("algorithm.name=mtcd", "algorithm.tokens=10", "algorithm.hops_between_averages=10")),
        )
    ),
    dict.fromkeys(PROFILES, (31, 32, 33, 34, 35)),
    changes=dict.fromkeys(PROFILES, ("evaluate.targets=['suboptimality=0.01']", "evaluate.every=10")),
)
