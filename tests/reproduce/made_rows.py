"""Numbers for the rules of every recipe: in the paper's favour (its own where it has any), contrary ones, and none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from crosshatch.reproduce.all_recipes import RECIPES
from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.papers import number
from crosshatch.reproduce.recipes.fedbcd import fedbcd_fig2, fedbcd_fig3, fedbcd_fig4b, fedbcd_fig5, fedbcd_table1_lr
from crosshatch.reproduce.recipes.fedbcd.credit import NAMES, TARGETS
from crosshatch.reproduce.recipes.fedbcd.halves import LARGE, STEPS, name
from crosshatch.reproduce.recipes.icassp import compounds, ends, icassp_fig3
from crosshatch.reproduce.recipes.mtcd import mtcd_fig2
from crosshatch.reproduce.recipes.mtcd.on_graphs import AGENTS

Numbers = Mapping[tuple[str, str], float]
GRAPHS = ("random graph", "chain")


def rows(numbers: Numbers, seeds: int = 3) -> Rows:
    """The same number for every seed."""
    return Rows(tuple(Row(setting, what, (value,) * seeds) for (setting, what), value in numbers.items()))


def papers(recipe: str, settings: tuple[str, ...], what: str) -> dict[tuple[str, str], float]:
    """The paper's own numbers."""
    found = {(setting, what): number(recipe, setting, what) for setting in settings}
    return {key: value for key, value in found.items() if value is not None}


def methods(recipe: str) -> tuple[str, ...]:
    return tuple(method.name for runs in RECIPES[recipe].sets for method in runs.methods)


def over(names: tuple[str, ...], what: str, value: Callable[[int], float]) -> dict[tuple[str, str], float]:
    """A number for every setting by its place."""
    return {(one, what): value(i) for i, one in enumerate(names)}


def _fig2(fast: float, slow: float) -> Numbers:
    names = methods("fedbcd-fig2")
    found = over(names, fedbcd_fig2.END, lambda i: slow if i == 0 else fast)
    found |= over(names, fedbcd_fig2.HALF, lambda i: fast if i == 0 else slow)
    found |= {(f"FedBCD-s, Q = {q}", fedbcd_fig2.APART): 0.001 if fast > slow else 0.5 for q in (5, 50)}
    steps = {one: (2.0 if "-s" in one else 1.0) for one in names}
    return found | {(one, fedbcd_fig2.SECONDS): value for one, value in steps.items()}


def _transfer(rounds: Mapping[int, float]) -> Numbers:
    return {(name(q), what): rounds[q] for q in STEPS for what in fedbcd_fig3.WHATS.values()}


def _proximal(plain: float, pulled: float, rounds: float) -> Numbers:
    found = {
        (name(q, proximal), fedbcd_fig4b.BEST): pulled if proximal else plain
        for q in LARGE
        for proximal in (False, True)
    }
    found |= {(name(q, proximal), fedbcd_fig4b.WHAT): rounds for q in LARGE for proximal in (False, True)}
    return found | {(name(15), fedbcd_fig4b.WHAT): min(rounds, 10.0) if rounds != inf or plain else inf}


def _parties(five: float, sgd: float) -> Numbers:
    return {(one, fedbcd_fig5.WHAT): five if "Q = 5" in one else sgd for one in methods("fedbcd-fig5")}


def _table2(scale: Callable[[str, str], float]) -> Numbers:
    whats = ("rounds", "computing", "communication", "total")
    return {
        (one, f"{what}, {level} AUC"): scale(one, what) for one in NAMES.values() for what in whats for level in TARGETS
    }


def _ends(names: tuple[str, ...], losses: Callable[[int], float], fall: float) -> Numbers:
    return over(names, ends.LAST, losses) | over(names, ends.FIVE, losses) | over(names, ends.FALL, lambda _: fall)


def _steps(names: tuple[str, ...], losses: Callable[[int], float], rounds: Callable[[int], float]) -> Numbers:
    found = over(names, ends.LAST, losses) | over(names, ends.ROUNDS, rounds)
    return found | over(names, "loss at round 50", losses) | over(names, "loss at round 100", losses)


def _graphs(levels: tuple[str, ...], stcd: Callable[[str], float], dcpa: float) -> Numbers:
    found: dict[tuple[str, str], float] = {}
    for graph in GRAPHS:
        for k, level in enumerate(levels):
            found[f"STCD, {graph}", f"communications to {level}"] = stcd(graph) * 4**k
            found[f"STCD, {graph}", f"iterations to {level}"] = stcd(graph) * 4**k
            found[f"DCPA, {graph}", f"communications to {level}"] = 100 * dcpa * 4**k
            found[f"DCPA, {graph}", f"iterations to {level}"] = dcpa * 4**k
    return found


def _chains(stcd: Callable[[int], float], mtcd: Callable[[int], float]) -> Numbers:
    return {
        (f"{kind}, K = {k}", f"hops to {level}"): hops(k)
        for kind, hops in (("STCD", stcd), ("MTCD", mtcd)) for k in AGENTS for level in ("0.1", "0.01")
    }  # fmt: skip


