"""Titles claim what the numbers say."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.report.compare import find_arrival
from crosshatch.report.findings import AXES, chosen_targets, curve_title, headline, level_all_reach, target_finding
from crosshatch.report.measures import parse_target
from crosshatch.report.runs import Run
from crosshatch.report.summary_file import Diverged, FederationShape, SiloShape, Summary

ROUND, BYTES, SECONDS = AXES


def run_of(
    name: str,
    auc: list[float],
    cost: int = 1000,
    algorithm: str = "",
    targets: tuple[str, ...] = (),
    clients: int = 2,
    diverged: int | None = None,
) -> Run:
    """A run in memory: round i costs `cost` bytes and two seconds more; two silos share the clients."""
    rows = tuple({"round": i, "bytes": cost * i, "sim_seconds": 2 * i, "auc": v} for i, v in enumerate(auc))
    federation = FederationShape((SiloShape("a", clients // 2), SiloShape("b", clients - clients // 2)))
    facts = Summary(
        name=name,
        algorithm=algorithm,
        targets=dict.fromkeys(targets),
        federation=federation,
        diverged=None if diverged is None else Diverged(diverged, "the loss grew"),
    )
    return Run(name, Path(name), {}, "", rows, {"name": name}, facts)


FAST = run_of("TDCD", [0.5, 0.7, 0.8], cost=1000)
SLOW = run_of("FedSGD", [0.5, 0.5, 0.6, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.76], cost=2000)
NEVER = run_of("JFL", [0.5, 0.6])
CENTRAL = run_of("central", [0.5, 0.9], cost=0, algorithm="central")
AUC75 = parse_target("auc=0.75")


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
        "With 2 clients TDCD reaches AUC 0.75 with 2 kB, 9x less than FedSGD; "
        "with 20 clients tdcd reaches it with 10 kB, 10x less than tdcd-q1"
    )
    assert target_finding([SLOW, FAST, q10], AUC75, BYTES) == (
        "With 2 clients TDCD reaches AUC 0.75 with 2 kB, 9x less than FedSGD"
    )
    assert target_finding([FAST, q10], AUC75, ROUND) == "2 runs reach AUC 0.75, no two of them with as many clients"
    assert target_finding([FAST, NEVER, q10], AUC75, ROUND).endswith("with as many clients; JFL does not")


def test_those_that_do_not_arrive_are_named() -> None:
    assert target_finding([FAST, NEVER], AUC75, BYTES) == "TDCD reaches AUC 0.75 with 2 kB; JFL does not"
    assert target_finding([FAST, NEVER, NEVER], AUC75, BYTES).endswith("; 2 runs do not")
    assert target_finding([NEVER], AUC75, BYTES) == "JFL does not reach AUC 0.75; its best is 0.6"
    low = run_of("low", [0.4])
    assert target_finding([low, NEVER], AUC75, BYTES) == "No run reaches AUC 0.75; JFL comes closest with 0.6"


def test_equal_costs_are_not_a_victory() -> None:
    twin = run_of("twin", [0.5, 0.7, 0.8], cost=1010)
    assert target_finding([FAST, twin], AUC75, BYTES) == "All runs reach AUC 0.75 with 2.02 kB, give or take 5%"
    assert target_finding([FAST, twin], AUC75, ROUND) == "All runs reach AUC 0.75 in 2 rounds"


def test_a_cost_of_nothing_gives_no_factor() -> None:
    ready = run_of("ready", [0.9])
    assert target_finding([ready, SLOW], AUC75, BYTES) == "ready reaches AUC 0.75 with 0 B"


def test_single_run_tells_its_course() -> None:
    assert curve_title([FAST], "auc", ROUND, ()) == "AUC of TDCD rises from 0.5 to 0.8 in 2 rounds"
    assert headline([FAST], ()) == "AUC of TDCD rises from 0.5 to 0.8 with 2 kB"
    assert headline([CENTRAL], ()) == "AUC of central rises from 0.5 to 0.9 in 1 round"
    assert curve_title([run_of("flat", [0.5, 0.5])], "auc", ROUND, ()) == "AUC of flat stays at 0.5"
    assert curve_title([run_of("one", [0.5])], "auc", ROUND, ()) == "AUC of one is 0.5 at its only evaluation"
    assert curve_title([run_of("bad", [math.nan])], "auc", ROUND, ()) == "AUC of bad was never finite"


@given(st.lists(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5), min_size=2, max_size=5))
def test_level_all_reach_is_reached_by_all(curves: list[list[float]]) -> None:
    runs = [run_of(str(i), values) for i, values in enumerate(curves)]
    level = level_all_reach(runs, "auc")
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
    assert target_finding([FAST, FAST, LOST], AUC75, ROUND) == "2 runs reach AUC 0.75 in 2 rounds; lost diverged"
    assert target_finding([FAST, LOST, LOST], AUC75, BYTES) == "TDCD reaches AUC 0.75 with 2 kB; 2 runs diverged"
    low = parse_target("auc=0.995")
    assert target_finding([FAST, SLOW, LOST], low, BYTES) == (
        "No run reaches AUC 0.995; TDCD comes closest with 0.8; lost diverged"
    )


def test_only_runs_that_diverged() -> None:
    assert target_finding([LOST], AUC75, BYTES) == "lost diverged at round 2"
    assert target_finding([LOST, LOST], AUC75, BYTES) == "All runs diverged"
    assert curve_title([LOST], "auc", ROUND, ()) == (
        "lost diverged at round 2: AUC of lost falls from 0.5 to 0.1 in 2 rounds"
    )
    assert curve_title([LOST, LOST], "auc", ROUND, ()) == headline([LOST, LOST], ()) == "All runs diverged"


def test_a_run_that_diverged_sets_no_level() -> None:
    early = run_of("early", [0.5, 0.51], diverged=1)
    level = level_all_reach([FAST, SLOW, early], "auc")
    assert level is not None
    assert level.value == 0.76
    assert level_all_reach([FAST, early], "auc") is None
    assert curve_title([FAST, early], "auc", ROUND, ()) == (
        "AUC of TDCD rises from 0.5 to 0.8 in 2 rounds; early diverged"
    )
