"""Table 2 in full: the division of the authors' demonstration, and ten rounds with real ciphertexts."""

from __future__ import annotations

from crosshatch.reproduce.judging.rows import Row
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Method, RunSet, Search
from crosshatch.reproduce.recipes.fedbcd.credit import CONFIG, LARGE, METHODS, MINUTE, RUNS
from crosshatch.reproduce.recipes.fedbcd.stays import SEEDS, STEP

# Reading "b": the party without labels has 23 of the 33 columns, and classes are balanced.
B = "reading b"
TARGETS = {"lowest": "auc=0.7", "middle": "auc=0.71", "highest": "auc=0.72"}
DIVISION = (
    "federation.silos=[{name = 'payments', columns = ['BILL_AMT[3-6]', 'PAY_AMT*']}, {name = 'profile', columns = "
    "['LIMIT_BAL', 'SEX', 'EDUCATION', 'MARRIAGE', 'AGE', 'PAY_[0-9]', 'BILL_AMT[12]']}]",
    "data.balance=true",
    "evaluate.targets=['auc=0.72', 'validation_auc=0.72']",
)
READING_B = RunSet(
    "F5b",
    CONFIG,
    tuple(Method(f"{one.name}, {B}", (*one.changes, *DIVISION)) for one in METHODS),
    {"full": SEEDS["full"]},
    "credit_default",
    Search(STEP, (3.0, 10.0, 30.0), "fewest rounds to validation auc=0.72", common_by=(f"Q = 10, {B}",)),
    RUNS.changes,
)

REAL = "ten rounds, real ciphertexts"
CHARGED = "ten rounds, costs alone"
TEN = (*METHODS[-1].changes, STEP.replace("VALUE", "3.0"), "run.rounds=10", "run.stop_at_targets=false")
TEN_ROUNDS = RunSet(
    "F5r",
    CONFIG,
    (Method(REAL, (*TEN, "privacy.ciphertexts=real", "privacy.seconds=")), Method(CHARGED, TEN)),
    {"full": SEEDS["full"]},
    "credit_default",
    changes={"full": LARGE},
)


def of_ten_rounds(runs: Measured) -> list[Row]:
    """Minutes of computing, measured and charged; no rows in a profile without them."""
    found = {name: runs.get(name) for name in (REAL, CHARGED)}
    return [
        Row(name, "computing", tuple(one / MINUTE for one in series.last("computing_seconds")))
        for name, series in found.items()
        if series is not None
    ]
