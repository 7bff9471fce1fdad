"""The state of a simulation on a graph, which rounds change: tokens on their walks, or duals."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from crosshatch.exchanges import DualAlgorithm, TokenAlgorithm
from crosshatch.simulator.allocator import aligned
from crosshatch.simulator.graph.simulated_duals import Duals, SimulatedDuals
from crosshatch.simulator.graph.simulated_tokens import SimulatedTokens, Tokens

if TYPE_CHECKING:
    import networkx as nx

Values = TypeVar("Values", Tokens, Duals)
_TRACED = 50  # hops of a walk that are described


@dataclass
class TokenState:
    """Tokens on their walks."""

    federation: SimulatedTokens
    algorithm: TokenAlgorithm
    tokens: Tokens

    summed = True

    @property
    def seconds(self) -> float:
        """The time of the last token."""
        return float(self.tokens.seconds.max())

    @property
    def strategies(self) -> dict[str, str]:
        """How visits are computed."""
        return dict(self.federation.chosen)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The average of the tokens' models."""
        return self.federation.model(self.tokens)

    def run_round(self, r: int) -> None:
        """One visit and one hop of all tokens."""
        self.tokens = self.algorithm.run_round(self.federation, self.tokens, r)

    def align(self) -> None:
        """Scores and models. Rounds write into them, so there is nothing to do after the first time."""
        self.tokens = _aligned(self.tokens)

    def broken(self) -> str | None:
        """Whether a token has a NaN or an infinity.

        Where blocks are linear one that is not finite spoils all scores, so one score per token is enough.
        """
        scores = self.tokens.views.first.tolist() if self.federation.linear else [float(self.tokens.scores.sum())]
        return None if all(map(isfinite, scores)) else "a token is"

    def communications(self, messages: int) -> int:
        """Messages in units of one number per sample."""
        return messages * self.federation.links.shape[1]

    def describe(self) -> dict[str, Any]:
        """Edges, tokens, visits, and the first hops of the first token."""
        fed = self.federation
        return {
            "edges": _edges(fed.graph),
            "tokens": fed.count,
            "server": fed.server,
            "visits": self.tokens.visits.tolist(),
            "walk": fed.trace(min(_TRACED, int(self.tokens.visits.sum()) // fed.count), stay=self.algorithm.stay),
        }

    def snapshot(self) -> dict[str, Tensor]:
        """All fields."""
        return _copies(self.tokens)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """All fields as they were."""
        self.tokens = _restored(self.tokens, tensors)


@dataclass
class DualState:
    """Duals that come to agree."""

    federation: SimulatedDuals
    algorithm: DualAlgorithm
    duals: Duals

    summed = True

    @property
    def seconds(self) -> float:
        """The time of the last agent."""
        return float(self.duals.seconds.max())

    @property
    def strategies(self) -> dict[str, str]:
        """There is one way only."""
        return dict(self.federation.chosen)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The agents' blocks."""
        return self.federation.model(self.duals)

    def run_round(self, r: int) -> None:
        """One iteration."""
        self.duals = self.algorithm.run_round(self.federation, self.duals, r)

    def align(self) -> None:
        """Weights, duals and sums."""
        self.duals = _aligned(self.duals)

    def broken(self) -> str | None:
        """Whether a dual has a NaN or an infinity."""
        return None if isfinite(float(self.duals.duals.sum())) else "a dual is"

    def communications(self, messages: int) -> int:
        """Messages in units of one number per sample."""
        return messages * self.federation.links.shape[1]

    def describe(self) -> dict[str, Any]:
        """The edges."""
        return {"edges": _edges(self.federation.graph)}

    def snapshot(self) -> dict[str, Tensor]:
        """All fields."""
        return _copies(self.duals)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """All fields as they were."""
        self.duals = _restored(self.duals, tensors)


def _edges(graph: nx.Graph) -> list[list[int]]:
    return sorted([min(edge), max(edge)] for edge in graph.edges)


def _copies(values: Values) -> dict[str, Tensor]:
    """All fields as tensors of their own, because rounds change the values in place."""
    return {field.name: torch.as_tensor(getattr(values, field.name)).clone() for field in fields(values)}


def _aligned(values: Values) -> Values:
    """The same, with tensors that lie in memory as copies would."""
    tensors: dict[str, Any] = {
        name: aligned(value) for name, value in vars(values).items() if isinstance(value, Tensor)
    }
    return replace(values, **tensors)


def _restored(values: Values, stored: dict[str, Tensor]) -> Values:
    """Copies of what was stored, each of the kind and on the device the value has now."""
    found: dict[str, Any] = {}
    for field in fields(values):
        now, then = getattr(values, field.name), stored[field.name]
        assert tuple(then.shape) == tuple(now.shape)
        found[field.name] = then.to(now).clone() if isinstance(now, Tensor) else then.numpy().copy()
    return replace(values, **found)
