"""Tokens on a graph, agent after agent; see `crosshatch.exchanges.TokenFederation` for the meaning."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import TokenAlgorithm
from crosshatch.local.visits.agent import start_of
from crosshatch.protocol.agents import check_walks
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.walks import Ids, SeededWalk
from crosshatch.task.task import Task
from crosshatch.testing.parties.graph.agent_party import AgentParty, agents_of
from crosshatch.testing.parties.post import Post


class TokenParties:
    """Agents on a graph, perhaps with a server.

    The value that the algorithm's text hands on is where each token is, which everybody knows. Scores are with the
    agent that holds the token; every agent has a copy of its block for every token.
    """

    def __init__(
        self, data: FederatedData, task: Task, algorithm: TokenAlgorithm, *, seed: int,
        codecs: Mapping[str, AnyCodec], post: Post,
    ) -> None:  # fmt: skip
        """Every token at its first agent with scores of zero, or with the blocks' outputs added up by the server."""
        self.algorithm, self.post, self.tokens = algorithm, post, algorithm.tokens
        self.agents = agents_of(data, task, type(algorithm).__name__, codecs)
        graph = algorithm.graph.build(task.names, seed=seed)
        self.walk = SeededWalk(graph, seed, each=algorithm.start == "each")
        self.at = self.walk.begin(self.tokens)
        check_walks(graph, task.names, self.at, server=algorithm.server, stay=algorithm.stay)
        for agent in self.agents:
            agent.copies = [start_of(task, agent.number, agent.model.first)] * self.tokens
        first = [agent.embed(agent.copies[0]) for agent in self.agents]
        for token, agent in self._holders(self.at):
            agent.held[token] = torch.zeros_like(first[agent.number])
        self._linear = all(agent.is_linear for agent in self.agents)
        if not self._linear and any(bool(outputs.any()) for outputs in first):
            self._add_up(self.at, "gather", 0)

    def _holders(self, at: Ids) -> list[tuple[int, AgentParty]]:
        return [(token, self.agents[k]) for token, k in enumerate(at.tolist())]

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The average of the tokens' models."""
        return tuple(torch.stack(agent.copies).mean(0) for agent in self.agents)

    def run_round(self, r: int) -> None:
        """One visit and one hop of all tokens."""
        self.at = self.algorithm.run_round(self, self.at, r)

    def visit(self, tokens: Ids, *, steps: int, step_size: float | None) -> Ids:
        """The steps of each holder on its copy for the token."""
        for token, agent in self._holders(tokens):
            agent.visit(token, steps, agent.largest_step if step_size is None else step_size)
        return tokens

    def average_met(self, tokens: Ids) -> Ids:
        """A holder of several tokens makes them one; everybody does so with the copies, knowing who met."""
        for k in np.unique(tokens).tolist():
            together = np.flatnonzero(tokens == k).tolist()
            holder = self.agents[k]
            scores = torch.stack([holder.held[token] for token in together]).mean(0)
            holder.held |= dict.fromkeys(together, scores)
            self._average_copies(together)
        return tokens

    def _average_copies(self, together: list[int]) -> None:
        for agent in self.agents:
            mean = torch.stack([agent.copies[token] for token in together]).mean(0)
            for token in together:
                agent.copies[token] = mean

    def average_tokens(self, tokens: Ids, *, round: int) -> Ids:
        """Holders to server to holders, or with blocks that are not linear everybody's outputs to the server."""
        self._average_copies(list(range(self.tokens)))
        if not self._linear:
            self._add_up(tokens, "average tokens", round)
            return tokens
        arrived: list[Tensor] = []
        for token, agent in self._holders(tokens):
            arrived += self.post.carry("agent-server up", Call("average tokens", round, token), agent.held[token])
        self._from_server(tokens, torch.stack(arrived).mean(0), "average tokens", round)
        return tokens

    def _add_up(self, tokens: Ids, exchange: str, round: int) -> None:
        arrived: list[Tensor] = []
        for agent in self.agents:
            outputs = agent.embed(agent.copies[0])
            arrived += self.post.carry("agent-server up", Call(exchange, round, agent.number), outputs)
        self._from_server(tokens, torch.stack(arrived).sum(0), exchange, round)

    def _from_server(self, tokens: Ids, scores: Tensor, exchange: str, round: int) -> None:
        for token, agent in self._holders(tokens):
            (agent.held[token],) = self.post.carry("agent-server down", Call(exchange, round, token), scores)

    def pass_tokens(self, tokens: Ids, *, round: int, stay: bool = False) -> Ids:
        """A message for every token that moves."""
        after = self.walk.next(tokens, round, stay=stay)
        for token, agent in self._holders(tokens):
            to = self.agents[int(after[token])]
            if to is not agent:
                scores = agent.held.pop(token)
                (to.held[token],) = self.post.carry("agent-agent across", Call("pass token", round, token), scores)
        return after
