"""The course of a simulation on a graph: tokens on their walks, or duals."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, TypeVar

import networkx as nx
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.exchanges import DualAlgorithm, TokenAlgorithm
from crosshatch.simulator.allocator import aligned
from crosshatch.simulator.graph.duals import Duals, SimulatedDuals
from crosshatch.simulator.graph.tokens import SimulatedTokens, Tokens

State = TypeVar("State", Tokens, Duals)
_TRACED = 50  # hops of a walk that are described


@dataclass
class TokenCourse:
    """Tokens on their walks."""

    federation: SimulatedTokens
    algorithm: TokenAlgorithm
    tokens: Tokens

    summed = True

    @property
    def seconds(self) -> float:
        """That of the last token."""
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
        """Scores and models, which are written in place: nothing to do after the first time."""
        _align(self.tokens)

    def broken(self) -> str | None:
        """Whether a token has a NaN or an infinity."""
        return "a token is" if self.federation.broken(self.tokens) else None

    def communications(self, messages: int) -> int:
        """Messages in units of one number a sample."""
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
        return _snapshot(self.tokens)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """All fields as they were."""
        _restore(self.tokens, tensors)


@dataclass
class DualCourse:
    """Duals that come to agree."""

    federation: SimulatedDuals
    algorithm: DualAlgorithm
    duals: Duals

    summed = True

    @property
    def seconds(self) -> float:
        """That of the last agent."""
        return float(self.duals.seconds.max())

    @property
    def strategies(self) -> dict[str, str]:
        """One way only."""
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
        _align(self.duals)

    def broken(self) -> str | None:
        """Whether a dual has a NaN or an infinity."""
        return None if isfinite(float(self.duals.duals.sum())) else "a dual is"

    def communications(self, messages: int) -> int:
        """Messages in units of one number a sample."""
        return messages * self.federation.links.shape[1]

    def describe(self) -> dict[str, Any]:
        """The edges."""
        return {"edges": _edges(self.federation.graph)}

    def snapshot(self) -> dict[str, Tensor]:
        """All fields."""
        return _snapshot(self.duals)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """All fields as they were."""
        _restore(self.duals, tensors)


def _edges(graph: nx.Graph) -> list[list[int]]:
    return sorted([min(edge), max(edge)] for edge in graph.edges)


def _snapshot(state: State) -> dict[str, Tensor]:
    """Copies, because rounds change the state in place."""
    values: dict[str, Tensor | npt.NDArray[np.generic]] = {f.name: getattr(state, f.name) for f in fields(state)}
    return {
        name: value.clone() if isinstance(value, Tensor) else torch.as_tensor(value.copy())
        for name, value in values.items()
    }


def _align(state: State) -> None:
    for name, value in vars(state).items():
        if isinstance(value, Tensor):
            setattr(state, name, aligned(value))


def _restore(state: State, tensors: dict[str, Tensor]) -> None:
    for field in fields(state):
        now, stored = getattr(state, field.name), tensors[field.name]
        assert tuple(stored.shape) == tuple(now.shape)
        setattr(state, field.name, stored.to(now).clone() if isinstance(now, Tensor) else stored.numpy().copy())
