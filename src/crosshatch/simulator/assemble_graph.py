"""Put agents on a graph together from data, task and algorithm; everything that can be refused is refused here."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import numpy.typing as npt
import torch

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, ModelError
from crosshatch.exchanges import DualAlgorithm, TokenAlgorithm
from crosshatch.graphs import require_connected
from crosshatch.local.visits.agent import Agent, start_of
from crosshatch.network import each_network
from crosshatch.protocol.agents import check_agents, check_walks, dual_steps
from crosshatch.protocol.named_parties import check_parties
from crosshatch.protocol.walks import GivenWalk, SeededWalk, Walk
from crosshatch.schedules import rate
from crosshatch.simulator.accounting.agent_links import AgentLinks
from crosshatch.simulator.assemble import EngineSettings
from crosshatch.simulator.graph.simulated_duals import SimulatedDuals
from crosshatch.simulator.graph.simulated_tokens import SimulatedTokens
from crosshatch.task.losses import CrossEntropy
from crosshatch.task.probe import ROWS
from crosshatch.task.task import Task


def assemble_tokens(
    data: FederatedData,
    task: Task,
    algorithm: TokenAlgorithm,
    engine: EngineSettings,
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
    check_walks(graph, names, walk.begin(algorithm.tokens), server=algorithm.server, stay=algorithm.stay)
    _check_blocks(algorithm, agents, start)
    shape = (len(data.y_train), agents[0].width)
    (network,) = each_network(engine.network, "tokens walk on a graph")
    links = AgentLinks(names, network, engine.precision, engine.meter, shape)
    return SimulatedTokens(agents, links, walk, algorithm.tokens, start, algorithm.server, graph=graph)


def _agents(data: FederatedData, task: Task, engine: EngineSettings, name: str) -> tuple[Agent, ...]:
    """One agent per silo, or why this federation cannot be one of agents."""
    check_agents(data, task, name, engine.codecs)
    check_parties(data, engine.network, agents=True)
    (width,) = set(task.check_fit([silo.train[:ROWS] for silo in data.silos], data.classes))
    return tuple(Agent(task, k, silo.train, data.y_train, width) for k, silo in enumerate(data.silos))


def _check_blocks(algorithm: TokenAlgorithm, agents: tuple[Agent, ...], start: list[torch.Tensor]) -> None:
    """Blocks that are not linear need a server wherever scores must be added up anew, and a step size that is given.

    Above two over the smoothness of a block its steps can diverge; that is only known for linear blocks.
    """
    for agent, weights in zip(agents, start, strict=True):
        name, auto = agent.task.names[agent.silo], algorithm.step_size == "auto"
        if agent.is_linear:
            limit = 2.0 / agent.smoothness if agent.smoothness and not auto else inf
            first = 0.0 if algorithm.step_size == "auto" else rate(algorithm.step_size, 0)  # most only decrease
            if first >= limit:
                raise ConfigError(
                    f"algorithm.step_size = {first:g} is not below {limit:.4g}, two over the smoothness "
                    f"{agent.smoothness:.4g} of the block of '{name}' (the loss is a sum over samples): lower it, "
                    "or set 'auto'"
                )
        elif algorithm.meeting == "average":
            raise ConfigError(
                f"algorithm.meeting = 'average': the block of '{name}' is not linear, averaged scores would not be "
                "those of averaged blocks: use linear blocks, or 'pass'"
            )
        elif not algorithm.server and bool(agent.embed(weights).any()):
            raise ConfigError(
                f"the block of '{name}' has outputs at the start, and without a server nobody adds them up: "
                "use mtcd with hops_between_averages above 0, or blocks that end in a linear layer"
            )
        elif auto:
            raise ConfigError(
                f"algorithm.step_size = 'auto': the block of '{name}' is not linear, its smoothness is unknown: "
                "give a number"
            )


def assemble_duals(
    data: FederatedData, task: Task, algorithm: DualAlgorithm, engine: EngineSettings, *, seed: int
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
    (network,) = each_network(engine.network, "duals are compared on a graph")
    links = AgentLinks(task.names, network, engine.precision, engine.meter, (len(data.y_train), 1))
    steps = dual_steps(algorithm, task, graph, norm_squared=max(agent.norm_squared for agent in agents))
    return SimulatedDuals(agents, links, graph, steps)


def by_columns(data: FederatedData) -> FederatedData:
    """The same data with every silo's training features stored column after column."""
    silos = [replace(s, train=s.train.T.contiguous().T) if s.train.dim() == 2 else s for s in data.silos]
    return replace(data, silos=tuple(silos))
