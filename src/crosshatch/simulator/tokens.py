"""Tokens on a graph, all agents in one process; see `crosshatch.graph_exchanges.TokenFederation` for the meaning.

Every token has a model: a copy of each block, kept by the block's agent. All copies lie in one tensor (tokens, p), and
`scores[g]` is the output of model g for all samples after every visit and every average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from crosshatch.simulator.agent_links import AgentLinks, Ids, Seconds
from crosshatch.simulator.agents import Agent
from crosshatch.simulator.walks import Walk


@dataclass
class Tokens:
    """All tokens; visits and averages change them in place."""

    at: Ids  # (tokens,) the agent that holds each
    scores: Tensor  # (tokens, n, e)
    models: Tensor  # (tokens, p) all blocks side by side
    seconds: Seconds  # (tokens,) the time each has come to
    free: Seconds  # (agents,) when each agent has done its last visit
    visits: Ids  # (agents,) how many visits each has had


@dataclass
class SimulatedTokens:
    """The exchanges of tokens, answered for all agents at once."""

    agents: Sequence[Agent]
    links: AgentLinks
    walk: Walk
    count: int  # of tokens
    start: Sequence[Tensor]  # first weights of each block
    server: bool
    graph: nx.Graph
    chosen: dict[str, str] = field(default_factory=dict)  # how visits are computed, by silo

    def __post_init__(self) -> None:
        """Note where each block stands among all parameters."""
        ends = np.cumsum([len(weights) for weights in self.start]).tolist()
        self._spans = [slice(high - len(weights), high) for high, weights in zip(ends, self.start, strict=True)]
        self._linear = all(agent.is_linear for agent in self.agents)
        names = self.links.agents
        self.chosen = {name: agent.way for name, agent in zip(names, self.agents, strict=True)}

    def begin(self) -> Tokens:
        """Every token at its first agent, with scores of zero; where blocks begin with outputs the server adds them."""
        like = self.start[0]
        samples, width = self.links.shape
        tokens = Tokens(
            at=self.walk.begin(self.count),
            scores=like.new_zeros(self.count, samples, width),
            models=torch.cat(list(self.start)).repeat(self.count, 1),
            seconds=np.zeros(self.count),
            free=np.zeros(len(self.agents)),
            visits=np.zeros(len(self.agents), dtype=np.int64),
        )
        if not self._linear and any(bool(self._embed(tokens, k).any()) for k in range(len(self.agents))):
            assert self.server, "blocks with outputs at the start need a server"
            self._add_up(tokens, "gather", round=0)
        return tokens

    def visit(self, tokens: Tokens, *, steps: int, step_size: float | None) -> Tokens:
        """Token by token: visits of different agents touch different features."""
        for g in np.argsort(tokens.seconds, kind="stable").tolist():  # who comes first is served first
            k = int(tokens.at[g])
            agent = self.agents[k]
            step = agent.largest_step if step_size is None else step_size
            agent.visit(tokens.models[g, self._spans[k]], tokens.scores[g], steps=steps, step_size=step)
            begin = max(tokens.seconds[g], tokens.free[k])
            tokens.seconds[g] = tokens.free[k] = begin + steps * self.links.step_seconds(k)
            tokens.visits[k] += 1
        return tokens

    def average_met(self, tokens: Tokens) -> Tokens:
        """Tokens at one agent wait for each other and go on as equals."""
        for k in np.unique(tokens.at):
            together = np.flatnonzero(tokens.at == k)
            if len(together) > 1:
                rows = torch.as_tensor(together, device=tokens.models.device)
                for values in (tokens.scores, tokens.models):
                    values[rows] = values[rows].mean(0, keepdim=True)
                tokens.seconds[together] = tokens.seconds[together].max()
        return tokens

    def average_tokens(self, tokens: Tokens, *, round: int) -> Tokens:
        """The scores at the server, the copies at the agents."""
        if self.count > 1:
            tokens.models[:] = tokens.models.mean(0, keepdim=True)
        if not self._linear:
            self._add_up(tokens, "average tokens", round=round)
            return tokens
        numbers = np.arange(self.count)
        up = self.links.to_server(tokens.at, "average tokens", round=round, steps=numbers)
        last = (tokens.seconds + up).max()
        tokens.scores[:] = tokens.scores.mean(0, keepdim=True)
        tokens.seconds = last + self.links.from_server(tokens.at, "average tokens", round=round, steps=numbers)
        return tokens

    def _add_up(self, tokens: Tokens, exchange: str, *, round: int) -> None:
        """Every agent sends its block's outputs, the server returns their sum to the tokens' holders."""
        everyone = np.arange(len(self.agents))
        ready = tokens.free.copy()
        np.maximum.at(ready, tokens.at, tokens.seconds)
        last = (ready + self.links.to_server(everyone, exchange, round=round, steps=everyone)).max()
        total = tokens.scores.new_zeros(tokens.scores.shape[1:])
        for k in everyone:
            total += self._embed(tokens, int(k))
        tokens.scores[:] = total
        numbers = np.arange(self.count)
        tokens.seconds = last + self.links.from_server(tokens.at, exchange, round=round, steps=numbers)

    def _embed(self, tokens: Tokens, agent: int) -> Tensor:
        return self.agents[agent].embed(tokens.models[0, self._spans[agent]])

    def pass_tokens(self, tokens: Tokens, *, round: int, stay: bool = False) -> Tokens:
        """A message for every token that moves."""
        after = self.walk.next(tokens.at, round, stay=stay)
        moving = np.flatnonzero(after != tokens.at)
        tokens.seconds[moving] += self.links.send(
            tokens.at[moving], after[moving], "pass token", round=round, steps=moving
        )
        tokens.at = after
        return tokens

    def trace(self, hops: int, *, stay: bool) -> list[int]:
        """Where the first token began and its first hops: a walk is known from the seed alone."""
        at = self.walk.begin(self.count)
        visited = [int(at[0])]
        for hop in range(hops):
            at = self.walk.next(at, hop, stay=stay)
            visited.append(int(at[0]))
        return visited

    def model(self, tokens: Tokens) -> tuple[Tensor, ...]:
        """The average of the tokens' models, block by block."""
        mean = tokens.models[0] if self.count == 1 else tokens.models.mean(0)
        return tuple(mean[span].clone() for span in self._spans)
