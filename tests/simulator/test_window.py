"""A window of batches: who has nothing of an earlier one takes the round's own in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from crosshatch.algorithms.abcd import ABCD
from crosshatch.exchanges import LocalSteps
from crosshatch.protocol.batches import GivenBatches
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.check_federation import check_rounds
from crosshatch.testing.federations import FederationCase, make_data, make_task
from crosshatch.topology import Topology
from tests.equivalence.federations import assert_same
from tests.simulator.small import small
from tests.support.senders import simulator

# Samples 0, 2 and 4 are those of one client of each silo, 1, 3 and 5 those of the other.
APART = GivenBatches(np.array([[[0, 2]], [[1, 3]], [[4, 0]], [[5, 1]]]))
TOGETHER = GivenBatches(np.array([[[0, 1]], [[2, 3]], [[4, 5]], [[0, 3]]]))


def run(window: int, batches: GivenBatches, **settings: Any) -> Simulator:
    case = small(clients=(2, 2), steps=4)
    found = Simulator(
        case.data, case.task, ABCD(4, 0.1, 2, window=window, **settings), batches=batches, precision=torch.float64
    )
    for _ in range(4):
        found.run_round()
    return found


def test_without_samples_in_earlier_batches_a_window_changes_nothing() -> None:
    """Neither the steps nor the time they take."""
    one, two = run(1, APART), run(2, APART)
    assert_same(two.weights, one.weights, 1e-14)
    assert two.seconds == one.seconds


def test_with_samples_in_all_of_them_it_does() -> None:
    one, two = run(1, TOGETHER), run(2, TOGETHER)
    assert float((one.weights[0] - two.weights[0]).abs().max()) > 1e-3
    assert two.seconds == one.seconds


@dataclass(frozen=True)
class StepByStep:
    """The same window in calls of one step each, and batches of several parts."""

    parts: int = 1
    local_steps: int = 5
    step_size: float = 0.3

    remembers = True

    @property
    def topology(self) -> Topology:
        return Topology.parse("V(5) H(5)")

    def run_round(self, fed: Any, blocks: Any, r: int, memory: Any) -> Any:
        batch = fed.draw_batch(4, round=r, parts=self.parts)
        blocks = fed.broadcast(blocks, batch)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        for q in range(self.local_steps):
            blocks = fed.descend(
                blocks, batch, frozen, LocalSteps(1, self.step_size, first=q, anticipation=1.5), earlier=memory
            )
        return fed.average(blocks, batch), ((batch, frozen), *memory)[:2]


@pytest.mark.parametrize("algorithm", [StepByStep(), StepByStep(parts=2), ABCD(5, 0.3, 4, window=3)])
@pytest.mark.parametrize("holder", [None, 1])
def test_party_by_party(algorithm: Any, holder: int | None) -> None:
    case = FederationCase("window", make_data((6, 9)), make_task(2, holder=holder), algorithm)
    assert check_rounds(simulator, case, rounds=5) < 1e-12
