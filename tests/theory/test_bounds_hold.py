"""Each theorem's bound lies above the averaged squared gradient norm measured on quadratics with known constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.exchanges import Algorithm
from crosshatch.seeds import generator
from crosshatch.simulator.simulator import Simulator
from crosshatch.theory.bounds import (
    fedbcd_bound,
    fedbcd_limit,
    hsgd_bound,
    hsgd_limit,
    icassp_bound,
    icassp_limit,
    tdcd_bound,
    tdcd_limit,
)
from tests.theory.quadratics import Quadratic, WholeDraws, random_quadratic

SETTINGS = range(20)
ROUNDS = 10


def measured(quadratic: Quadratic, simulator: Simulator) -> float:
    """Squared norm of the exact gradient at the simulator's model."""
    theta = torch.cat(simulator.weights).numpy()
    return float(np.square(quadratic.gradient(theta)).sum())


def simulator(quadratic: Quadratic, algorithm: Algorithm, seed: int) -> Simulator:
    batches = WholeDraws(seed, quadratic.clients, quadratic.draws, len(quadratic.y))
    return Simulator(quadratic.data(), quadratic.task(), algorithm, batches=batches, precision=torch.float64)


def every_iterate(
    quadratic: Quadratic, algorithm: Callable[[int], Algorithm], local_steps: int, seed: int, rounds: int = ROUNDS
) -> list[float]:
    """Squared gradient norms of all iterates: those inside a round are where fewer local steps would have ended."""
    shorter = [simulator(quadratic, algorithm(q), seed) for q in range(1, local_steps)]
    main = simulator(quadratic, algorithm(local_steps), seed)
    norms = []
    for _ in range(rounds):
        norms.append(measured(quadratic, main))
        for other in shorter:
            other.restore(*main.snapshot())
            other.run_round()
            norms.append(measured(quadratic, other))
        main.run_round()
    return norms


def shape(seed: int, *, most: int = 4) -> tuple[tuple[int, ...], int, float]:
    """Random columns a silo, local steps, and the step size's share of its limit."""
    rng = generator(seed, "shape")
    dims = tuple(int(n) for n in rng.integers(1, 4, size=int(rng.integers(2, most + 1))))
    return dims, int(rng.integers(1, 5)), float(rng.uniform(0.3, 1))


@pytest.mark.parametrize("seed", SETTINGS)
def test_fedbcd(seed: int) -> None:
    dims, local_steps, share = shape(seed)
    quadratic = random_quadratic(seed, dims=dims)
    constants = quadratic.constants()
    eta = share * fedbcd_limit(constants, local_steps=local_steps).stated
    batch = len(quadratic.y)
    norms = every_iterate(quadratic, lambda q: FedBCD(q, eta, batch), local_steps, seed)
    bound = fedbcd_bound(constants, step_size=eta, iterations=len(norms), local_steps=local_steps)
    assert len(norms) == ROUNDS * local_steps
    assert np.mean(norms) <= bound.value


@pytest.mark.parametrize("seed", SETTINGS)
def test_icassp(seed: int) -> None:
    dims, local_steps, share = shape(seed)
    quadratic = random_quadratic(seed, dims=dims, clients=1 + seed % 4)
    constants = quadratic.constants()
    eta = share * icassp_limit(constants, local_steps=local_steps).stated
    batch = len(quadratic.y) * quadratic.clients
    norms = every_iterate(quadratic, lambda q: TDCD(q, eta, batch, batches="fresh"), local_steps, seed)
    bound = icassp_bound(
        constants, step_size=eta, iterations=len(norms), local_steps=local_steps, clients=quadratic.clients
    )
    assert np.mean(norms) <= bound.value


@pytest.mark.parametrize("seed", SETTINGS)
def test_tdcd(seed: int) -> None:
    dims, local_steps, share = shape(seed)
    quadratic = random_quadratic(seed, dims=dims, clients=1 + seed % 4)
    constants = quadratic.constants()
    eta = share * tdcd_limit(constants, local_steps=local_steps).stated
    run = simulator(quadratic, TDCD(local_steps, eta, len(quadratic.y) * quadratic.clients), seed)
    norms = []
    for _ in range(ROUNDS):
        norms.append(measured(quadratic, run))
        run.run_round()
    bound = tdcd_bound(constants, step_size=eta, iterations=ROUNDS * local_steps, local_steps=local_steps)
    assert np.mean(norms) <= bound.value


@pytest.mark.parametrize("seed", SETTINGS)
def test_hsgd(seed: int) -> None:
    _, local_steps, share = shape(seed)
    rng = generator(seed, "groups")
    ratio, groups, devices = (int(n) for n in rng.integers((1, 2, 3), (4, 5, 7)))
    dims = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    quadratic = random_quadratic(seed, dims=dims, clients=groups, draws=devices)
    selected = int(rng.integers(1, devices + 1))
    constants = quadratic.grouped_constants(selected)
    global_steps = ratio * local_steps
    eta = share * hsgd_limit(constants, global_steps=global_steps).stated
    algorithm = HSGD(global_steps, local_steps, eta, selected / devices)
    run = Simulator(quadratic.grouped(), quadratic.task(), algorithm, seed=seed, precision=torch.float64)
    norms = []
    for r in range(ROUNDS * ratio):
        if r % ratio == 0:
            norms.append(measured(quadratic, run))
        run.run_round()
    bound = hsgd_bound(
        constants,
        step_size=eta,
        iterations=ROUNDS * global_steps,
        global_steps=global_steps,
        local_steps=local_steps,
    )
    assert np.mean(norms) <= bound.value


def test_icassp_counterexample() -> None:
    """Nine silos with the same single column, no noise, Q = 40: equation (9) holds, and yet the method diverges.

    A silo alone closes about a third of the distance in a round; nine of them, each on frozen values of the others,
    overshoot it two and a half times. With sum_j L_j^2 in place of L_max^2 the loss falls in every round.
    """
    silos, local_steps, rounds = 9, 40, 10
    column = np.linspace(1, 2, 6)[:, None]
    x = np.tile(column / np.sqrt(np.mean(column**2)), (1, silos))
    quadratic = Quadratic(x, x.sum(1), np.zeros((1, 1, 6)), (1,) * silos, np.zeros(silos))
    constants = quadratic.constants()
    limit = icassp_limit(constants, local_steps=local_steps)
    largest = max(constants.block_lipschitz)
    for eta, holds in ((limit.stated, False), (limit.supports, True)):
        assert 1 - eta * constants.lipschitz - (eta * largest * local_steps) ** 2 >= -1e-12
        run = simulator(quadratic, TDCD(local_steps, eta, 6, batches="fresh"), 0)
        starts = []
        for _ in range(rounds):
            starts.append(measured(quadratic, run))
            run.run_round()
        bound = icassp_bound(
            constants, step_size=eta, iterations=rounds * local_steps, local_steps=local_steps, clients=1
        )
        assert (eta <= bound.limit.supports) is holds
        if holds:
            assert starts == sorted(starts, reverse=True)
        else:  # the iterates inside the rounds would only add to the left-hand side
            assert sum(starts) / (rounds * local_steps) > 100 * bound.value
