"""Several horizontal tiers below the vertical one: against a naive loop, where they collapse, and what they send."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import parse_codec
from crosshatch.errors import ConfigError
from crosshatch.network import ConstantNetwork
from crosshatch.topology import Topology
from tests.equivalence.federations import ROUNDS, Case, assert_same, cases
from tests.equivalence.naive import Ids, Model, gradient_step, local_objective
from tests.simulator.listen import listen, metered, really_encoded
from tests.simulator.small import small

# Branches, and tiers with two or three horizontal ones below the vertical one.
FORMS = (
    ((2,), "V(4) H(2) H(1)"),
    ((2,), "V(4) H(4) H(2)"),
    ((2, 2), "V(4) H(4) H(2) H(1)"),
    ((3, 1), "V(4) H(2) H(2) H(1)"),
)
WEIGHTS = ("equal", "samples", "at_work")


def branched(case: Case, branches: tuple[int, ...]) -> Case:
    return replace(case, data=replace(case.data, branches=branches))


def settings_of(case: Case) -> dict[str, Any]:
    return {"step_size": case.step_size, "batch_size": case.batch_size}


def _known(frozen: list[Tensor], places: Ids) -> Callable[[int], Tensor]:
    return lambda silo: frozen[silo][places]


def naive(case: Case, branches: tuple[int, ...], tiers: str, weights: str) -> list[Tensor]:
    """A tree of nodes: every client keeps its own weights, each average is over the clients below a node."""
    below = Topology.parse(tiers).below
    steps = Topology.parse(tiers).tiers[0].interval
    hubs = Model.of(case.task)
    for r in range(ROUNDS):
        ids = case.ids(r, 0)
        frozen = hubs.embed(case, ids)
        after = copy.deepcopy(hubs)
        for j, silo in enumerate(case.data.silos):
            samples = {c: ids[silo.owners[ids] == c] for c in range(silo.clients)}
            held = np.bincount(silo.owners, minlength=silo.clients)
            share = {
                "equal": np.ones(silo.clients),
                "samples": held.astype(float),
                "at_work": np.array([float(len(samples[c]) > 0) for c in range(silo.clients)]),
            }[weights]
            mine = {c: hubs.copy_for(j) for c in range(silo.clients)}
            for t in range(1, steps + 1):
                for c, model in mine.items():
                    if len(samples[c]):
                        places = np.flatnonzero(silo.owners[ids] == c)
                        objective = local_objective(case, model, j, samples[c], _known(frozen, places), hubs)
                        gradient_step(case, model, model.trained_by(j), objective, case.step_size(r))
                depth = next((d for d, tier in enumerate(below) if t % tier.interval == 0), None)
                if depth is None:
                    continue
                count = int(np.prod(branches[:depth]))
                for node in range(count):
                    members = [c for c in mine if c * count // silo.clients == node]
                    total = sum(share[c] for c in members)
                    if total == 0:
                        continue
                    with torch.no_grad():
                        mean = [
                            sum(share[c] / total * p for c, p in zip(members, column, strict=True))
                            for column in zip(*(mine[c].trained_by(j) for c in members), strict=True)
                        ]
                        for c in members:
                            for parameter, value in zip(mine[c].trained_by(j), mean, strict=True):
                                parameter.copy_(value)
            with torch.no_grad():
                for parameter, value in zip(after.trained_by(j), mine[0].trained_by(j), strict=True):
                    parameter.copy_(value)
        hubs = after
    return hubs.flat()


@settings(max_examples=20)
@given(
    case=cases(clients=(4, 6), kinds=("linear", "mlp"), l1=False),
    form=st.sampled_from(FORMS),
    weights=st.sampled_from(WEIGHTS),
)
def test_every_tier_averages_at_its_own_interval(case: Case, form: tuple[tuple[int, ...], str], weights: str) -> None:
    branches, tiers = form
    run = branched(case, branches).simulate(Tiered(tiers, weights=weights, **settings_of(case)))  # type: ignore[arg-type]
    assert_same(run.weights, naive(case, branches, tiers, weights))


@settings(max_examples=15)
@given(case=cases(clients=(2, 5), kinds=("linear", "mlp")))
def test_branches_that_never_average_alone_are_none(case: Case) -> None:
    """`V(3) H(3) H(3)` is TDCD: the average of averages is the average."""
    run = branched(case, (2,)).simulate(Tiered("V(3) H(3) H(3)", **settings_of(case)))
    tdcd = case.simulate(TDCD(3, **settings_of(case)))
    assert_same(run.weights, tdcd.weights)


@settings(max_examples=15)
@given(case=cases(silos=(1, 1), clients=(2, 5), kinds=("linear",)))
def test_one_client_a_branch_goes_on_alone(case: Case) -> None:
    """A branch with one client has nothing to average: its tier changes nothing."""
    clients = case.data.silos[0].clients
    run = branched(case, (clients,)).simulate(Tiered("V(4) H(4) H(1)", **settings_of(case)))
    assert_same(run.weights, case.simulate(Tiered("V(4) H(4)", **settings_of(case))).weights)


@settings(max_examples=15)
@given(case=cases(clients=(4, 6), kinds=("linear",)), form=st.sampled_from(FORMS))
def test_bytes_are_those_really_encoded(case: Case, form: tuple[tuple[int, ...], str]) -> None:
    branches, tiers = form
    heard = listen(branched(case, branches), Tiered(tiers, **settings_of(case)), rounds=2)
    assert metered(heard.simulator) == really_encoded(heard.messages)


def test_a_round_takes_its_legs_and_steps() -> None:
    """Down two legs and up two at both ends, half a round trip each; a branch's own average is two legs of one."""
    case = small(clients=(4, 4))
    run = branched(case, (2,)).prepare(Tiered("V(4) H(4) H(2)", 0.1), network=ConstantNetwork(t_comm=10.0, t_comp=1.0))
    run.run_round()
    plain = case.prepare(Tiered("V(4) H(4)", 0.1), network=ConstantNetwork(t_comm=10.0, t_comp=1.0))
    plain.run_round()
    assert plain.seconds == 3 * 10 + 4
    assert run.seconds == plain.seconds + 2 * 5 + 2 * 5


def test_a_codec_that_keeps_everything_changes_nothing() -> None:
    case = branched(small(clients=(4, 4)), (2,))
    every = {name: parse_codec("topk(1.0)") for name in ("average", "broadcast")}
    algorithm = Tiered("V(4) H(2) H(1)", 0.1)
    assert_same(case.simulate(algorithm, codecs=every).weights, case.simulate(algorithm).weights)


def test_branches_need_as_many_tiers_and_clients() -> None:
    case = small(clients=(4, 4))
    with pytest.raises(ConfigError, match="has 0: give 1 number above 1"):
        case.prepare(Tiered("V(4) H(2) H(1)"))
    with pytest.raises(ConfigError, match="has 1: leave it out"):
        branched(case, (2,)).prepare(TDCD(4))
    with pytest.raises(ConfigError, match="every branch needs one"):
        branched(case, (7,)).prepare(Tiered("V(4) H(2) H(1)"))
