"""Columns to silos: by name, pattern, group, position or evenly; each mistake names column, silo and remedy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import PartitionError
from crosshatch.partition.features import Claim, claim_columns, even_columns

COLUMNS = ("LIMIT", "AGE", "PAY_1", "PAY_2", "BILL")
GROUPS = ("person", "person", "pay", "pay", "bill")


def test_names_patterns_groups_and_spans_add_up() -> None:
    silos, unclaimed = claim_columns(
        COLUMNS,
        GROUPS,
        {"a": Claim(columns=("PAY_*", "LIMIT")), "b": Claim(span=(1, 2)), "c": Claim(groups=("bill",))},
    )
    assert silos == {"a": (0, 2, 3), "b": (1,), "c": (4,)}
    assert unclaimed == ()


def test_columns_given_to_nobody_are_listed() -> None:
    assert claim_columns(COLUMNS, GROUPS, {"a": Claim(groups=("pay",))})[1] == ("LIMIT", "AGE", "BILL")


def test_a_name_with_a_star_is_itself_before_it_is_a_pattern() -> None:
    assert claim_columns(("a*", "ab"), (), {"s": Claim(columns=("a*",))})[0] == {"s": (0,)}


@given(columns=st.integers(1, 60), data=st.data())
def test_even_slices_cover_all_columns_in_order(columns: int, data: st.DataObject) -> None:
    silos = [f"s{i}" for i in range(data.draw(st.integers(1, columns)))]
    found = even_columns([str(i) for i in range(columns)], silos)
    assert [p for silo in silos for p in found[silo]] == list(range(columns))
    assert np.ptp([len(part) for part in found.values()]) <= 1


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        (
            {"bank": Claim(columns=("AGE",)), "shop": Claim(groups=("person",))},
            "column 'AGE' is in two silos, 'bank' and 'shop'",
        ),
        ({"bank": Claim(columns=("AEG",))}, "silo 'bank': unknown column 'AEG': did you mean 'AGE'"),
        ({"bank": Claim(columns=("age",))}, "did you mean 'AGE'"),
        ({"bank": Claim(columns=("zzzzzz",))}, "there is LIMIT, AGE"),
        ({"bank": Claim(columns=("Q_*",))}, "unknown column 'Q_\\*'"),
        ({"bank": Claim(groups=("pays",))}, "unknown group of columns 'pays': did you mean 'pay'"),
        ({"bank": Claim(columns=("AGE",)), "shop": Claim()}, "silo 'shop' has no columns"),
        ({"bank": Claim(span=(3, 9))}, "span \\[3, 9\\] is not within the 5 columns"),
    ],
)
def test_mistakes(claims: dict[str, Claim], message: str) -> None:
    with pytest.raises(PartitionError, match=message):
        claim_columns(COLUMNS, GROUPS, claims)


def test_more_silos_than_columns() -> None:
    with pytest.raises(PartitionError, match="3 silos for 2 columns"):
        even_columns(["a", "b"], ["x", "y", "z"])
