"""Where tokens begin and where they go: drawn from the seed, or given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from crosshatch.seeds import generator

if TYPE_CHECKING:
    import networkx as nx

Ids = npt.NDArray[np.int64]
_CHUNK = 256  # hops drawn at once


@dataclass
class SeededWalk:
    """Uniform among the neighbours; token number and hop decide, so a walk does not depend on the other tokens."""

    graph: nx.Graph
    seed: int
    each: bool = False  # token i begins at agent i instead of anywhere
    _drawn: tuple[int, npt.NDArray[np.float64]] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Neighbours of all agents."""
        self._neighbours = [sorted(self.graph[k]) for k in range(len(self.graph))]

    def begin(self, tokens: int) -> Ids:
        """Anywhere, or one by one."""
        agents = len(self._neighbours)
        if self.each:
            return np.arange(tokens, dtype=np.int64) % agents
        drawn = [generator(self.seed, "start", token).integers(agents) for token in range(tokens)]
        return np.array(drawn, dtype=np.int64)

    def next(self, at: Ids, hop: int, *, stay: bool) -> Ids:
        """Each neighbour is as likely as the others, and with `stay` as the agent itself."""
        tokens, chunk = len(at), hop // _CHUNK
        if self._drawn is None or self._drawn[0] != chunk or self._drawn[1].shape[1] != tokens:
            columns = [generator(self.seed, "walk", token, chunk).random(_CHUNK) for token in range(tokens)]
            self._drawn = (chunk, np.stack(columns, axis=1))
        chances = zip(at.tolist(), self._drawn[1][hop % _CHUNK].tolist(), strict=True)
        ways = ((self._neighbours[k] + [k] * stay, chance) for k, chance in chances)
        return np.array([way[int(chance * len(way))] for way, chance in ways], dtype=np.int64)


@dataclass(frozen=True)
class GivenWalk:
    """`visits[token][hop]`: the agent each token is at before its hop of that number; the last one is stayed at."""

    visits: Ids

    def begin(self, tokens: int) -> Ids:
        assert len(self.visits) == tokens, f"{len(self.visits)} walks for {tokens} tokens"
        return self.visits[:, 0].astype(np.int64)

    def next(self, at: Ids, hop: int, *, stay: bool) -> Ids:  # noqa: ARG002 - decided beforehand
        return self.visits[:, min(hop + 1, self.visits.shape[1] - 1)].astype(np.int64)


Walk = SeededWalk | GivenWalk
"""Both say at which agents (tokens,) tokens `begin`, and where they are `next`, after a hop from where they are."""
