"""What an algorithm may ask of agents with tokens that walk on a graph.

As in `crosshatch.exchanges.vertical`, an algorithm hands values on without looking inside. `Tokens` are the travelling
scores, where each token is, and every agent's copy of its block for each token.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeVar, runtime_checkable

from crosshatch.exchanges.algorithm import Algorithm
from crosshatch.graphs import Graph

Tokens = TypeVar("Tokens")


class TokenFederation(Protocol[Tokens]):
    """Agents with a block each on a graph, tokens that walk on it, perhaps a server that reaches everybody.

    Walks come from the shared seed, so every agent knows where each token is and averages its copies without a message.
    The tokens handed in are used up: go on with those returned.
    """

    def visit(self, tokens: Tokens, *, steps: int, step_size: float | None) -> Tokens:
        """`steps` proximal gradient steps for each token on the block of the agent that holds it: no message.

        The token's scores follow the block. None stands for a step of one over the block's smoothness, the
        largest that never raises its objective.
        """

    def average_met(self, tokens: Tokens) -> Tokens:
        """Tokens held by one agent become their average, with their models everywhere: no message."""

    def average_tokens(self, tokens: Tokens, *, round: int) -> Tokens:
        """From holders to server and back: all tokens become their average, agents average their copies.

        With blocks that are not linear in their parameters the average of the scores is not the score of the average:
        every agent sends its averaged block's outputs instead, and the server adds them up.
        """

    def pass_tokens(self, tokens: Tokens, *, round: int, stay: bool = False) -> Tokens:
        """Every holder sends its token to a neighbour drawn uniformly; with `stay` it may draw itself."""


@runtime_checkable
class TokenAlgorithm(Algorithm, Protocol):
    """A method whose tokens walk on a graph; a round is one visit and one hop of all tokens."""

    graph: Graph  # who may pass a token to whom
    tokens: int  # how many tokens there are
    start: Literal["random", "each"]  # where tokens begin: drawn from the seed, or token i at agent i
    server: bool  # whether tokens are averaged at a server
    meeting: Literal["pass", "average"]  # what tokens at one agent do
    stay: bool  # whether a token may stay where it is
