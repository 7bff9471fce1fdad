"""Put agents on a graph together from data, task and algorithm; everything that can be refused is refused here."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import numpy.typing as npt
import torch

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, ModelError
from crosshatch.exchanges import DualAlgorithm, TokenAlgorithm
from crosshatch.graphs import require_connected
from crosshatch.local.visits.agent import Agent, start_of
from crosshatch.protocol.named_parties import check_parties
from crosshatch.protocol.walks import GivenWalk, SeededWalk, Walk
from crosshatch.schedules import rate
from crosshatch.simulator.accounting.agent_links import AgentLinks
from crosshatch.simulator.assemble import Engine
from crosshatch.simulator.graph.duals import SimulatedDuals, Steps
from crosshatch.simulator.graph.tokens import SimulatedTokens
from crosshatch.task.losses import CrossEntropy, Squared
from crosshatch.task.probe import ROWS
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task


def assemble_tokens(
    data: FederatedData,
    task: Task,
    algorithm: TokenAlgorithm,
    engine: Engine,
    *,
    seed: int,
    walks: npt.NDArray[np.int64] | None = None,
) -> SimulatedTokens:
    """Agents, tokens and their walks; `walks` (tokens, visits) are given instead of drawn."""
    agents = _agents(data, task, engine, type(algorithm).__name__)
    names = task.names
    graph = algorithm.graph.build(names, seed=seed)
    walk: Walk = SeededWalk(graph, seed, each=algorithm.start == "each") if walks is None else GivenWalk(walks)
    start = [start_of(task, k, weights) for k, weights in enumerate(task.initial())]
    if walks is None:
        _check_walks(algorithm, graph, names, walk.begin(algorithm.tokens))
    _check_blocks(algorithm, agents, start)
    _check_step_size(algorithm, agents)
    shape = (len(data.y_train), agents[0].width)
    links = AgentLinks(names, engine.network, engine.precision, engine.meter, shape)
    return SimulatedTokens(agents, links, walk, algorithm.tokens, start, algorithm.server, graph=graph)


def _agents(data: FederatedData, task: Task, engine: Engine, name: str) -> tuple[Agent, ...]:
    """One agent a silo, or why this federation cannot be one of agents."""
    if engine.codecs:
        raise ConfigError(
            f"a codec on '{min(engine.codecs)}': algorithm {name} sends scores that must stay those of its blocks, "
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
                f"algorithm {name} takes one client a silo, '{silo.name}' has {silo.clients}: set clients = 1"
            )
        if silo.train[0].numel() == 0:
            raise ConfigError(f"agent '{silo.name}' has no features: give every silo one column at least")
    if task.head is not None:
        raise ModelError(
            f"algorithm {name} adds the blocks' outputs up, a trained head does not: set model.fusion = 'sum'"
        )
    if not getattr(task.regulariser, "separable", isinstance(task.regulariser, Regulariser)):
        kind = type(task.regulariser).__name__
        raise ModelError(
            f"regulariser {kind} is not separable, an agent cannot take its own part of it: use l2, l1 or both"
        )
    check_parties(data, engine.network, agents=True)
    (width,) = set(task.check_fit([silo.train[:ROWS] for silo in data.silos], data.classes))
    return tuple(Agent(task, k, silo.train, data.y_train, width) for k, silo in enumerate(data.silos))


def _check_walks(
    algorithm: TokenAlgorithm, graph: nx.Graph, names: tuple[str, ...], begin: npt.NDArray[np.int64]
) -> None:
    """Every block must be reached by a token, and every token must be able to move."""
    if algorithm.tokens > len(names):
        raise ConfigError(
            f"algorithm.tokens = {algorithm.tokens}: at most one an agent, and there are {len(names)} agents"
        )
    if not algorithm.server:
        require_connected(graph, names, "a walk without a server")
    if len(names) == 1 and not algorithm.stay:
        raise ConfigError(f"'{names[0]}' is the only agent: a token needs another to hop to, give federation.silos two")
    lonely = [k for k in graph if not graph[k]]
    if lonely and not algorithm.stay:
        raise ConfigError(
            f"agent '{names[lonely[0]]}' has no neighbour to pass a token to: add an edge, or set algorithm.stay = true"
        )
    for piece in nx.connected_components(graph):
        if not piece & set(begin.tolist()):
            raise ConfigError(
                f"agent '{names[min(piece)]}' is in a piece of the graph where no token begins, its block would never "
                "be trained: use more tokens with algorithm.start = 'each', or connect the graph"
            )


def _check_blocks(algorithm: TokenAlgorithm, agents: tuple[Agent, ...], start: list[torch.Tensor]) -> None:
    """Blocks that are not linear need a server wherever scores must be added up anew."""
    for agent, weights in zip(agents, start, strict=True):
        name = agent.task.names[agent.silo]
        if agent.is_linear:
            continue
        if algorithm.meeting == "average":
            raise ConfigError(
                f"algorithm.meeting = 'average': the block of '{name}' is not linear, averaged scores would not be "
                "those of averaged blocks: use linear blocks, or 'pass'"
            )
        if not algorithm.server and bool(agent.embed(weights).any()):
            raise ConfigError(
                f"the block of '{name}' has outputs at the start, and without a server nobody adds them up: "
                "use mtcd with hops_between_averages above 0, or blocks that end in a linear layer"
            )


def _check_step_size(algorithm: TokenAlgorithm, agents: tuple[Agent, ...]) -> None:
    """Above two over the smoothness of a block its steps can diverge; only known for linear blocks."""
    for agent in agents:
        name = agent.task.names[agent.silo]
        if not agent.is_linear:
            if algorithm.step_size == "auto":
                raise ConfigError(
                    f"algorithm.step_size = 'auto': the block of '{name}' is not linear, its smoothness is unknown: "
                    "give a number"
                )
            continue
        if algorithm.step_size == "auto" or agent.smoothness == 0:
            continue
        limit = 2.0 / agent.smoothness
        first = rate(algorithm.step_size, 0)  # schedules only decrease
        if first >= limit:
            raise ConfigError(
                f"algorithm.step_size = {first:g} is not below {limit:.4g}, two over the smoothness "
                f"{agent.smoothness:.4g} of the block of '{name}' (the loss is a sum over samples): lower it, "
                "or set 'auto'"
            )


def assemble_duals(
    data: FederatedData, task: Task, algorithm: DualAlgorithm, engine: Engine, *, seed: int
) -> SimulatedDuals:
    """Agents with duals on a connected graph."""
    name = type(algorithm).__name__
    agents = _agents(data, task, engine, name)
    for agent in agents:
        if not agent.is_linear or isinstance(task.loss, CrossEntropy):
            raise ModelError(
                f"algorithm {name} is for linear blocks and the squared or logistic loss, the block of "
                f"'{task.names[agent.silo]}' under the loss {task.loss.name!r} is not: use mtcd"
            )
    graph = algorithm.graph.build(task.names, seed=seed)
    require_connected(graph, task.names, "consensus")
    links = AgentLinks(task.names, engine.network, engine.precision, engine.meter, (len(data.y_train), 1))
    return SimulatedDuals(agents, links, graph, _dual_steps(algorithm, agents, graph))


def _dual_steps(algorithm: DualAlgorithm, agents: tuple[Agent, ...], graph: nx.Graph) -> Steps:
    """The steps, those left out filled in; they converge if `mu_y (mu_w |X_k|^2 + mu_x |L|) <= 1` for every agent k."""
    blocks = max(agent.norm_squared for agent in agents) or 1.0
    edges = float(np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))[-1]) or 1.0
    convexity = agents[0].task.regulariser.l2 or 1.0
    dual_convexity = (1.0 if isinstance(agents[0].loss, Squared) else 4.0) / len(agents)
    weights, duals, consensus = algorithm.step_size, algorithm.dual_step, algorithm.consensus_step
    if weights == "auto":
        # the rate of a primal-dual method is best where both sides move in proportion to their convexity
        weights = (dual_convexity / (2 * blocks * convexity)) ** 0.5 if duals == "auto" else 1 / (2 * duals * blocks)
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
    return Steps(weights, duals, consensus)


def by_columns(data: FederatedData) -> FederatedData:
    """The same data with every silo's training features stored column after column."""
    silos = [replace(s, train=s.train.T.contiguous().T) if s.train.dim() == 2 else s for s in data.silos]
    return replace(data, silos=tuple(silos))
