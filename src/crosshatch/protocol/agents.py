"""What agents on a graph agree on: whether they can begin, whether every block is reached, and the steps of duals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, ModelError
from crosshatch.graphs import require_connected
from crosshatch.protocol.batches import Ids
from crosshatch.task.losses import LOSSES, ClassWeighted, SampleWeighted, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class DualSteps:
    """mu_w, mu_y and mu_x."""

    weights: float
    duals: float
    consensus: float


def check_agents(data: FederatedData, task: Task, name: str, codecs: Mapping[str, AnyCodec]) -> None:
    """Every silo can be an agent of the algorithm with this name, or why not."""
    if isinstance(task.loss, ClassWeighted | SampleWeighted):
        key = "model.class_weights" if isinstance(task.loss, ClassWeighted) else "data.sample_weights"
        raise ModelError(
            f"{key}: algorithm {name} has steps of its own for the loss itself: leave the weights out, "
            "or use an algorithm for silos such as tdcd"
        )
    if task.loss.target == "multilabel":
        raise ModelError(f"algorithm {name} takes one label per sample, data.label names several: use tdcd or abcd")
    if task.optimiser is not None:
        raise ConfigError(
            f"optimiser.name = '{task.optimiser.name}': algorithm {name} has steps of its own, whose sizes follow from "
            "the blocks: set optimiser.name = 'sgd', or use an algorithm for silos such as tdcd"
        )
    if codecs:
        raise ConfigError(
            f"a codec on '{min(codecs)}': algorithm {name} sends scores that must stay those of its blocks, "
            "exactly: leave the codecs out"
        )
    if data.groups is not None and len(np.unique(data.groups)) > 1:
        raise ConfigError(f"algorithm {name} runs on one federation, this one has groups: set federation.groups = 1")
    if data.label_silo is not None:
        raise ConfigError(
            f"algorithm {name} needs the labels at every agent, '{data.label_silo}' alone has them: "
            "set federation.labels = 'shared'"
        )
    for silo in data.silos:
        if silo.clients > 1:
            raise ConfigError(
                f"algorithm {name} takes one client per silo, '{silo.name}' has {silo.clients}: set clients = 1"
            )
        if silo.train[0].numel() == 0:
            raise ConfigError(f"agent '{silo.name}' has no features: give every silo one column at least")
    known = {name: LOSSES[name] for name in ("squared", "logistic", "cross_entropy")}
    if task.loss not in known.values():
        raise ModelError(
            f"algorithm {name} computes visits for the losses {', '.join(known)} only, loss '{task.loss.name}' is "
            "another: use one of them, or an algorithm that is not on a graph"
        )
    if task.head is not None:
        raise ModelError(
            f"algorithm {name} adds the blocks' outputs up, a trained head does not: set model.fusion = 'sum'"
        )
    if not getattr(task.regulariser, "separable", isinstance(task.regulariser, Regulariser)):
        kind = type(task.regulariser).__name__
        raise ModelError(
            f"regulariser {kind} is not separable, an agent cannot take its own part of it: use l2, l1 or both"
        )


def check_walks(graph: nx.Graph, names: Sequence[str], begin: Ids, *, server: bool, stay: bool) -> None:
    """Every block must be reached by a token, and every token must be able to move."""
    import networkx as nx

    if len(begin) > len(names):
        raise ConfigError(f"algorithm.tokens = {len(begin)}: at most one per agent, and there are {len(names)} agents")
    if not server:
        require_connected(graph, names, "a walk without a server")
    if len(names) == 1 and not stay:
        raise ConfigError(f"'{names[0]}' is the only agent: a token needs another to hop to, give federation.silos two")
    lonely = [k for k in graph if not graph[k]]
    if lonely and not stay:
        raise ConfigError(
            f"agent '{names[lonely[0]]}' has no neighbour to pass a token to: add an edge, or set algorithm.stay = true"
        )
    for piece in nx.connected_components(graph):
        if not piece & set(begin.tolist()):
            raise ConfigError(
                f"agent '{names[min(piece)]}' is in a piece of the graph where no token begins, its block would never "
                "be trained: use more tokens with algorithm.start = 'each', or connect the graph"
            )


def dual_steps(algorithm: Any, task: Task, graph: nx.Graph, *, norm_squared: float) -> DualSteps:
    """The steps of blocks, duals and multipliers, those left at "auto" filled in.

    They converge if `mu_y (mu_w |X_k|^2 + mu_x |L|) <= 1` for every agent k; `norm_squared` is the largest |X_k|^2.
    """
    import networkx as nx

    blocks, convex = norm_squared or 1.0, task.regulariser.l2 or 1.0
    edges = float(np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))[-1]) or 1.0
    dual_convexity = (1.0 if isinstance(task.loss, Squared) else 4.0) / len(graph)
    weights, duals, consensus = algorithm.step_size, algorithm.dual_step, algorithm.consensus_step
    if weights == "auto":
        # the rate of a primal-dual method is best where both sides move in proportion to their convexity
        weights = (dual_convexity / (2 * blocks * convex)) ** 0.5 if duals == "auto" else 1 / (2 * duals * blocks)
    if duals == "auto":
        duals = 1 / (2 * weights * blocks)
    if consensus == "auto":
        consensus = (1 / duals - weights * blocks) / edges
    limit = 1 / (weights * blocks + consensus * edges) if consensus > 0 else 0.0
    if consensus <= 0 or duals > limit * (1 + 1e-9):
        raise ConfigError(
            f"algorithm.dual_step = {duals:g} is above {limit:.4g}: at most 1 / (step_size {weights:g} x {blocks:.4g}, "
            f"the largest squared norm of a block, + consensus_step {max(consensus, 0):g} x {edges:.4g}, that of the "
            "graph): lower it, or leave it at 'auto'"
        )
    return DualSteps(weights, duals, consensus)
