"""STCD and MTCD: tokens with everybody's scores walk on a graph; whoever holds one improves its own block.

Valdeira, Chi, Soares, Xavier, *A Multi-Token Coordinate Descent Method for Vertical Federated Learning* (2022),
Algorithms 1 and 2.   z_gamma: token   theta_gamma,k: agent k's copy of its block for token gamma   Gamma: tokens
Q: local_steps   S: hops_between_averages   mu: step_size

A round is one visit of Q steps and one hop of all tokens. The paper's loops average and hop before the steps, ours
after them: the same sequence, without its first average (of zeros) and with the start drawn instead of hopped to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crosshatch.errors import ConfigError, require_whole
from crosshatch.exchanges import Planned, TokenFederation, Tokens
from crosshatch.graphs import Graph
from crosshatch.schedules import Schedule, rate

StepSize = Schedule | float | Literal["auto"]


@dataclass(frozen=True)
class STCD(Planned):
    """Single-token coordinate descent: one token, no server (Algorithm 1).

    `step_size` "auto" is one over the smoothness of the visited block.

    >>> STCD(graph=Graph("ring")).tokens
    1
    """

    local_steps: int = 20
    step_size: StepSize = "auto"
    graph: Graph = Graph()
    start: Literal["random", "each"] = "random"
    stay: bool = False

    shape = "V(Q)"
    finds_step = True
    tokens: ClassVar[int] = 1
    server: ClassVar[bool] = False
    meeting: ClassVar[Literal["pass", "average"]] = "pass"

    def run_round(self, fed: TokenFederation[Tokens], tokens: Tokens, r: int) -> Tokens:
        """Q steps at the agent that holds the token, then the hop."""
        tokens = fed.visit(tokens, steps=self.local_steps, step_size=_rate(self.step_size, r))  # the case k = k^t
        return fed.pass_tokens(tokens, round=r, stay=self.stay)  # to k^(t+1), uniform among the neighbours


@dataclass(frozen=True)
class MTCD(Planned):
    """Multi-token coordinate descent: several tokens, averaged at a server every S hops (Algorithm 2).

    S = 0 (`hops_between_averages`) means no server: independent runs of STCD, whose average is the model. `meeting`
    "average" makes tokens one that are at an agent together, which needs no server. The client-server limit is the
    graph "empty" with `stay`, as many tokens as agents and `start` "each".

    >>> MTCD(tokens=4, hops_between_averages=0).server
    False
    """

    tokens: int = 10
    local_steps: int = 20
    step_size: StepSize = "auto"
    hops_between_averages: int = 10
    graph: Graph = Graph()
    start: Literal["random", "each"] = "random"
    stay: bool = False
    meeting: Literal["pass", "average"] = "pass"

    shape = "V(Q)"
    finds_step = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("algorithm.tokens", self.tokens, least=1)
        require_whole("algorithm.hops_between_averages", self.hops_between_averages)
        if self.hops_between_averages < 0:
            raise ConfigError(
                f"algorithm.hops_between_averages = {self.hops_between_averages}: S is 1 or more, or 0 for no server"
            )

    @property
    def server(self) -> bool:
        return self.hops_between_averages > 0

    def run_round(self, fed: TokenFederation[Tokens], tokens: Tokens, r: int) -> Tokens:
        """Q steps for every token, every S-th time the averages, then the hop."""
        tokens = fed.visit(tokens, steps=self.local_steps, step_size=_rate(self.step_size, r))  # the case k = k^t_gamma
        if self.meeting == "average":
            tokens = fed.average_met(tokens)  # section 3.2, "random intersections"
        if self.server and (r + 1) % self.hops_between_averages == 0:
            tokens = fed.average_tokens(tokens, round=r)  # z at the server, theta_k at the agents
        return fed.pass_tokens(tokens, round=r, stay=self.stay)  # to k^(t+1)_gamma, uniform among the neighbours


def _rate(step_size: StepSize, r: int) -> float | None:
    return None if step_size == "auto" else rate(step_size, r)
