"""Agents with tokens that walk on a graph, and their server, each from inside."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import TokenAlgorithm
from crosshatch.local.visits.agent import start_of
from crosshatch.parties.agents.graph_agent import Agent, agents_of
from crosshatch.parties.holdings.agreed import Beforehand
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import agent_name, server_name
from crosshatch.parties.party import AnyRole, Party
from crosshatch.parties.post import Post
from crosshatch.protocol.agents import check_walks
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.walks import Ids, SeededWalk
from crosshatch.task.task import Task

SERVER = server_name(0, 0)


@dataclass(frozen=True)
class Tokens:
    """Where each token is, which everybody knows; an agent's `copies[g]` (p,) of its block for token g.

    `held[g]` (n, e) are the scores of a token that the agent has.
    """

    at: Ids
    copies: tuple[Tensor, ...] = ()
    held: Mapping[int, Tensor] = field(default_factory=dict)


@dataclass(kw_only=True)
class TokenRole(AnyRole):
    """An onlooker: it knows where the tokens are."""

    walk: SeededWalk

    def visit(self, tokens: Tokens, *, steps: int, step_size: float | None) -> Tokens:  # noqa: ARG002
        """The steps of each holder on its copy for the token."""
        return tokens

    def average_met(self, tokens: Tokens) -> Tokens:
        """A holder of several tokens makes them one; everybody does so with the copies, knowing who met."""
        return tokens

    def average_tokens(self, tokens: Tokens, *, round: int) -> Tokens:
        """Scores of all tokens to the server and back, or with blocks that are not linear everybody's outputs."""
        return self._add_up(tokens, "average tokens", round, held=self.beforehand.linear)

    def pass_tokens(self, tokens: Tokens, *, round: int, stay: bool = False) -> Tokens:
        """A message for every token that moves."""
        return replace(tokens, at=self.walk.next(tokens.at, round, stay=stay))

    def set_out(self, tokens: Tokens) -> Tokens:
        return self._add_up(tokens, "gather", 0, held=False) if self.beforehand.gathers else tokens

    def _add_up(self, tokens: Tokens, exchange: str, round: int, *, held: bool) -> Tokens:  # noqa: ARG002
        return tokens


@final
@dataclass(kw_only=True)
class TokenServer(TokenRole):
    """It averages scores, or adds outputs up; it has neither data nor blocks."""

    agents: int

    def _add_up(self, tokens: Tokens, exchange: str, round: int, *, held: bool) -> Tokens:
        senders = list(enumerate(tokens.at.tolist())) if held else [(k, k) for k in range(self.agents)]
        arrived = torch.stack([self.post.recv(agent_name(k), Call(exchange, round, n))[0] for n, k in senders])
        scores = arrived.mean(0) if held else arrived.sum(0)
        for token, k in enumerate(tokens.at.tolist()):
            self.post.send(agent_name(k), "agent-server down", Call(exchange, round, token), scores)
        return tokens


