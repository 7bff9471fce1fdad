"""Forward passes that the exchange left behind, kept for the first local step, which begins with the same pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from torch import Tensor

from crosshatch.local.layers import ChainPass

_PIECE_ROWS = 512


@dataclass(frozen=True)
class KeptPass:
    """One silo's forward pass under the weights `start`, kept for its backward pass.

    For a chain these are every layer's outputs, differentiated by hand. For any other module they are pieces, each with
    its rows and its embedding with the graph; the embedding is None where the graph would have taken too much memory,
    or where somebody has gone back through it.
    """

    start: Tensor
    leaves: Mapping[str, Tensor] = field(default_factory=dict)  # the block's parameters in the graphs
    pieces: list[tuple[slice, Tensor | None]] = field(default_factory=list)
    chain_pass: ChainPass | None = None  # this silo's pass stands in it at `place`
    place: int = 0
    common: CommonPass | None = None  # the pass that this one is a part of


@dataclass(frozen=True, eq=False)
class CommonPass:
    """One silo's forward pass over the samples x of several groups."""

    kept: KeptPass
    x: Tensor

    def of(self, rows: slice) -> KeptPass:
        """The pass of some rows: a chain has what the way back from those alone takes, other modules pass once more."""
        whole = self.kept
        chain_pass = None if whole.chain_pass is None else whole.chain_pass.of(rows)
        pieces: list[tuple[slice, Tensor | None]] = []
        if chain_pass is None:
            pieces = [(piece, None) for piece in in_pieces(rows.stop - rows.start)]
        return KeptPass(whole.start, whole.leaves, pieces, chain_pass, whole.place, self)


def in_pieces(rows: int) -> list[slice]:
    """Rows cut for modules other than chains: memory stays bounded, and threads have work."""
    size = max(1, ceil(rows / max(1, round(rows / _PIECE_ROWS))))
    return [slice(low, min(low + size, rows)) for low in range(0, rows, size)]
