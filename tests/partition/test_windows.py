"""Pixels to silos: a grid covers every pixel once, given windows must be disjoint and inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import PartitionError
from crosshatch.partition.windows import Window, claim_windows, grid, name_windows


@given(height=st.integers(1, 20), width=st.integers(1, 20), data=st.data())
def test_a_grid_covers_every_pixel_once(height: int, width: int, data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    seen = np.zeros((height, width), dtype=int)
    windows = grid(height, width, rows, columns)
    for window in windows:
        seen[window.top : window.bottom, window.left : window.right] += 1
    assert (seen == 1).all()
    assert len(windows) == rows * columns
    assert claim_windows(height, width, {str(i): window for i, window in enumerate(windows)}) == 0


def test_pixels_nobody_holds_are_counted() -> None:
    assert claim_windows(4, 4, {"a": Window(0, 2, 0, 2)}) == 12


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"a": Window(0, 3, 0, 3), "b": Window(2, 4, 2, 4)}, "row 2, column 2.*two silos, 'a' and 'b'"),
        ({"a": Window(0, 5, 0, 3)}, "leaves the image of 4 x 4"),
        ({"a": Window(2, 2, 0, 3)}, "empty"),
    ],
)
def test_mistakes(claims: dict[str, Window], message: str) -> None:
    with pytest.raises(PartitionError, match=message):
        claim_windows(4, 4, claims)


def test_patches_smaller_than_a_pixel_and_wrong_numbers_of_silos() -> None:
    with pytest.raises(PartitionError, match="a patch would have no pixels"):
        grid(4, 4, 5, 1)
    with pytest.raises(PartitionError, match="at least 1"):
        grid(4, 4, 0, 1)
    with pytest.raises(PartitionError, match="3 silos for 2 parts"):
        name_windows(grid(4, 4, 1, 2), ["a", "b", "c"])
