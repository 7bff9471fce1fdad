"""Which pixels of an image a silo holds: halves, strips, a grid of patches, or given windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from crosshatch.errors import PartitionError


@dataclass(frozen=True)
class Window:
    """Rows top..bottom-1 and columns left..right-1 of an image."""

    top: int
    bottom: int
    left: int
    right: int


def grid(height: int, width: int, rows: int, columns: int) -> tuple[Window, ...]:
    """An image cut into rows x columns windows, equal up to one pixel, row by row.

    >>> grid(28, 28, 1, 2)
    (Window(top=0, bottom=28, left=0, right=14), Window(top=0, bottom=28, left=14, right=28))
    """
    if rows < 1 or columns < 1:
        raise PartitionError(f"patches = [{rows}, {columns}]: both must be at least 1")
    if rows > height or columns > width:
        raise PartitionError(
            f"{rows} x {columns} patches of an image of {height} x {width} pixels: a patch would have no pixels, "
            "use fewer"
        )
    return tuple(
        Window(top, bottom, left, right)
        for top, bottom in pairwise(_edges(height, rows))
        for left, right in pairwise(_edges(width, columns))
    )


def name_windows(windows: Sequence[Window], names: Sequence[str]) -> dict[str, Window]:
    """Hand the windows out in the order of the names."""
    if len(windows) != len(names):
        raise PartitionError(
            f"{len(names)} silos for {len(windows)} parts of the image: name {len(windows)} silos, or none"
        )
    return dict(zip(names, windows, strict=True))


def claim_windows(height: int, width: int, claims: Mapping[str, Window]) -> int:
    """Check windows that were given; returns the number of pixels nobody holds."""
    covered = 0
    checked: dict[str, Window] = {}
    for silo, window in claims.items():
        if not (0 <= window.top < window.bottom <= height and 0 <= window.left < window.right <= width):
            raise PartitionError(
                f"silo '{silo}': window [{window.top}, {window.bottom}, {window.left}, {window.right}] (top, bottom, "
                f"left, right) is empty or leaves the image of {height} x {width} pixels: keep within it"
            )
        for other, earlier in checked.items():
            row, column = max(window.top, earlier.top), max(window.left, earlier.left)
            if row < min(window.bottom, earlier.bottom) and column < min(window.right, earlier.right):
                raise PartitionError(
                    f"pixel (row {row}, column {column}) is in two silos, '{other}' and '{silo}': make the windows "
                    "disjoint"
                )
        checked[silo] = window
        covered += (window.bottom - window.top) * (window.right - window.left)
    return height * width - covered


def _edges(length: int, parts: int) -> list[int]:
    each, more = divmod(length, parts)
    return [part * each + min(part, more) for part in range(parts + 1)]
