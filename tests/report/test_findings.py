"""Titles claim what the numbers say."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.report.compare import find_arrival
from crosshatch.report.findings import AXES, chosen_targets, curve_title, headline, level_all_reach, target_finding
from crosshatch.report.measures import parse_target
from crosshatch.report.runs import Run
from crosshatch.report.summary_file import Diverged, FederationShape, SiloReport, Summary

ROUND, BYTES, SECONDS = AXES


def run_of(
    name: str,
    auc: list[float],
    cost: int = 1000,
    algorithm: str = "",
    targets: tuple[str, ...] = (),
    clients: int = 2,
    diverged: int | None = None,
    labels: str = "",
    data: str = "",
    tiers: str = "",
) -> Run:
    """A run in memory: round i costs `cost` bytes and two seconds more; two silos share the clients."""
    rows = tuple({"round": i, "bytes": cost * i, "sim_seconds": 2 * i, "auc": v} for i, v in enumerate(auc))
    shares = {"a": clients // 2, "b": clients - clients // 2}
    silos = (SiloReport(silo, share, holds_labels=silo in labels) for silo, share in shares.items())
    federation = FederationShape(tuple(silos), tiers)
    facts = Summary(
        name=name,
        algorithm=algorithm,
        targets=dict.fromkeys(targets),
        federation=federation,
        diverged=None if diverged is None else Diverged(diverged, "the loss grew"),
    )
    config = {"data": {"name": data}} if data else {}
    return Run(name, Path(name), config, "", rows, {"name": name}, facts)


FAST = run_of("TDCD", [0.5, 0.7, 0.8], cost=1000)
SLOW = run_of("FedSGD", [0.5, 0.5, 0.6, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.76], cost=2000)
NEVER = run_of("JFL", [0.5, 0.6])
CENTRAL = run_of("central", [0.5, 0.9], cost=0, algorithm="central")
AUC75 = parse_target("auc=0.75")


ALIKE = "With the same data, clients and labels"


def test_cheapest_against_dearest() -> None:
    # TDCD arrives in round 2 with 2 kB, FedSGD in round 9 with 18 kB
    runs = [SLOW, FAST, CENTRAL]
    assert target_finding(runs, AUC75, BYTES) == "TDCD reaches AUC 0.75 with 2 kB, 9x less than FedSGD"
    assert target_finding(runs, AUC75, ROUND) == "TDCD reaches AUC 0.75 in 2 rounds, 4x fewer than FedSGD"
    assert target_finding(runs, AUC75, SECONDS) == "TDCD reaches AUC 0.75 in 4 s simulated, 4x faster than FedSGD"


def test_only_runs_with_as_many_clients_are_compared() -> None:
    q1 = run_of("tdcd-q1", [0.5] * 10 + [0.8], cost=10_000, clients=20)
    q10 = run_of("tdcd", [0.5, 0.8], cost=10_000, clients=20)
    assert target_finding([SLOW, FAST, q1, q10, CENTRAL], AUC75, BYTES) == (
        f"{ALIKE} TDCD reaches AUC 0.75 with 2 kB, 9x less than FedSGD"
    )
    assert target_finding([SLOW, FAST, q10], AUC75, BYTES) == (
        f"{ALIKE} TDCD reaches AUC 0.75 with 2 kB, 9x less than FedSGD"
    )
    apart = "2 curves reach AUC 0.75, no two of them with the same data, clients and labels"
    assert target_finding([FAST, q10], AUC75, ROUND) == apart
    assert target_finding([FAST, NEVER, q10], AUC75, ROUND) == f"{apart}; JFL does not"


def test_only_runs_with_the_labels_in_the_same_place_are_compared() -> None:
    shared = [run_of("q1", [0.5] * 8 + [0.8], labels="ab"), run_of("q5", [0.5, 0.5, 0.8], labels="ab")]
    held = [run_of("held-q1", [0.5] * 9 + [0.8], labels="b"), run_of("held-q5", [0.5, 0.5, 0.5, 0.8], labels="b")]
    assert target_finding([*shared, *held], AUC75, ROUND) == (
        f"{ALIKE} q5 reaches AUC 0.75 in 2 rounds, 4x fewer than q1"
    )
    assert target_finding([shared[0], held[0]], AUC75, ROUND) == (
        "2 curves reach AUC 0.75, no two of them with the same data, clients and labels"
    )
    third = run_of("held-q9", [0.5, 0.8], labels="b")  # the setting of most runs is spoken of
    assert target_finding([*shared, *held, third], AUC75, ROUND).startswith(f"{ALIKE} held-q9 reaches AUC")


def test_only_runs_on_the_same_data_are_compared() -> None:
    wine = [run_of("w1", [0.5] * 8 + [0.8], data="wine"), run_of("w5", [0.5, 0.5, 0.8], data="wine")]
    digits = [run_of("d1", [0.5] * 6 + [0.8], data="digits"), run_of("d5", [0.5, 0.8], data="digits")]
    assert target_finding([*wine, *digits], AUC75, ROUND) == (
        f"{ALIKE} w5 reaches AUC 0.75 in 2 rounds, 4x fewer than w1"
    )
    # the same set, of which some runs took other rows
    half = [replace(run, name=f"{run.name}-half", config={"data": {"name": "wine", "rows": 9}}) for run in wine]
    assert target_finding([*wine, *half], AUC75, ROUND) == (
        f"{ALIKE} w5 reaches AUC 0.75 in 2 rounds, 4x fewer than w1"
    )


def test_the_rival_is_a_baseline_where_there_is_one() -> None:
    best, worst = run_of("q10", [0.5, 0.8], tiers="V(10) H(10)"), run_of("bad", [0.5] * 30 + [0.8], tiers="V(9)")
    sgd = run_of("sgd", [0.5] * 4 + [0.8], algorithm="fedsgd")
    q1, slower = (run_of(name, [0.5] * n + [0.8], tiers="V(1) H(1)") for name, n in (("q1", 3), ("q1-slow", 9)))
    assert target_finding([best, worst], AUC75, ROUND).endswith("in 1 round, 30x fewer than bad")
    assert target_finding([best, worst, slower, q1], AUC75, ROUND).endswith("in 1 round, 3x fewer than q1")
    assert target_finding([best, worst, slower, q1, sgd], AUC75, ROUND).endswith("in 1 round, 4x fewer than sgd")
    # where the baseline itself is the cheapest, or ties, the dearest is the rival
    assert target_finding([sgd, worst], AUC75, ROUND) == "sgd reaches AUC 0.75 in 4 rounds, 8x fewer than bad"
    low = run_of("low", [0.5, 0.5], algorithm="fedsgd")
    assert target_finding([best, NEVER, low], AUC75, ROUND).endswith("; 2 curves do not, low among them")


def test_settings_with_a_baseline_come_first() -> None:
    plain = [run_of(f"c{n}-{k}", [0.5] * k + [0.8], clients=n) for n in (2, 4) for k in (2, 4)]
    based = [run_of("sgd", [0.5] * 9 + [0.8], algorithm="fedsgd", clients=8), run_of("q5", [0.5, 0.8], clients=8)]
    assert target_finding([*plain, *based], AUC75, ROUND) == (
        f"{ALIKE} q5 reaches AUC 0.75 in 1 round, 9x fewer than sgd"
    )


def test_those_that_do_not_arrive_are_named() -> None:
    assert target_finding([FAST, NEVER], AUC75, BYTES) == "TDCD reaches AUC 0.75 with 2 kB; JFL does not"
    assert target_finding([FAST, NEVER, NEVER], AUC75, BYTES).endswith("; 2 curves do not")
    assert target_finding([NEVER], AUC75, BYTES) == "JFL does not reach AUC 0.75; it comes closest with 0.6"
    low = run_of("low", [0.4])
    assert target_finding([low, NEVER], AUC75, BYTES) == "No curve reaches AUC 0.75; JFL comes closest with 0.6"


def test_equal_costs_are_not_a_victory() -> None:
    twin = run_of("twin", [0.5, 0.7, 0.8], cost=1010)
    assert target_finding([FAST, twin], AUC75, BYTES) == "All curves reach AUC 0.75 with 2.02 kB, give or take 5%"
    assert target_finding([FAST, twin], AUC75, ROUND) == "All curves reach AUC 0.75 in 2 rounds"


def test_a_cost_of_nothing_gives_no_factor() -> None:
    ready = run_of("ready", [0.9])
    assert target_finding([ready, SLOW], AUC75, BYTES) == "ready reaches AUC 0.75 with 0 B"


def test_without_a_target_titles_and_headlines_say_what_there_is() -> None:
    assert curve_title([FAST], "auc", ROUND, ()) == curve_title([FAST, LOST], "auc", ROUND, ()) == "AUC against round"
    assert curve_title([FAST, SLOW], "auc", BYTES, [AUC75]) == target_finding([FAST, SLOW], AUC75, BYTES)
    assert headline([FAST], ()) == "AUC of TDCD ends at 0.8"
    assert headline([run_of("bad", [math.nan])], ()) == "AUC of bad ends at not a number"
    assert headline([FAST, SLOW], ()) == "TDCD, FedSGD"


@given(st.lists(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5), min_size=2, max_size=5))
def test_level_all_reach_is_reached_by_all(curves: list[list[float]]) -> None:
    runs = [run_of(str(i), values) for i, values in enumerate(curves)]
    level = level_all_reach(runs, "auc")
    if any(values[0] >= min(max(each) for each in curves) for values in curves):
        assert level is None  # one was there before its first round
        return
    assert level is not None
    assert all(find_arrival(run, level) is not None for run in runs)
    worst = min(max(values) for values in curves)
    assert level.value == pytest.approx(worst, rel=0.011)


def test_targets_given_come_first_then_those_of_the_runs() -> None:
    run = run_of("a", [0.5, 0.8], targets=("auc>=0.6", "lift>=2", "nonsense"))
    assert [target.label for target in chosen_targets([run], [AUC75])] == ["auc>=0.75", "auc>=0.6"]
    assert chosen_targets([FAST]) == ()
    assert [target.label for target in chosen_targets([FAST, SLOW])] == ["auc>=0.76"]


# The cheapest by far, and the closest: yet it is called neither.
LOST = run_of("lost", [0.5, 0.99, 0.1], cost=1, diverged=2)


def test_a_run_that_diverged_is_never_the_best() -> None:
    assert target_finding([SLOW, FAST, LOST], AUC75, BYTES) == (
        "TDCD reaches AUC 0.75 with 2 kB, 9x less than FedSGD; lost diverged"
    )
    assert target_finding([FAST, FAST, LOST], AUC75, ROUND) == "2 curves reach AUC 0.75 in 2 rounds; lost diverged"
    assert target_finding([FAST, LOST, LOST], AUC75, BYTES) == "TDCD reaches AUC 0.75 with 2 kB; 2 others diverged"
    low = parse_target("auc=0.995")
    assert target_finding([FAST, SLOW, LOST], low, BYTES) == (
        "No curve reaches AUC 0.995; TDCD comes closest with 0.8; lost diverged"
    )


def test_only_runs_that_diverged() -> None:
    assert target_finding([LOST], AUC75, BYTES) == "lost diverged at round 2"
    assert target_finding([LOST, LOST], AUC75, BYTES) == "All diverged"
    assert headline([LOST], ()) == "lost diverged at round 2"
    assert headline([LOST, LOST], ()) == "All diverged"


def test_a_run_that_diverged_sets_no_level() -> None:
    early = run_of("early", [0.5, 0.51], diverged=1)
    level = level_all_reach([FAST, SLOW, early], "auc")
    assert level is not None
    assert level.value == 0.76
    assert level_all_reach([FAST, early], "auc") is None
