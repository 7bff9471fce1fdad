"""Parties that evaluate by themselves find what the simulator finds, in every federation of the suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from crosshatch.algorithms.tdcd import TDCD
from crosshatch.parties.evaluation.held_out import held_out
from crosshatch.parties.evaluation.text import Found, Scored, Verdict
from crosshatch.parties.evaluation.with_evaluation import EvaluationPlan
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.federations import FederationCase, all_cases, make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.transfer_federations import transfer_cases
from tests.support.held_out_rows import with_held_out

CASES = {case.name: case for case in (*all_cases(), *transfer_cases()) if not getattr(case.algorithm, "pairs", False)}
ROUNDS = 4


@dataclass
class Notes:
    """A judge who writes everything down; `best` are the rounds it calls the best so far, `last` the one it ends at."""

    best: tuple[int, ...] = ()
    last: int = ROUNDS
    seen: dict[int, Found] = field(default_factory=dict)
    closed: dict[int, Scored] = field(default_factory=dict)

    def see(self, found: Found, done: int) -> Verdict:
        self.seen[done] = found
        verdict = Verdict.BEST if done in self.best else Verdict.GO_ON
        return verdict | (Verdict.END if done == self.last else Verdict.GO_ON)

    def close(self, scored: Scored, done: int) -> None:
        self.closed[done] = scored

    def state(self) -> dict[str, Any]:
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        pass


def run(case: FederationCase, notes: Notes, *, train_samples: int | None = None) -> tuple[PartyByParty, Simulator]:
    data = with_held_out(case.data)
    plan = replace(EvaluationPlan.of(data, 2, ROUNDS, notes), train_samples=train_samples)
    engine = PartyByParty(data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs, evaluation=plan)
    simulator = Simulator(data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs, precision=torch.float64)
    return engine, simulator


def check(found: Found, simulator: Simulator, samples: int | None = None) -> None:
    assert found.objective == pytest.approx(simulator.objective(samples), rel=1e-10)
    assert found.zero_objective == pytest.approx(simulator.zero_objective(samples), rel=1e-10)
    for of in ("validation", "test"):
        scores, y = found.held_out.part(of)
        expected = simulator.scores([silo.rows(of) for silo in simulator.data.silos])
        torch.testing.assert_close(scores, expected, rtol=1e-10, atol=1e-10)
        assert torch.equal(y, simulator.data.labels(of))


@pytest.mark.parametrize("name", CASES)
def test_found_as_by_the_simulator_and_training_is_not_disturbed(name: str) -> None:
    case, notes = CASES[name], Notes(best=(0, 2))
    engine, simulator = run(case, notes, train_samples=11)
    plain = PartyByParty(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)
    for done in range(1, ROUNDS + 1):
        engine.run_round()
        plain.run_round()
        if done == 1:
            check(notes.seen[0], simulator, 11)
        simulator.run_round()
        if done % 2 == 0:
            check(notes.seen[done], simulator, 11)
    assert all(map(torch.equal, engine.weights, plain.weights))
    assert engine.meter == plain.meter
    assert all(party.ended for party in engine.parties.values())
    assert torch.equal(notes.closed[ROUNDS].scores, notes.seen[2].held_out.scores)  # of the best model


def test_a_verdict_ends_the_run_for_everybody_and_the_best_blocks_are_kept() -> None:
    case, notes = CASES["TDCD"], Notes(best=(0,), last=2)
    engine, simulator = run(case, notes)
    for _ in range(2):
        engine.run_round()
    assert all(party.ended for party in engine.parties.values())
    assert set(notes.seen) == {0, 2}
    hubs = [party for name, party in engine.parties.items() if name.startswith("hub")]
    for party, first in zip(hubs, simulator.weights, strict=True):
        assert party.evaluation is not None
        assert torch.equal(party.evaluation.kept.mine, first)
    check(notes.seen[0], simulator)
    assert torch.equal(notes.closed[2].scores, notes.seen[0].held_out.scores)


def test_test_rows_are_those_of_their_clients_where_they_are_divided() -> None:
    data = with_held_out(CASES["TDCD"].data)
    owners = np.array([1, 0, 1, -1, 0, 0, 1, 1, 0])
    data = replace(data, silos=(replace(data.silos[0], test_owners=owners), *data.silos[1:]))
    dealt = held_out(data).silos[0].owners
    assert dealt[:7].tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert dealt[7:][owners >= 0].tolist() == owners[owners >= 0].tolist()
    assert dealt[7:][3] in (0, 1)


def test_dropout_is_off_in_evaluations_and_on_in_training() -> None:
    def block(_: int) -> nn.Module:
        return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))

    case = FederationCase("dropout", make_data((2, 2), samples=24), make_task(2, block=block), TDCD(2, 0.1, 6))
    notes = Notes()
    engine, simulator = run(case, notes)
    for done in range(1, ROUNDS + 1):
        engine.run_round()
        simulator.run_round()
        if done % 2 == 0:
            check(notes.seen[done], simulator)
