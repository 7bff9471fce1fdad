"""The state of a simulation on a graph, which rounds change: tokens on their walks, or duals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

import torch
from torch import Tensor

from crosshatch.simulator.allocator import aligned
from crosshatch.simulator.graph.simulated_duals import Duals
from crosshatch.simulator.graph.simulated_tokens import Tokens

if TYPE_CHECKING:
    import networkx as nx

Values = TypeVar("Values", Tokens, Duals)


class GraphState(ABC, Generic[Values]):
    """Agents on a graph: what all of them have is carried from round to round."""

    summed = True

    def __init__(self, federation: Any, algorithm: Any, values: Values) -> None:
        self.federation, self.algorithm = federation, algorithm
        self.values: Values = values

    @property
    def seconds(self) -> float:
        """The time of the last token or agent."""
        return float(self.values.seconds.max())

    @property
    def strategies(self) -> dict[str, str]:
        """How visits are computed; of duals there is one way only."""
        return dict(self.federation.chosen)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The average of the tokens' models, or the agents' blocks."""
        found: tuple[Tensor, ...] = self.federation.model(self.values)
        return found

    def run_round(self, r: int) -> None:
        """One visit and one hop of all tokens, or one iteration."""
        self.values = self.algorithm.run_round(self.federation, self.values, r)

    def align(self) -> None:
        """All tensors. Rounds write into them, so there is nothing to do after the first time."""
        tensors: dict[str, Any] = {
            name: aligned(value) for name, value in vars(self.values).items() if isinstance(value, Tensor)
        }
        self.values = replace(self.values, **tensors)

    def communications(self, messages: int) -> int:
        """Messages in units of one number per sample."""
        return messages * int(self.federation.links.shape[1])

    def snapshot(self) -> dict[str, Tensor]:
        """All fields as tensors of their own, because rounds change the values in place."""
        every = [field.name for field in fields(self.values)]
        return {name: torch.as_tensor(getattr(self.values, name)).clone() for name in every}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Copies of what was stored, each of the kind and on the device the value has now."""
        found: dict[str, Any] = {}
        for field in fields(self.values):
            now, then = getattr(self.values, field.name), tensors[field.name]
            assert tuple(then.shape) == tuple(now.shape)
            found[field.name] = then.to(now).clone() if isinstance(now, Tensor) else then.numpy().copy()
        self.values = replace(self.values, **found)

    @abstractmethod
    def broken(self) -> str | None:
        """What is no longer finite, in words."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The graph and what happened on it."""


@final
class TokenState(GraphState[Tokens]):
    """Tokens on their walks."""

    def broken(self) -> str | None:
        """Whether a token has a NaN or an infinity.

        Where blocks are linear one that is not finite spoils all scores, so one score per token is enough.
        """
        scores = self.values.scores[:, 0, 0].tolist() if self.federation.linear else [float(self.values.scores.sum())]
        return None if all(map(isfinite, scores)) else "a token is"

    def describe(self) -> dict[str, Any]:
        """Edges, tokens, and visits."""
        fed, visits = self.federation, self.values.visits
        return {"edges": _edges(fed.graph), "tokens": fed.count, "server": fed.server, "visits": visits.tolist()}


@final
class DualState(GraphState[Duals]):
    """Duals that come to agree."""

    def broken(self) -> str | None:
        """Whether a dual has a NaN or an infinity."""
        return None if isfinite(float(self.values.duals.sum())) else "a dual is"

    def describe(self) -> dict[str, Any]:
        return {"edges": _edges(self.federation.graph)}


def _edges(graph: nx.Graph) -> list[list[int]]:
    return sorted([min(edge), max(edge)] for edge in graph.edges)
