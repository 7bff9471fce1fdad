"""Federations that an algorithm's own declarations rule out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.errors import ConfigError, ModelError
from crosshatch.protocol.refusals import check_derivatives
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.federations import make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty

ENGINES = (Simulator, PartyByParty)
CONTINUED = [
    FedBCD(2, 0.1, derivatives="continued"),
    FedBCD(2, 0.1, order="sequential", derivatives="continued"),
    TDCD(2, 0.1, derivatives="continued"),
    ABCD(2, 0.1),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", CONTINUED)
def test_derivatives_do_not_go_on_behind_a_head(engine: Any, algorithm: Any) -> None:
    behind = "silo 'silo1' holds the labels, but behind a trained head only its holder could follow them: "
    with pytest.raises(ModelError, match=behind + "set model.fusion = 'sum' or federation.labels = 'shared'"):
        engine(make_data((1, 1), held=1), make_task(2, holder=1), algorithm)
    for data, task in ((make_data((1, 1)), make_task(2, holder=1)), (make_data((1, 1), held=1), make_task(2))):
        if not (task.head is not None and algorithm.takes_turns and algorithm.topology.below):
            engine(data, task, algorithm).run_round()


@dataclass(frozen=True)
class Own:
    """A loss of somebody's own, which does not say how its derivative goes on."""

    name = "own"
    target = "binary"

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """That of the cube of the residual."""
        return (scores - y[:, None]).square()


def test_nor_do_those_of_a_loss_that_does_not_say_how() -> None:
    own: Any = Own()
    task = replace(make_task(2), loss=own)
    with pytest.raises(ModelError, match=r"loss 'own' does not say how: give it a method continued\(derivative, moved"):
        check_derivatives(make_data((1, 1), held=0), task, "FedBCD", continued=True)
    check_derivatives(make_data((1, 1)), task, "FedBCD", continued=True)
    check_derivatives(make_data((1, 1), held=0), task, "FedBCD", continued=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_clients_in_turn_have_no_newest_head(engine: Any) -> None:
    data, algorithm = make_data((2, 3)), TDCD(2, 0.1, order="sequential")
    with pytest.raises(ModelError, match=r"TDCD averages clients once per round, .*: set algorithm.order = 'parallel'"):
        engine(data, make_task(2, holder=0), algorithm)
    engine(data, make_task(2), algorithm).run_round()
    engine(make_data((1, 1)), make_task(2, holder=0), FedBCD(2, 0.1, order="sequential")).run_round()


def test_derivatives_that_stay_go_with_a_head() -> None:
    held = Simulator(make_data((1, 1), held=1), make_task(2, holder=1), FedBCD(2, 0.1), precision=torch.float64)
    held.run_round()
    assert held.round == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("algorithm", "remedy"),
    [
        (ABCD(5, 0.1, tiers="V"), "algorithm.tiers = 'auto' or 'V H'"),
        (Tiered("V(5)", 0.1), "algorithm.tiers = 'V(5) H(5)'"),
        (FedBCD(5, 0.1), "TDCD or ABCD"),
    ],
)
def test_several_clients_name_the_settings_that_take_them(engine: Any, algorithm: Any, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        engine(make_data((1, 3)), make_task(2), algorithm)
    told = "on V(5) takes one client per silo, 'silo1' has 3: set clients = 1, or use "
    assert str(caught.value).endswith(told + remedy)
