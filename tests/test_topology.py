"""Topologies: `H* V H*` with nested intervals, and nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import ConfigError
from crosshatch.topology import Tier, Topology


@st.composite
def valid(draw: st.DrawFn) -> Topology:
    """Any number of horizontal tiers above and below at most one vertical tier."""
    above, below = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    kinds = ["H"] * above + ["V"] * draw(st.integers(0 if above + below else 1, 1)) + ["H"] * below
    intervals = [draw(st.integers(1, 10))]
    for _ in kinds[1:]:
        intervals.insert(0, intervals[0] * draw(st.integers(1, 4)))
    return Topology(tuple(Tier(kind, n) for kind, n in zip(kinds, intervals, strict=True)))  # type: ignore[arg-type]


@given(valid())
def test_text_and_back(topology: Topology) -> None:
    assert Topology.parse(str(topology)) == topology
    assert Topology.parse(str(topology).replace(" ", "   ") + " ") == topology


@given(valid())
def test_the_vertical_tier_divides_the_others(topology: Topology) -> None:
    middle = () if topology.vertical is None else (topology.tiers[topology.vertical],)
    assert all(tier.kind == "V" for tier in middle)
    assert topology.above + middle + topology.below == topology.tiers
    assert all(tier.kind == "H" for tier in topology.above + topology.below)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("V(10) V(5)", "one vertical tier only"),
        ("V(10) H(10) V(5)", "one vertical tier only"),
        ("V(0)", "at least 1 local step"),
        ("H(10) V(4)", "interval 10 is not a multiple of 4"),
        ("H(20) V(10) H(20)", "interval 10 is not a multiple of 20"),
        ("V(10", "cannot read 'V[(]10'"),
        ("X(3)", "cannot read"),
        ("V(10) and H(10)", "cannot read 'and H[(]10[)]'"),
        ("V(-1)", "cannot read"),
    ],
)
def test_anything_else_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"^algorithm\.tiers .*{reason}"):
        Topology.parse(text)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_what_is_written_instead_nests(intervals: list[int]) -> None:
    """The text offered is taken, and leaves the innermost interval alone."""
    text = " ".join(f"H({n})" for n in intervals)
    try:
        Topology.parse(text)
    except ConfigError as error:
        offered = Topology.parse(str(error).split("write '")[1].rstrip("'"))
        assert offered.tiers[-1].interval == intervals[-1]
        assert [tier.interval for tier in offered.tiers] != intervals
        assert len(offered.tiers) == len(intervals)
    else:
        assert all(outer % inner == 0 for outer, inner in pairwise(intervals))
