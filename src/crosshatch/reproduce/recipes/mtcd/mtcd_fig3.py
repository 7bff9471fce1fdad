"""MTCD, Figure 3: one token against ten on chains of 20, 40 and 80 agents."""

from __future__ import annotations

from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.judging.rules import Check, below, check, every, falls
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Curves, Recipe
from crosshatch.reproduce.recipes.mtcd.on_graphs import AGENTS, CHAINS

LEVELS = ("0.1", "0.01")


def measure(runs: Measured) -> list[Row]:
    """Hops and communications to both levels."""
    return [
        Row(method.name, f"{what} to {level}", runs.of(method.name).to(f"suboptimality={level}", cost))
        for what, cost in (("hops", "round"), ("communications", "communications"))
        for level in LEVELS
        for method in CHAINS.methods
    ]


def rules(rows: Rows) -> list[Check]:
    hops = {f"{name} {k} {x}": (f"{name}, K = {k}", f"hops to {x}")
            for name in ("STCD", "MTCD") for k in AGENTS for x in LEVELS}  # fmt: skip
    return [
        check("1", "MTCD takes fewer hops than STCD at 0.1 and 0.01 for every K, with every seed", rows, hops,
              lambda n: every(below(n[f"MTCD {k} {x}"], n[f"STCD {k} {x}"]) for k in AGENTS for x in LEVELS),
              main=True, every_seed=True),
        check("2", "the hops of both rise with K", rows, hops,
              lambda n: every(falls([n[f"{name} {k} {x}"] for k in AGENTS[::-1]])
                              for name in ("STCD", "MTCD") for x in LEVELS), main=True),
        check("3", "STCD's hops over MTCD's rise with K", rows, hops,
              lambda n: every(falls([n[f"STCD {k} {x}"] / n[f"MTCD {k} {x}"] for k in AGENTS[::-1]]) for x in LEVELS)),
    ]  # fmt: skip


RECIPE = Recipe(
    "mtcd-fig3", "MTCD", "Figure 3", "suboptimality over hops on chains, one token against ten", (CHAINS,),
    measure, rules,
    tuple(
        Curves(f"{k} agents", "suboptimality", (f"STCD, K = {k}", f"MTCD, K = {k}"), labels=("hops", "suboptimality"),
               logarithmic=(False, True))
        for k in AGENTS
    ),
    4.0,
    ("the made ridge problem; chains; step 1e-5, Q = 20, ten tokens, an average at the server every ten hops",),
    {"seeds": "five; they draw the walks. The paper does not say how many", "iterations": "to 0.01"},
    note="Per communication STCD stays ahead: a hop of MTCD is ten communications, and every tenth adds twenty.",
)  # fmt: skip
