"""Duals on a graph, agent after agent; see `crosshatch.exchanges.DualFederation` for the meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import DualAlgorithm
from crosshatch.graphs import require_connected
from crosshatch.protocol.agents import dual_steps
from crosshatch.protocol.message_contents import Call
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from crosshatch.testing.parties.graph.agent_party import AgentParty, agents_of
from crosshatch.testing.parties.post import Post


@dataclass(frozen=True)
class Dual:
    """What one agent has: its block, its dual, the sum of its multipliers; block and sum also extrapolated, `ahead`."""

    weights: Tensor  # (p,)
    dual: Tensor  # (n, 1)
    total: Tensor  # (n, 1)
    ahead: Tensor  # (p,)
    total_ahead: Tensor  # (n, 1)


class DualParties:
    """Agents on a connected graph; the value that the algorithm's text hands on has one entry per agent."""

    def __init__(
        self, data: FederatedData, task: Task, algorithm: DualAlgorithm, *, seed: int,
        codecs: Mapping[str, AnyCodec], post: Post,
    ) -> None:  # fmt: skip
        """Zeros everywhere; beforehand the agents told each other the norms of their blocks, which decide the steps."""
        self.algorithm, self.post = algorithm, post
        self.agents = agents_of(data, task, type(algorithm).__name__, codecs)
        self.graph = algorithm.graph.build(task.names, seed=seed)
        require_connected(self.graph, task.names, "consensus")
        self.steps = dual_steps(
            (algorithm.step_size, algorithm.dual_step, algorithm.consensus_step),
            self.graph,
            norm_squared=max(self._tell(agent.norm_squared) for agent in self.agents),
            convexity=task.regulariser.l2,
            squared=isinstance(task.loss, Squared),
        )
        self.duals = tuple(self._begin(agent) for agent in self.agents)

    def _tell(self, norm: float) -> float:
        """A number of the set-up, before anything is counted."""
        (arrived,) = self.post.carry(None, Call("norm", 0), torch.tensor([norm], dtype=torch.float64))
        return float(arrived)

    def _begin(self, agent: AgentParty) -> Dual:
        weights, rows = torch.zeros_like(agent.model.first), agent.x.new_zeros(len(agent.y), 1)
        return Dual(weights, rows, rows, weights, rows)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The agents' blocks."""
        return tuple(dual.weights for dual in self.duals)

    def run_round(self, r: int) -> None:
        """One iteration."""
        self.duals = self.algorithm.run_round(self, self.duals, r)

    def descend(self, duals: tuple[Dual, ...]) -> tuple[Dual, ...]:
        """`w+ = prox(w - mu_w X' y)`, and `2 w+ - w` for the duals."""
        mu, after = self.steps.weights, []
        for agent, own in zip(self.agents, duals, strict=True):
            moved = agent.shrink(own.weights - mu * agent.slope(own.weights, own.dual), mu)
            after.append(Dual(moved, own.dual, own.total, 2 * moved - own.weights, own.total_ahead))
        return tuple(after)

    def compare(self, duals: tuple[Dual, ...], *, round: int) -> tuple[Dual, ...]:
        """Every agent tells its neighbours its dual; `s+ = s - mu_x sum(y - their y)`, and `2 s+ - s`."""
        after = []
        for k, own in enumerate(duals):
            differences = torch.zeros_like(own.dual)
            for j in sorted(self.graph[k]):
                (theirs,) = self.post.carry("agent-agent across", Call("compare duals", round), duals[j].dual)
                differences = differences + (own.dual - theirs)
            total = own.total - self.steps.consensus * differences
            after.append(Dual(own.weights, own.dual, total, own.ahead, 2 * total - own.total))
        return tuple(after)

    def ascend(self, duals: tuple[Dual, ...]) -> tuple[Dual, ...]:
        """`y+ = prox(y + mu_y (X w + s))` of the agent's share, one of K, of the conjugate loss."""
        share, after = self.steps.duals / len(self.agents), []
        for agent, own in zip(self.agents, duals, strict=True):
            v, y = own.dual + self.steps.duals * (agent.embed(own.ahead) + own.total_ahead), agent.y[:, None]
            squared = isinstance(agent.model.loss, Squared)
            dual = (v - share * y) / (1.0 + share) if squared else _logistic_proximal(v, y, share)
            after.append(Dual(own.weights, dual, own.total, own.ahead, own.total_ahead))
        return tuple(after)


def _logistic_proximal(v: Tensor, y: Tensor, share: float) -> Tensor:
    """`sigmoid(z) - y` for the z with `sigmoid(z) + share z = v + y`, by halving the interval it must lie in."""
    low, high = (v + y - 1.0) / share, (v + y) / share
    for _ in range(100):
        middle = (low + high) / 2
        above = torch.sigmoid(middle) + share * middle > v + y
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return torch.sigmoid((low + high) / 2) - y
