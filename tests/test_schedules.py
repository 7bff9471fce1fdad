"""Schedules against their closed forms, and the refusals of bad step sizes."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import ConfigError
from crosshatch.schedules import Constant, Halving, InverseSqrt, Schedule, parse_schedule, to_table

sizes = st.floats(1e-12, 1e6)
schedules = st.one_of(
    st.builds(Constant, sizes),
    st.builds(InverseSqrt, sizes),
    st.builds(Halving, sizes, st.integers(1, 1000)),
)


@given(value=sizes, r=st.integers(0, 10**6))
def test_constant_and_inverse_sqrt_follow_their_formulas(value: float, r: int) -> None:
    assert Constant(value)(r) == value
    assert InverseSqrt(value)(r) == pytest.approx(value * (r + 1) ** -0.5, rel=1e-12)


@given(value=sizes, every=st.integers(1, 30), r=st.integers(0, 300))
def test_halving_equals_halving_step_by_step(value: float, every: int, r: int) -> None:
    expected = value
    for earlier in range(1, r + 1):
        if earlier % every == 0:
            expected /= 2
    assert Halving(value, every)(r) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(schedule=schedules)
def test_table_and_schedule_are_inverse(schedule: Schedule) -> None:
    assert parse_schedule(to_table(schedule)) == schedule


def test_numbers_are_constant_schedules() -> None:
    assert parse_schedule(1) == Constant(1.0)
    assert isinstance(parse_schedule(1)(0), float)
    assert parse_schedule({"value": 0.5}) == Constant(0.5)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (0, "positive and finite"),
        (-0.1, "positive and finite"),
        (math.nan, "positive and finite"),
        (math.inf, "positive and finite"),
        (1e300, "give at most 1e\\+30"),
        (10**400, "too large"),
        (True, "number or a schedule table"),
        ("0.1", "number or a schedule table"),
        (None, "number or a schedule table"),
        ({"kind": "cosine", "value": 0.1}, "constant, inverse_sqrt, halving"),
        ({"kind": ["constant"], "value": 0.1}, "unknown schedule kind"),
        ({"kind": "constant"}, "needs a value"),
        ({"kind": "halving", "value": 0.1}, "needs every"),
        ({"kind": "halving", "value": 0.1, "every": 0}, "every >= 1"),
        ({"kind": "halving", "value": 0.1, "every": 2.5}, "every >= 1"),
        ({"kind": "inverse_sqrt", "value": 0.1, "every": 3}, "'halving' only"),
        ({"kind": "constant", "value": 0.1, "steps": 3}, "unknown key 'steps'"),
    ],
)
def test_bad_schedules_are_refused_in_one_line_with_their_place(value: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        parse_schedule(value, place="algorithm.step_size")
    message = str(caught.value)
    assert message.startswith("algorithm.step_size: ")
    assert "\n" not in message


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_constructors_check_too(value: float) -> None:
    for build in (Constant, InverseSqrt, lambda v: Halving(v, 2)):
        with pytest.raises(ConfigError, match="positive and finite"):
            build(value)


def test_schedules_do_not_import_torch() -> None:
    probe = "import sys, crosshatch.schedules; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("constant", "kind and value"),
        ("inverse_sqrt", "kind and value"),
        ("halving", "kind, value and every"),
        ("adaptive", "kind, value, rho, delta_squared and every"),
    ],
)
def test_an_unknown_key_is_told_all_that_are_allowed(kind: str, keys: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown key 'rhoo' in a schedule of kind '{kind}': allowed are {keys}$"):
        parse_schedule({"kind": kind, "value": 0.1, "rhoo": 1.0})
