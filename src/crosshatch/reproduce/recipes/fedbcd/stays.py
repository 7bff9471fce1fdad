"""F1 and F4: hospital stays as a table of statistics, logistic regression; several recipes read these runs."""

from __future__ import annotations

from crosshatch.reproduce.recipe import Method, RunSet, Search

CONFIG = """
data = {name = "physionet2012", summaries = true, impute = "mean", indicators = false, clip = 5.0, validation = 0.2}
model = {l2 = 0.001, bias = false, blocks = {B = {bias = true}}}
algorithm = {name = "fedsgd", batch_size = 64}
evaluate = {every = 1, metrics = ["auc"], smooth = 3, train_samples = 1000}
run = {rounds = 400, checkpoint_every = 400}
network = {t_comm = 0.0, t_comp = 1.0}
federation = {silos = []}
"""
# The 17 variables nearest to those of MIMIC-III's benchmark; B has the only bias.
_A = ("DiasABP", "FiO2", "Glucose", "HR", "MAP", "NIDiasABP", "NIMAP", "NISysABP")
_B = ("BUN", "GCS", "RespRate", "SaO2", "SysABP", "Temp", "Urine", "Weight", "pH")
LOWER, HIGHER = "auc=0.8", "auc=0.82"
FULL = {"full": ("run.rounds=1000", "evaluate.train_samples=")}
STEP = "algorithm.step_size={kind = 'inverse_sqrt', value = VALUE}"
VALUES = (0.003, 0.01, 0.03, 0.1)
CHOOSE = "fewest rounds to validation auc=0.82"
SEEDS = {"quick": (31, 32, 33), "full": (31, 32, 33, 34, 35)}


def silos(parties: int) -> str:
    """The setting that gives so many parties whole variables: 2, 5 or 17."""
    if parties == 2:
        parts = [list(_A), list(_B)]
    else:
        every = [*_A, *_B]
        parts = [every[i * 17 // parties : (i + 1) * 17 // parties] for i in range(parties)]
    names = ["B" if i == parties - 1 else f"A{i}" if parties > 2 else "A" for i in range(parties)]
    held = (f"[{', '.join(repr(variable + '.*') for variable in part)}]" for part in parts)
    listed = ", ".join(f"{{name = '{name}', columns = {one}}}" for name, one in zip(names, held, strict=True))
    return f"federation.silos=[{listed}]"


def fedbcd(steps: int, order: str = "parallel") -> tuple[str, ...]:
    return ("algorithm.name=fedbcd", f"algorithm.local_steps={steps}", f"algorithm.order={order}")


TWO = RunSet(
    "F1",
    CONFIG,
    (
        Method("FedSGD", (silos(2),)),
        *(Method(f"FedBCD-p, Q = {q}", (silos(2), *fedbcd(q))) for q in (5, 50)),
        *(Method(f"FedBCD-s, Q = {q}", (silos(2), *fedbcd(q, "sequential"))) for q in (1, 5, 50)),
    ),
    SEEDS,
    "physionet2012",
    Search(STEP, VALUES, CHOOSE, common_by=("FedBCD-p, Q = 50", "FedBCD-s, Q = 50")),
    FULL,
)
MANY = RunSet(
    "F4",
    CONFIG,
    tuple(
        Method(f"{name}, K = {k}", (silos(k), *changes))
        for k in (2, 5, 17)
        for name, changes in (
            ("FedSGD", ()),
            ("FedBCD-p, Q = 5", fedbcd(5)),
            ("FedBCD-s, Q = 5", fedbcd(5, "sequential")),
        )
    ),
    SEEDS,
    "physionet2012",
    Search(STEP, VALUES, CHOOSE, common_by=("FedBCD-p, Q = 5, K = 17", "FedBCD-s, Q = 5, K = 17")),
    FULL,
)
