"""Duals on a graph, all agents in one process; see `crosshatch.exchanges.DualFederation` for the meaning.

Every agent k keeps its block w_k, a dual y_k (n,) and, in place of the multipliers, their sum over its edges s_k (n,).
The derivation is in docs/algorithms/dcpa.md.
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
from crosshatch.protocol.agents import DualSteps
from crosshatch.simulator.accounting.agent_links import AgentLinks, Ids, Seconds
from crosshatch.task.losses import Squared

if TYPE_CHECKING:
    import networkx as nx


@dataclass
class Duals:
    """All agents' values; `ahead` and `sums_ahead` are extrapolated, for the next `ascend` only."""

    weights: Tensor  # (p,) all blocks side by side
    duals: Tensor  # (agents, n, 1)
    sums: Tensor  # (agents, n, 1)
    ahead: Tensor  # (p,)
    sums_ahead: Tensor  # (agents, n, 1)
    seconds: Seconds  # (agents,)


@dataclass
class SimulatedDuals:
    """The exchanges of duals, answered for all agents at once."""

    agents: Sequence[Agent]
    links: AgentLinks
    graph: nx.Graph
    steps: DualSteps
    chosen: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Both directions of every edge, the sizes of the blocks and the Laplacian."""
        import networkx as nx

        pairs = sorted((a, b) for u, v in self.graph.edges for a, b in ((u, v), (v, u)))
        self._senders: Ids = np.array([a for a, _ in pairs], dtype=np.int64)
        self._receivers: Ids = np.array([b for _, b in pairs], dtype=np.int64)
        self._sizes = [agent.task.layouts[agent.silo].size for agent in self.agents]
        like = self.agents[0].x
        laplacian = nx.laplacian_matrix(self.graph, range(len(self.agents))).toarray()
        self._laplacian = torch.as_tensor(laplacian, dtype=like.dtype, device=like.device)
        self.chosen = dict.fromkeys(self.links.agents, "linear")

    def begin(self) -> Duals:
        like = self.agents[0].x
        weights = like.new_zeros(sum(self._sizes))
        duals = like.new_zeros(len(self.agents), *self.links.shape)
        return Duals(weights, duals, duals.clone(), weights.clone(), duals.clone(), seconds=np.zeros(len(self.agents)))

    def descend(self, duals: Duals) -> Duals:
        """`w+ = prox(w - mu_w X' y)`, and `2 w+ - w` for the duals."""
        slopes = [agent.gradient(dual) for agent, dual in zip(self.agents, duals.duals.unbind(), strict=True)]
        moved = torch.add(duals.weights, torch.cat(slopes), alpha=-self.steps.weights)
        moves = zip(self.agents, torch.split(moved, self._sizes), strict=True)
        after = torch.cat([agent.shrink(own, self.steps.weights) for agent, own in moves])
        duals.ahead = 2 * after - duals.weights
        duals.weights = after
        duals.seconds += self.links.step_seconds
        return duals

    def compare(self, duals: Duals, *, round: int) -> Duals:
        """`s+ = s - mu_x L y` with the graph's Laplacian L, and `2 s+ - s`; everybody waits for the last neighbour."""
        senders, receivers, steps = self._senders.tolist(), self._receivers.tolist(), [0] * len(self._senders)
        seconds = self.links.send(senders, receivers, "compare duals", round=round, steps=steps, mutual=True)
        arrivals = duals.seconds[self._senders] + seconds
        np.maximum.at(duals.seconds, self._receivers, arrivals)
        differences = torch.einsum("kj,jne->kne", self._laplacian, duals.duals)
        after = torch.add(duals.sums, differences, alpha=-self.steps.consensus)
        duals.sums_ahead = 2 * after - duals.sums
        duals.sums = after
        return duals

    def ascend(self, duals: Duals) -> Duals:
        """`y+ = prox(y + mu_y (X w + s))` of the agent's share, one of K, of the conjugate loss."""
        share = self.steps.duals / len(self.agents)
        moved = duals.sums_ahead
        blocks = torch.split(duals.ahead, self._sizes)
        for agent, block, scores in zip(self.agents, blocks, moved.unbind(), strict=True):
            agent.add_outputs(block, scores)
        moved.mul_(self.steps.duals).add_(duals.duals)
        labels = self.agents[0].y[:, None]
        if isinstance(self.agents[0].loss, Squared):
            duals.duals = moved.sub_(labels, alpha=share).div_(1.0 + share)
        else:
            duals.duals = logistic_proximal(moved, labels, share)
        return duals

    def broken(self, duals: Duals) -> str | None:
        """Whether a dual has a NaN or an infinity."""
        return None if isfinite(float(duals.duals.sum())) else "a dual is"

    def describe(self, _: Duals) -> dict[str, Any]:
        return {}

    def model(self, duals: Duals) -> tuple[Tensor, ...]:
        return tuple(block.clone() for block in torch.split(duals.weights, self._sizes))


def logistic_proximal(v: Tensor, y: Tensor, share: float) -> Tensor:
    """The proximal operator of `share` times the logistic loss's conjugate, at v, for labels y in {0, 1}.

    It is `sigmoid(z) - y` for the z with `sigmoid(z) + share z = v + y`: Newton's method, and halving of the bracket
    where it would leave it.
    """
    target = v + y
    low, high = (target - 1.0) / share, target / share
    z = torch.logit(target.clamp(1e-9, 1 - 1e-9)).clamp(low, high)
    accuracy = 4 * torch.finfo(v.dtype).eps
    for _ in range(200):
        p = torch.sigmoid(z)
        excess = p + share * z - target
        if bool((excess.abs() <= accuracy * (1 + target.abs())).all()):
            break
        low, high = torch.where(excess < 0, z, low), torch.where(excess > 0, z, high)
        newton = z - excess / (p * (1 - p) + share)
        inside = (newton > low) & (newton < high)
        z = torch.where(inside, newton, (low + high) / 2)
    return torch.sigmoid(z) - y
