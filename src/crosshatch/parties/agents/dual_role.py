"""Agents that agree on a dual over a graph, each from inside."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import DualAlgorithm
from crosshatch.graphs import require_connected
from crosshatch.parties.agents.graph_agent import Agent, agents_of
from crosshatch.parties.holdings.agreed import Beforehand
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import agent_name
from crosshatch.parties.party import AnyRole, Party
from crosshatch.parties.post import Post
from crosshatch.protocol.agents import DualSteps, dual_steps
from crosshatch.protocol.message_contents import Call
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task


@dataclass(frozen=True)
class Dual:
    """What one agent has: its block, its dual, the sum of its multipliers; block and sum also extrapolated."""

    weights: Tensor  # (p,)
    dual: Tensor  # (n, 1)
    total: Tensor  # (n, 1)
    ahead: Tensor  # (p,)
    total_ahead: Tensor  # (n, 1)


@final
@dataclass(kw_only=True)
class DualAgent(AnyRole):
    """One of `count` agents; `near` are the numbers of its neighbours."""

    agent: Agent
    near: tuple[int, ...]
    steps: DualSteps
    count: int

    def descend(self, own: Dual) -> Dual:
        """`w+ = prox(w - mu_w X' y)`, and `2 w+ - w` for the dual."""
        mu = self.steps.weights
        moved = self.agent.shrink(own.weights - mu * self.agent.slope(own.weights, own.dual), mu)
        return replace(own, weights=moved, ahead=2 * moved - own.weights)

    def compare(self, own: Dual, *, round: int) -> Dual:
        """Its dual to its neighbours, theirs to it; `s+ = s - mu_x sum(y - their y)`, and `2 s+ - s`."""
        call, differences = Call("compare duals", round), torch.zeros_like(own.dual)
        for j in self.near:
            self.post.send(agent_name(j), "agent-agent across", call, own.dual)
        for j in self.near:
            differences = differences + (own.dual - self.post.recv(agent_name(j), call, tuple(own.dual.shape))[0])
        total = own.total - self.steps.consensus * differences
        return replace(own, total=total, total_ahead=2 * total - own.total)

    def ascend(self, own: Dual) -> Dual:
        """`y+ = prox(y + mu_y (X w + s))` of its share, one of K, of the conjugate loss."""
        share, y = self.steps.duals / self.count, self.agent.y[:, None]
        v = own.dual + self.steps.duals * (self.agent.embed(own.ahead) + own.total_ahead)
        squared = isinstance(self.agent.model.loss, Squared)
        return replace(own, dual=(v - share * y) / (1.0 + share) if squared else _logistic_proximal(v, y, share))


def _logistic_proximal(v: Tensor, y: Tensor, share: float) -> Tensor:
    """`sigmoid(z) - y` for the z with `sigmoid(z) + share z = v + y`, by halving the interval it must lie in."""
    low, high = (v + y - 1.0) / share, (v + y) / share
    for _ in range(100):
        middle = (low + high) / 2
        above = torch.sigmoid(middle) + share * middle > v + y
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return torch.sigmoid((low + high) / 2) - y


def dual_agents(
    data: FederatedData, task: Task, algorithm: DualAlgorithm, *, seed: int, codecs: Mapping[str, AnyCodec],
    only: Collection[Name] | None = None, beforehand: Beforehand | None = None,
) -> dict[Name, Party]:  # fmt: skip
    """Zeros everywhere; beforehand the agents told each other the norms of their blocks, which decide the steps."""
    agents = agents_of(data, task, type(algorithm).__name__, codecs, only)
    graph = algorithm.graph.build(task.names, seed=seed)
    require_connected(graph, task.names, "consensus")
    if beforehand is None:
        steps = dual_steps(algorithm, task, graph, norm_squared=max(agent.norm_squared for agent in agents))
        beforehand = Beforehand((1,) * len(agents), steps=(steps.weights, steps.duals, steps.consensus))
    assert beforehand.steps is not None
    steps = DualSteps(*beforehand.steps)
    found: dict[Name, Party] = {}
    for agent in agents:
        weights, rows = torch.zeros_like(agent.model.vectors.first), agent.x.new_zeros(len(agent.y), 1)
        near = tuple(sorted(graph[agent.number]))
        role = DualAgent(
            post=Post(agent.x.dtype), beforehand=beforehand, agent=agent, near=near, steps=steps, count=len(data.silos)
        )
        name = agent_name(agent.number)
        found[name] = Party(name, role, algorithm, name, Dual(weights, rows, rows, weights, rows))
    return found