_LR = tuple(methods("fedbcd-table1-lr"))
_CNN = tuple(methods("fedbcd-table1-cnn"))
_Q = tuple(f"Q = {q}" for q in compounds.STEPS)
_N, _K = methods("icassp-fig2b"), methods("icassp-fig2c")
_BEST = {1: 40.0, 5: 20.0, 10: 10.0, 15: 8.0, 25: 12.0, 50: 20.0, 100: inf}
_TABLE2: dict[tuple[str, str], float] = {}
for _level in TARGETS:
    for _what in ("rounds", "computing", "communication", "total"):
        _TABLE2 |= papers("fedbcd-table2", tuple(NAMES.values()), f"{_what}, {_level} AUC")

FAVOURABLE: dict[str, Numbers] = {
    "fedbcd-table1-lr": papers("fedbcd-table1-lr", _LR, fedbcd_table1_lr.WHAT),
    "fedbcd-table1-cnn": papers("fedbcd-table1-cnn", _CNN, "rounds"),
    "fedbcd-fig2": _fig2(0.84, 0.80),
    "fedbcd-fig3": _transfer(_BEST),
    "fedbcd-fig4a": _transfer(_BEST),
    "fedbcd-fig4b": _proximal(0.80, 0.84, inf),
    "fedbcd-fig5": _parties(10.0, 60.0),
    "fedbcd-table2": _TABLE2,
    "icassp-fig2a": _steps(_Q, lambda i: 1.0 - 0.1 * i if i < 5 else 0.6, lambda i: 100.0 / (i + 1) ** 2),
    "icassp-fig2b": _ends(_N, lambda i: 1.0 + 0.001 * i, 10.0),
    "icassp-fig2c": _ends(_K, lambda i: 1.0 + (0.001 if i < 5 else 1) * i, 10.0),
    "icassp-fig3a": _steps(icassp_fig3.BY_Q, lambda i: 2.0 - 0.4 * i, lambda i: 20.0 / (i + 1) ** 2),
    "icassp-fig3b": _ends(icassp_fig3.BY_K, lambda i: 1.0 + 0.01 * i, 1.0),
    "mtcd-fig2-ridge": _graphs(mtcd_fig2.RIDGE_LEVELS, lambda graph: 10.0 if graph == "chain" else 5.0, 4.0),
    "mtcd-fig2-logistic": _graphs(mtcd_fig2.SPARSE_LEVELS, lambda graph: 10.0 if graph == "chain" else 5.0, 4.0),
    "mtcd-fig3": _chains(lambda k: float(k**2), lambda k: float(k)),
}
CONTRARY: dict[str, Numbers] = {
    "fedbcd-table1-lr": over(_LR, fedbcd_table1_lr.WHAT, lambda i: 50.0 + i),
    "fedbcd-table1-cnn": over(_CNN, "rounds", lambda i: 20.0 + i),
    "fedbcd-fig2": _fig2(0.80, 0.84),
    "fedbcd-fig3": _transfer({q: 40.0 - i for i, q in enumerate(STEPS)}),
    "fedbcd-fig4a": _transfer({q: 40.0 - i for i, q in enumerate(STEPS)}),
    "fedbcd-fig4b": _proximal(0.84, 0.80, 12.0),
    "fedbcd-fig5": {key: value if "K = 17" not in key[0] else 200.0 for key, value in _parties(60.0, 60.0).items()},
    "fedbcd-table2": _table2(lambda one, _: {"FedSGD": 10.0, "Q = 5": 20.0, "Q = 10": 30.0}[one]),
    "icassp-fig2a": _steps(_Q, lambda i: 1.0 + 0.1 * i, lambda i: 100.0 + i),
    "icassp-fig2b": _ends(_N, lambda i: 5.0 - i, 10.0),
    "icassp-fig2c": _ends(_K, lambda i: 1.0 + i if i < 5 else 1.0, 10.0),
    "icassp-fig3a": _steps(icassp_fig3.BY_Q, lambda i: 1.0 + 0.1 * i, lambda i: 20.0 + i),
    "icassp-fig3b": _ends(icassp_fig3.BY_K, lambda i: 1.0 + i, 1.0),
    "mtcd-fig2-ridge": _graphs(mtcd_fig2.RIDGE_LEVELS, lambda _: 500.0, 6.0),
    "mtcd-fig2-logistic": _graphs(mtcd_fig2.SPARSE_LEVELS, lambda _: 500.0, 6.0),
    "mtcd-fig3": _chains(lambda k: 1000.0 / k, lambda k: 2000.0 / k),
}
for _id, _levels in (("mtcd-fig2-ridge", mtcd_fig2.RIDGE_LEVELS), ("mtcd-fig2-logistic", mtcd_fig2.SPARSE_LEVELS)):
    CONTRARY[_id] = {key: (5000.0 if key[0].startswith("STCD") else 10.0) for key in CONTRARY[_id]} | {
        (f"{kind}, random graph", f"iterations to {_levels[-1]}"): 10.0 if kind == "STCD" else 5000.0
        for kind in ("STCD", "DCPA")
    }
UNREACHED: dict[str, Numbers] = {
    recipe: dict.fromkeys(numbers, inf) for recipe, numbers in FAVOURABLE.items()
}  # fmt: skip
