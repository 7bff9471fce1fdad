"""Every value of every case survives pickling at every point of a round, in either engine, with nothing kept beside."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from crosshatch.algorithms.tdcd import TDCD
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.vertical import embedding
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.testing.check_values import Copying, check_values, same_value
from crosshatch.testing.federations import all_cases, make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.transfer_federations import transfer_cases

CASES = {case.name: case for case in (*all_cases(), *transfer_cases())}


@pytest.mark.parametrize("name", CASES)
def test_values_are_data(name: str) -> None:
    assert check_values(CASES[name]) <= 1e-12


class CopiedText:
    """A party's text, whose federation is told, and tells, copies that went through bytes."""

    def __init__(self, text: Any) -> None:
        self.text = text

    def __getattr__(self, name: str) -> Any:
        return getattr(self.text, name)

    def run_round(self, fed: Any, *values: Any) -> Any:
        """A round of the text itself."""
        return self.text.run_round(Copying(fed, lambda: None), *values)


@pytest.mark.parametrize("name", CASES)
def test_values_of_parties_are_data(name: str) -> None:
    case = CASES[name]
    plain, copying = (
        PartyByParty(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs) for _ in range(2)
    )
    for party in copying.parties.values():
        party.text = CopiedText(party.text)
    for engine in (plain, copying):
        for _ in range(2):
            engine.run_round()
    assert all(map(torch.equal, plain.weights, copying.weights))
    assert plain.meter == copying.meter


class Forgetful(embedding.Embeddings):
    """Forgets by which `embed` its values were made."""

    def __reduce__(self) -> Any:
        return Forgetful, (self.samples, self.values, ((9, 9),) * len(self.made), self.head, self.clients_head)


def test_a_value_that_loses_something_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "Embeddings", Forgetful)
    with pytest.raises(AssertionError, match="a Forgetful is another one after it was pickled"):
        check_values(CASES["TDCD"], rounds=1)


def test_values_are_compared_to_the_bit() -> None:
    one = {"a": (torch.ones(2), [1, None])}
    assert same_value(one, {"a": (torch.ones(2), [1, None])})
    assert not same_value(one, {"a": (torch.ones(2, dtype=torch.float64), [1, None])})
    assert not same_value(one, {"a": (torch.ones(2), [1, 2])})
    assert not same_value(replace(CASES["TDCD"], seed=1), replace(CASES["TDCD"], seed=2))


class Gated(nn.Module):
    """No chain of layers: its passes are kept with their graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        """A gate times a value."""
        out: Tensor = torch.sigmoid(self.gate(x)) * self.value(x)
        return out


@pytest.mark.parametrize("steps", [1, 3])
def test_problems_pickled_at_the_solvers_seam(steps: int) -> None:
    """A problem says all there is; the pass that the exchange left behind is no part of it."""
    plain, pickled = (
        Simulator(
            make_data((2, 3)), make_task(2, block=lambda _: Gated()), TDCD(steps, 0.3, 8), precision=torch.float64,
            seed=5, threads=1,
        )
        for _ in range(2)
    )  # fmt: skip
    federation = pickled.federation
    assert isinstance(federation, SimulatedFederation)
    solve = federation.solver

    def through_bytes(problems: Any, weights: Any, **options: Any) -> list[Tensor]:
        return solve(pickle.loads(pickle.dumps(problems)), weights, **options)

    federation.solver = through_bytes
    federation.at_clients = replace(federation.at_clients, solver=through_bytes)
    for simulator in (plain, pickled):
        before = [weights.clone() for weights in simulator.weights]
        simulator.run_round()
        assert all(not torch.equal(*pair) for pair in zip(before, simulator.weights, strict=True))
    for mine, wanted in zip(pickled.weights, plain.weights, strict=True):
        assert float((mine - wanted).abs().max()) < 1e-14
