"""Readings of DCPA: under which of them do the step sizes of the MTCD paper work?

The paper gives mu_w, mu_y and mu_x, not the updates they belong to. Ours (docs/algorithms/dcpa.md) is one of several
primal-dual iterations with the same fixed points. This loop runs their variations on the paper's ridge regression:

share       the agents' duals ascend on a K-th of the objective each, as in our derivation; or on all of it, as if every
            agent's outputs and the conjugate were multiplied by K ("sum")
consensus   mu_x moves the multipliers, which enter the dual by mu_y (ours), or the dual itself ("dual")
ahead       the dual sees the extrapolated 2w+ - w (ours), or w+
graph       Laplacian (ours), or identity minus Metropolis weights
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import networkx as nx
import numpy as np
import torch

from benchmarks.token_problem import RANDOM, Problem

_AGENTS = 20
_LEVELS = (1e-2, 1e-5, 1e-8)


@dataclass(frozen=True)
class Reading:
    """One combination."""

    share: Literal["mean", "sum"] = "mean"
    consensus: Literal["multipliers", "dual"] = "multipliers"
    ahead: bool = True
    graph: Literal["laplacian", "metropolis"] = "laplacian"

    def __str__(self) -> str:
        return f"{self.share}, consensus of {self.consensus}, {'ahead' if self.ahead else 'not ahead'}, {self.graph}"


READINGS = (
    Reading(),
    Reading(consensus="dual"),
    Reading(consensus="dual", ahead=False),
    Reading("sum", "dual"),
    Reading("sum", "dual", ahead=False),
    Reading("sum", "dual", ahead=False, graph="metropolis"),
    Reading("sum", ahead=False),
)


def run_readings(problem: Problem, rounds: int) -> None:
    """Iterations to each level under each reading, with the paper's steps on the random graph."""
    graph = RANDOM.build([str(k) for k in range(_AGENTS)])
    for reading in READINGS:
        reached, last = _run(problem, graph, reading, rounds)
        found = ", ".join(f"{level:.0e}: {at}" for level, at in reached.items())
        print(f"{reading}: iterations to {found or 'none'}; last {last:.1e}", flush=True)


def _run(problem: Problem, graph: nx.Graph, reading: Reading, rounds: int) -> tuple[dict[float, int], float]:
    mu_w, mu_y, mu_x, alpha = 0.01, 0.0003, 0.03, problem.regulariser.l2
    samples, columns = problem.x.shape
    width = columns // _AGENTS
    x = torch.as_tensor(problem.x).view(samples, _AGENTS, width).transpose(0, 1).contiguous()
    labels, mixing = torch.as_tensor(problem.y), _mixing(graph, reading)
    w = torch.zeros(_AGENTS, width, 1, dtype=torch.float64)
    y = torch.zeros(_AGENTS, samples, dtype=torch.float64)
    s, reached, now = torch.zeros_like(y), dict[float, int](), 1.0
    rise = mu_y * (_AGENTS if reading.share == "sum" else 1)
    share, apart = rise / _AGENTS, mu_x if reading.consensus == "dual" else rise * mu_x
    for i in range(1, rounds + 1):
        after = (w - mu_w * torch.bmm(x.transpose(1, 2), y[:, :, None])) / (1 + mu_w * alpha)
        moved = s - apart * (mixing @ y)
        ahead, further = (2 * after - w, 2 * moved - s) if reading.ahead else (after, moved)
        y = (y + rise * torch.bmm(x, ahead)[:, :, 0] + further - share * labels) / (1 + share)
        w, s = after, moved
        if i % 20 == 0:
            z = torch.bmm(x, w)[:, :, 0].sum(0)
            value = 0.5 * float((z - labels).square().sum()) + 0.5 * alpha * float(w.square().sum())
            now = problem.best.suboptimality(value)
            reached |= {level: i for level in _LEVELS if now <= level and level not in reached}
            if not now < 1e6 or len(reached) == len(_LEVELS):
                break
    return reached, now


def _mixing(graph: nx.Graph, reading: Reading) -> torch.Tensor:
    """What multiplies all duals: zero where they agree."""
    laplacian: np.ndarray = nx.laplacian_matrix(graph, nodelist=range(_AGENTS)).toarray().astype(np.float64)
    if reading.graph == "metropolis":
        degrees = laplacian.diagonal().copy()
        weights = np.where(laplacian < 0, 1 / (1 + np.maximum(degrees[:, None], degrees)), 0.0)
        laplacian = np.diag(weights.sum(1)) - weights
    return torch.as_tensor(laplacian)
