"""Tokens on a graph, all agents in one process; see `crosshatch.exchanges.TokenFederation` for the meaning.

Every token has a model: a copy of each block, kept by the block's agent. All copies lie in one tensor (tokens, p), and
`scores[g]` is the output of model g for all samples after every visit and every average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.visits.agent import Agent
from crosshatch.protocol.walks import Walk
from crosshatch.simulator.accounting.agent_links import AgentLinks, Ids, Seconds

if TYPE_CHECKING:
    import networkx as nx


@dataclass
class Tokens:
    """All tokens. Visits and averages write into their tensors, no exchange puts another one in their place."""

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
        """Note where each block stands among all parameters, how each agent computes, and how long it takes."""
        ends = np.cumsum([len(weights) for weights in self.start]).tolist()
        self._spans = [slice(high - len(weights), high) for high, weights in zip(ends, self.start, strict=True)]
        self.linear = all(agent.is_linear for agent in self.agents)
        self._step_seconds = self.links.step_seconds.tolist()
        self.chosen = {name: agent.way for name, agent in zip(self.links.agents, self.agents, strict=True)}

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
        if not self.linear and any(bool(self._embed(tokens, k).any()) for k in range(len(self.agents))):
            assert self.server, "blocks with outputs at the start need a server"
            self._add_up(tokens, "gather", round=0)
        return tokens

    def visit(self, tokens: Tokens, *, steps: int, step_size: float | None) -> Tokens:
        """Token by token; each has copies of its own, so the order matters to the clocks alone."""
        at = tokens.at.tolist()
        for g, k in enumerate(at):
            step = self.agents[k].largest_step if step_size is None else step_size
            self.agents[k].visit(tokens.models[g, self._spans[k]], tokens.scores[g], steps=steps, step_size=step)
        seconds, free = tokens.seconds, tokens.free
        # who comes first is served first
        for g in [0] if self.count == 1 else np.argsort(seconds, kind="stable").tolist():
            k = at[g]
            seconds[g] = free[k] = max(seconds[g], free[k]) + steps * self._step_seconds[k]
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
        if not self.linear:
            self._add_up(tokens, "average tokens", round=round)
            return tokens
        tokens.scores[:] = tokens.scores.mean(0, keepdim=True)
        at = tokens.at.tolist()
        tokens.seconds = self.links.ask_server(at, tokens.seconds, at, "average tokens", round=round)
        return tokens

    def _add_up(self, tokens: Tokens, exchange: str, *, round: int) -> None:
        """Every agent sends its block's outputs, the server returns their sum to the tokens' holders."""
        everyone = range(len(self.agents))
        ready = tokens.free.copy()
        np.maximum.at(ready, tokens.at, tokens.seconds)
        total = tokens.scores.new_zeros(tokens.scores.shape[1:])
        for k in everyone:
            total += self._embed(tokens, k)
        tokens.scores[:] = total
        tokens.seconds = self.links.ask_server(everyone, ready, tokens.at.tolist(), exchange, round=round)

    def _embed(self, tokens: Tokens, agent: int) -> Tensor:
        return self.agents[agent].embed(tokens.models[0, self._spans[agent]])

    def pass_tokens(self, tokens: Tokens, *, round: int, stay: bool = False) -> Tokens:
        """A message for every token that moves."""
        after = self.walk.next(tokens.at, round, stay=stay)
        moving = np.flatnonzero(tokens.at != after)
        senders, receivers, steps = tokens.at[moving].tolist(), after[moving].tolist(), moving.tolist()
        tokens.seconds[moving] += self.links.send(senders, receivers, "pass token", round=round, steps=steps)
        tokens.at = after
        return tokens

    def broken(self, tokens: Tokens) -> str | None:
        """Whether a token has a NaN or an infinity.

        Where blocks are linear one that is not finite spoils all scores, so one score per token is enough.
        """
        scores = tokens.scores[:, 0, 0].tolist() if self.linear else [float(tokens.scores.sum())]
        return None if all(map(isfinite, scores)) else "a token is"

    def describe(self, tokens: Tokens) -> dict[str, Any]:
        """Tokens and visits."""
        return {"tokens": self.count, "server": self.server, "visits": tokens.visits.tolist()}

    def model(self, tokens: Tokens) -> tuple[Tensor, ...]:
        """The average of the tokens' models, block by block."""
        mean = tokens.models[0] if self.count == 1 else tokens.models.mean(0)
        return tuple(mean[span].clone() for span in self._spans)
