"""Forecasts against the bound they come from, and the papers' time models against the simulator's clock."""

from __future__ import annotations

import pytest
import torch

from crosshatch.algorithms.tdcd import TDCD
from crosshatch.network import ConstantNetwork
from crosshatch.simulator.simulator import Simulator
from crosshatch.theory.bounds import hsgd_bound
from crosshatch.theory.constants import Constants
from tests.theory.quadratics import random_quadratic

CONSTANTS = Constants(2.0, 1.5, (1.0, 1.0), 1.0, (0.0, 0.0), (0.3, 0.2))


def test_the_bound_is_at_the_level_after_the_forecast_iterations() -> None:
    def bound_after(iterations: int) -> float:
        bound = hsgd_bound(CONSTANTS, step_size=0.001, iterations=iterations, global_steps=10, local_steps=5)
        return bound.value

    start = hsgd_bound(CONSTANTS, step_size=0.001, iterations=100, global_steps=10, local_steps=5)
    needed = start.iterations_to(0.5)
    assert needed is not None
    assert bound_after(needed) <= 0.5 < bound_after(needed - 2)
    assert start.iterations_to(start.floor / 2) is None


def test_tdcd_time_is_the_simulators() -> None:
    quadratic = random_quadratic(1, dims=(2, 2), clients=3)
    run = Simulator(
        quadratic.data(),
        quadratic.task(),
        TDCD(local_steps=7, step_size=0.01),
        network=ConstantNetwork(t_comm=4.0, t_comp=0.3),
        precision=torch.float64,
    )
    run.run_round()
    assert run.seconds == pytest.approx(3 * 4.0 + 7 * 0.3)  # two round trips with the hub, one between hubs, Q steps
