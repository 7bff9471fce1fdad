"""What an algorithm may ask of agents that agree on a dual over a graph.

As in `crosshatch.exchanges.vertical`, an algorithm hands values on without looking inside. `Duals` are every agent's
block with its own opinion of the loss's derivative.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeVar, runtime_checkable

from crosshatch.exchanges.algorithm import Algorithm
from crosshatch.graphs import Graph

Duals = TypeVar("Duals")


class DualFederation(Protocol[Duals]):
    """Agents with a block, a dual and a multiplier each, on a connected graph, without a server."""

    def descend(self, duals: Duals) -> Duals:
        """A proximal gradient step of every block against its agent's dual: no message."""

    def compare(self, duals: Duals, *, round: int) -> Duals:
        """Every agent sends its dual to its neighbours and moves its multiplier by the differences."""

    def ascend(self, duals: Duals) -> Duals:
        """A proximal step of every dual on its agent's share of the conjugate loss: no message."""


@runtime_checkable
class DualAlgorithm(Algorithm, Protocol):
    """A method by consensus on the dual over a graph; steps may be left to the engine."""

    @property
    def step_size(self) -> float | Literal["auto"]:
        """mu_w: of the blocks."""

    dual_step: float | Literal["auto"]  # mu_y: of the duals
    consensus_step: float | Literal["auto"]  # mu_x: of the multipliers that make the duals agree
    graph: Graph
