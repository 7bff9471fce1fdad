"""The right-hand sides by hand, the limits as roots of the papers' conditions, and what happens above them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from crosshatch.errors import ConfigError
from crosshatch.theory.bounds import (
    Bound,
    StepLimit,
    fedbcd_bound,
    fedbcd_limit,
    hsgd_bound,
    hsgd_limit,
    icassp_bound,
    icassp_limit,
    tdcd_bound,
    tdcd_limit,
)
from crosshatch.theory.constants import Constants

CONSTANTS = Constants(
    gap=3.0,
    lipschitz=5.0,
    block_lipschitz=(2.0, 4.0, 3.0),
    local_lipschitz=6.0,
    batch_noise=(0.1, 0.2, 0.05),
    client_noise=(0.5, 0.3, 0.4),
)
Q, P, T = 4, 8, 160

BOUNDS: dict[str, tuple[StepLimit, Callable[[float], Bound]]] = {
    "fedbcd": (
        fedbcd_limit(CONSTANTS, local_steps=Q),
        lambda eta: fedbcd_bound(CONSTANTS, step_size=eta, iterations=T, local_steps=Q),
    ),
    "icassp": (
        icassp_limit(CONSTANTS, local_steps=Q),
        lambda eta: icassp_bound(CONSTANTS, step_size=eta, iterations=T, local_steps=Q, clients=2),
    ),
    "tdcd": (
        tdcd_limit(CONSTANTS, local_steps=Q),
        lambda eta: tdcd_bound(CONSTANTS, step_size=eta, iterations=T, local_steps=Q),
    ),
    "hsgd": (
        hsgd_limit(CONSTANTS, global_steps=P),
        lambda eta: hsgd_bound(CONSTANTS, step_size=eta, iterations=T, global_steps=P, local_steps=Q),
    ),
}


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        # start, noise, drift at eta = 0.001: written out from equations (13)-(14), (10), (15) and (17)
        ("fedbcd", (2 * 3 / 0.16, 2 * 3 * 0.2, 2e-6 * 6 * 16 * (4 + 16 + 9) * 0.2)),
        ("icassp", (2 * 3 / 0.16, 0.001 * 5 * 3 * 0.5 / 2, 16 * 1e-6 * 0.5 * 16 * 9)),
        ("tdcd", (4 * 3 / 0.16, 4 * 0.001 * 5 * 4 * 1.2, 4 * (4e-6 * 16 * 36 + 8e-9 * 64 * 5 * 36) * 1.2)),
        ("hsgd", (4 * 3 / 0.16, 12 * 8 * 6 * 0.001 * 0.5, 96 * 16 * 36 * 1e-6 * 0.5)),
    ],
)
def test_terms_by_hand(name: str, terms: tuple[float, float, float]) -> None:
    bound = BOUNDS[name][1](0.001)
    assert (bound.start, bound.noise, bound.drift) == pytest.approx(terms, rel=1e-12)
    assert bound.value == pytest.approx(sum(terms))
    assert bound.floor == pytest.approx(sum(terms[1:]))
    assert bound.dominant == "start"


def test_limits_are_the_papers_conditions() -> None:
    fedbcd, icassp = BOUNDS["fedbcd"][0], BOUNDS["icassp"][0]
    worst = 4 + 16 + 9 + 3 * 16
    assert fedbcd.stated == pytest.approx(min(np.sqrt(2) / (2 * Q * np.sqrt(worst)), 1 / 5))
    assert 1 - 5 * fedbcd.supports - 2 * fedbcd.supports**2 * Q**2 * worst == pytest.approx(0)
    assert 1 - 5 * fedbcd.stated - 2 * fedbcd.stated**2 * Q**2 * worst < 0  # the theorem promises more than its proof
    assert 1 - 5 * icassp.stated - icassp.stated**2 * 16 * Q**2 == pytest.approx(0)
    assert 1 - 5 * icassp.supports - icassp.supports**2 * 29 * Q**2 == pytest.approx(0)
    assert BOUNDS["tdcd"][0].stated == pytest.approx(1 / (8 * Q * 6))
    assert BOUNDS["hsgd"][0].stated == pytest.approx(1 / (8 * P * 6))


def test_one_local_step_of_fedbcd_is_limited_by_the_gradient() -> None:
    loose = Constants(1.0, 100.0, (1.0, 1.0), 1.0, (0.0, 0.0), (0.0, 0.0))
    assert fedbcd_limit(loose, local_steps=1).stated == pytest.approx(1 / 100)


@pytest.mark.parametrize("name", BOUNDS)
def test_the_limit_itself_is_admitted_and_more_refused(name: str) -> None:
    limit, bound = BOUNDS[name]
    assert bound(limit.stated).step_size == limit.stated
    assert bound(limit.supports).limit == limit
    assert limit.supports <= limit.stated
    for eta in (limit.stated * 1.0001, 0.0, -0.1, float("nan")):
        with pytest.raises(ConfigError, match=f"{limit.stated:g}") as caught:
            bound(eta)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", BOUNDS)
def test_iterations_to_a_level(name: str) -> None:
    eta = BOUNDS[name][0].stated / 2
    bound = BOUNDS[name][1](eta)
    level = bound.floor + bound.start / 3
    needed = bound.iterations_to(level)
    assert needed == pytest.approx(3 * T, abs=1)
    assert bound.iterations_to(bound.floor) is None
    assert bound.iterations_to(bound.floor / 2) is None
    assert bound.iterations_to(1e12) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("gap", -1.0), ("lipschitz", 0.0), ("client_noise", (0.1, float("nan"), 0.1))]
)
def test_constants_that_cannot_be(field: str, value: object) -> None:
    given = {name: getattr(CONSTANTS, name) for name in CONSTANTS.__dataclass_fields__}
    with pytest.raises(ConfigError, match="theory"):
        Constants(**{**given, field: value})