@final
@dataclass(kw_only=True)
class TokenAgent(TokenRole):
    """An agent, with a copy of its block for every token."""

    agent: Agent
    near: tuple[int, ...]  # the numbers of its neighbours

    @property
    def _rows(self) -> tuple[int, int]:
        """The shape of a token's scores."""
        return len(self.agent.y), self.beforehand.widths[self.agent.number]

    def _mine(self, at: Ids) -> list[int]:
        return [token for token, k in enumerate(at.tolist()) if k == self.agent.number]

    def visit(self, tokens: Tokens, *, steps: int, step_size: float | None) -> Tokens:
        copies, held = list(tokens.copies), dict(tokens.held)
        for token in self._mine(tokens.at):
            step = self.agent.largest_step if step_size is None else step_size
            copies[token], held[token] = self.agent.visit(copies[token], held[token], steps, step)
        return replace(tokens, copies=tuple(copies), held=held)

    def average_met(self, tokens: Tokens) -> Tokens:
        """Its copies for tokens that met, and their scores where they met here."""
        for k in np.unique(tokens.at).tolist():
            together = np.flatnonzero(tokens.at == k).tolist()
            if k == self.agent.number:
                scores = torch.stack([tokens.held[token] for token in together]).mean(0)
                tokens = replace(tokens, held={**tokens.held, **dict.fromkeys(together, scores)})
            tokens = _average_copies(tokens, together)
        return tokens

    def average_tokens(self, tokens: Tokens, *, round: int) -> Tokens:
        """Its copies become their average first."""
        return super().average_tokens(_average_copies(tokens, range(len(tokens.at))), round=round)

    def _add_up(self, tokens: Tokens, exchange: str, round: int, *, held: bool) -> Tokens:
        mine, number = self._mine(tokens.at), self.agent.number
        given = {t: tokens.held[t] for t in mine} if held else {number: self.agent.embed(tokens.copies[0])}
        for n, scores in given.items():
            self.post.send(SERVER, "agent-server up", Call(exchange, round, n), scores)
        rows = self._rows
        got = {token: self.post.recv(SERVER, Call(exchange, round, token), rows)[0] for token in mine}
        return replace(tokens, held={**tokens.held, **got})

    def pass_tokens(self, tokens: Tokens, *, round: int, stay: bool = False) -> Tokens:
        after, held, me = super().pass_tokens(tokens, round=round, stay=stay), dict(tokens.held), self.agent.number
        moves = [
            (Call("pass token", round, token), here, there)
            for token, (here, there) in enumerate(zip(tokens.at.tolist(), after.at.tolist(), strict=True))
            if here != there
        ]
        for call, here, there in moves:
            if here == me:
                self.post.send(agent_name(there), "agent-agent across", call, held.pop(call.use))
        for call, here, there in moves:
            if there == me:
                (held[call.use],) = self.post.recv(agent_name(here), call, self._rows)
        return replace(after, held=held)


def has_server(algorithm: TokenAlgorithm, beforehand: Beforehand) -> bool:
    return algorithm.server or beforehand.gathers


def _average_copies(tokens: Tokens, together: Sequence[int]) -> Tokens:
    mean = torch.stack([tokens.copies[token] for token in together]).mean(0)
    return replace(tokens, copies=tuple(mean if g in together else one for g, one in enumerate(tokens.copies)))


def token_agents(
    data: FederatedData, task: Task, algorithm: TokenAlgorithm, *, seed: int, codecs: Mapping[str, AnyCodec],
    only: Collection[Name] | None = None, beforehand: Beforehand | None = None,
) -> dict[Name, Party]:  # fmt: skip
    """Every token at its first agent with scores of zero; a server where the text has use for one."""
    agents = agents_of(data, task, type(algorithm).__name__, codecs, only)
    graph = algorithm.graph.build(task.names, seed=seed)
    walk = SeededWalk(graph, seed, each=algorithm.start == "each")
    at = walk.begin(algorithm.tokens)
    check_walks(graph, task.names, at, server=algorithm.server, stay=algorithm.stay)
    first = [start_of(task, agent.number, agent.model.vectors.first) for agent in agents]
    if beforehand is None:
        outputs = [agent.embed(theta) for agent, theta in zip(agents, first, strict=True)]
        linear = all(agent.is_linear for agent in agents)
        gathers = not linear and any(bool(one.any()) for one in outputs)
        beforehand = Beforehand((outputs[0].shape[1],) * len(agents), linear=linear, gathers=gathers)
    dtype, rows = data.silos[0].train.dtype, (len(data.y_train), beforehand.widths[0])
    found: dict[Name, Party] = {}
    for agent, theta in zip(agents, first, strict=True):
        held = {token: torch.zeros(rows, dtype=dtype) for token, k in enumerate(at.tolist()) if k == agent.number}
        near = tuple(sorted(graph[agent.number]))
        role = TokenAgent(post=Post(dtype), beforehand=beforehand, walk=walk, agent=agent, near=near)
        name = agent_name(agent.number)
        found[name] = Party(name, role, algorithm, name, Tokens(at, (theta,) * algorithm.tokens, held))
    if has_server(algorithm, beforehand) and (only is None or SERVER in only):
        server = TokenServer(post=Post(dtype), beforehand=beforehand, walk=walk, agents=len(data.silos))
        found[SERVER] = Party(SERVER, server, algorithm, SERVER, Tokens(at))
    return found
