"""`crosshatch plan --cluster`: sums over what pieces took, checked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from crosshatch.errors import ConfigError
from crosshatch.runs.config import read_config
from crosshatch.runs.planning.cluster import Machines, plan_cluster, read_machines
from crosshatch.testing.federations import vertical_cases
from crosshatch.workers.crew import InlineWorkers
from crosshatch.workers.employ import employ
from crosshatch.workers.trial import BYTES_PER_SECOND, QUESTION_SECONDS, Question, TrialCrew
from tests.workers.hands import same_bits, simulate

CONFIG = """
data = {name = "breast_cancer"}
federation = {silos = 2, clients = 5}
algorithm = {name = "tdcd", local_steps = 3, step_size = 0.1, batch_size = 64}
run = {rounds = 10, threads = 1}
"""


def test_by_hand() -> None:
    crew = TrialCrew(pieces=4)
    crew.questions = [
        Question({0: 1.0, 1: 2.0, 2: 3.0, 3: 1.0}, {0: 100, 1: 100, 2: 100, 3: 100}, 1000, 300),
        Question({3: 5.0}, {3: 50}, 0),
    ]
    crew.asked = 12.0
    found = crew.on(2, 1, rounds=2, seconds=13.0)
    assert found.computing == pytest.approx((max(1 + 2, 3 + 1) + 5) / 2)
    assert found.moving == pytest.approx((3 * QUESTION_SECONDS + (400 + 2 * 1000 + 50 + 300) / BYTES_PER_SECOND) / 2)
    assert found.driver == pytest.approx(0.5)
    assert crew.on(1, 1, rounds=2, seconds=13.0).computing == pytest.approx((7 + 5) / 2)
    assert crew.on(1, 2, rounds=2, seconds=13.0).computing == pytest.approx((4 + 5) / 2)
    many = crew.on(2, 1, rounds=2, seconds=13.0, times=10)
    assert [many.computing, many.driver] == pytest.approx([45, 5])
    assert many.moving == pytest.approx((3 * QUESTION_SECONDS + (4500 + 2 * 1000 + 300) / BYTES_PER_SECOND) / 2)
    assert crew.on(4, 8, rounds=2, seconds=13.0).computing == pytest.approx((3 + 5) / 2)


def test_a_trial_computes_as_workers_do() -> None:
    case = vertical_cases()[0]
    crew = TrialCrew()
    simulator = simulate(case, rounds=0)
    employ(simulator, crew)
    for _ in range(4):
        simulator.run_round()
    assert same_bits(simulator, simulate(case, InlineWorkers()))
    assert sum(sum(one.seconds.values()) for one in crew.questions) <= crew.asked
    assert torch.isfinite(simulator.weights[0]).all()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(CONFIG)
    return path


def test_more_workers_compute_less(config: Path) -> None:
    plan = plan_cluster(read_config(config), [Machines(1, 1), Machines(12, 1)], folder=None)
    (_, one), (_, many) = plan.each
    assert plan.tried is None
    assert one.computing > many.computing > 0
    assert one.driver == many.driver
    assert many.moving > one.moving


def test_more_clients_than_are_tried(config: Path) -> None:
    few, many = (
        plan_cluster(read_config(config, [f"federation.clients={count}", f"algorithm.batch_size={3 * count}"]),
                     [Machines(2, 1)], folder=None)
        for count in (100, 10_000)
    )  # fmt: skip
    assert few.tried == many.tried == 40
    assert many.one.computing > 10 * few.one.computing


@pytest.mark.parametrize("text", ["2", "2x", "0x1", "2x1;3x1", "9999x1"])
def test_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"write workers x cores of each, from 1 to 4,096, for example 2x8,16x8"):
        read_machines(text)


def test_a_client_of_unknown_size(config: Path) -> None:
    given = read_config(config, ["federation.clients=100", "algorithm.batch_size="])
    with pytest.raises(ConfigError, match=r"set algorithm\.batch_size, so that a client's share of it is known"):
        plan_cluster(given, [Machines(1, 1)], folder=None)
