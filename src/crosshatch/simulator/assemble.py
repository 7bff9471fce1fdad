"""Put a federation together from data, task and algorithm: one vertical federation, or one for each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from crosshatch.channels import Channels
from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm, batch_source, declared
from crosshatch.exchanges.where_it_runs import check_runs_on, one_party_silos_in
from crosshatch.local.solve import Strategy
from crosshatch.meter import Meter
from crosshatch.network import Clocks, Network, WithoutMessages, each_network, in_groups
from crosshatch.protocol.batches import BatchSource
from crosshatch.protocol.members import Member, members_of, pair, tiers_of
from crosshatch.protocol.message_contents import MessageContents
from crosshatch.protocol.named_parties import check_parties
from crosshatch.simulator.accounting.accounts import Accounts
from crosshatch.simulator.accounting.links import Links
from crosshatch.simulator.vertical.branches import Branches
from crosshatch.simulator.vertical.encryption_hook import MakeEncryption
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.groups import SimulatedServer
from crosshatch.simulator.vertical.on_the_way import OnTheWay
from crosshatch.simulator.vertical.optimising import Optimising
from crosshatch.task.optimisers import state_size
from crosshatch.task.probe import ROWS
from crosshatch.task.task import Task


@dataclass(frozen=True)
class EngineSettings:
    """How to compute: strategy, threads and precision, and where bytes and seconds are counted."""

    network: Network
    meter: Meter
    strategy: Strategy
    threads: int
    precision: torch.dtype
    codecs: Mapping[str, AnyCodec] = field(default_factory=dict)
    encrypting: MakeEncryption | None = None


def require_device(name: str, place: str = "device") -> None:
    """Refuse a device that torch does not have here, or cannot compute on."""
    try:
        if torch.empty(1, device=name).is_meta:
            raise ConfigError(f"{place} = '{name}' has no memory to compute in: use 'cpu'")
    except (RuntimeError, AssertionError, TypeError) as error:  # torch asserts where it was built without the device
        reason = str(error).splitlines()[0].rstrip(".")
        raise ConfigError(f"{place} = {name!r} cannot be used ({reason}): use 'cpu'") from None


def assemble(
    data: FederatedData,
    task: Task,
    algorithm: Algorithm,
    engine: EngineSettings,
    *,
    seed: int,
    batches: BatchSource | tuple[BatchSource, ...] | None,
) -> SimulatedFederation | SimulatedServer:
    """The federation an algorithm runs on; a ConfigError where it does not run on this one."""
    central, pairs = declared(algorithm).central, declared(algorithm).pairs
    widths = task.check_fit([silo.train[:ROWS] for silo in data.silos], data.classes)
    # In pairs, messages are those of clients also at a silo that is one party.
    check_parties(data, engine.network, topology=None if central or pairs else algorithm.topology)
    check_runs_on(data, task, algorithm, engine.codecs)
    members = members_of(replace(data, groups=None) if central else data, seed=seed)
    names = [] if data.groups is None or central else np.unique(data.groups).tolist()
    if names:
        engine = replace(engine, network=in_groups(engine.network, names))
    sources = _sources(batches, len(names))
    groups = tuple(
        _one(member, task, algorithm, engine, widths, sources[g] if sources else None, g)
        for g, member in enumerate(members)
    )
    if not names:
        return groups[0]
    samples = np.array([len(group.data.y_train) for group in groups])
    return SimulatedServer(groups, samples, tiers_of(len(groups), data.group_shape))


def _sources(batches: BatchSource | tuple[BatchSource, ...] | None, groups: int) -> tuple[BatchSource, ...]:
    """One for each group, or one alone without groups; empty where batches are to be drawn."""
    if batches is None:
        return ()
    found = f"a {type(batches).__name__} of {len(batches)}" if isinstance(batches, tuple | list) else "one source"
    if groups and not (isinstance(batches, tuple) and len(batches) == groups):
        raise ConfigError(f"batches is {found} for {groups} groups: give a tuple with one source per group")
    if not groups and isinstance(batches, tuple | list):
        raise ConfigError(f"batches is {found}, but nothing is in groups here: give one source")
    return batches if isinstance(batches, tuple) else (batches,)


def _one(
    member: Member, task: Task, algorithm: Algorithm, engine: EngineSettings, widths: tuple[int, ...],
    source: BatchSource | None, number: int,
) -> SimulatedFederation:  # fmt: skip
    data, central, pairs = member.data, declared(algorithm).central, declared(algorithm).pairs
    names = [silo.name + member.suffix for silo in data.silos]
    clients = tuple(silo.clients for silo in data.silos)
    one_party = one_party_silos_in(member, task, algorithm)
    codecs = {} if central else engine.codecs
    why_one = "silos have branches" if data.branches else "it encrypts" if engine.encrypting else ""
    networks = each_network(engine.network, why_one)
    if engine.encrypting:  # how much of the seconds is computing
        networks = (*networks, WithoutMessages(networks[0]))
    links, *others = (
        Links(names, network, Meter() if n else engine.meter, Clocks(np.zeros(len(names))),
              one_machine=central, one_party=one_party, hubs_together=pairs)
        for n, network in enumerate(networks)
    )  # fmt: skip
    links.others = tuple(others)
    if pairs:
        data = pair(data)
    alone = frozenset[int]() if pairs else one_party
    trainers = tuple(1 if central else silo.clients for silo in data.silos)
    optimising, states = None, tuple[int, ...]()
    if task.optimiser is not None:
        optimising = Optimising(task.optimiser, trainers, alone, tuple(task.initial()))
        states = tuple(state_size(task.optimiser, sent) for sent in task.sent) if optimising.averaged else ()
    on_the_way = OnTheWay(Channels(codecs, member.codec_seed), len(data.y_train), trainers, task.trained, alone)
    owners, holder = [silo.owners for silo in data.silos], task.head_holder
    head = None if holder is None else (task.sent_head, holder)
    components = 1 if task.transfer is None else 2  # `Tie.components`, where other tasks have derivatives
    contents = MessageContents(data.silos[0].train.dtype, widths, head, codecs, trainers, components)
    return SimulatedFederation(
        data,
        task,
        Accounts(links, contents, task.sent, states),
        source or batch_source(algorithm, seed=member.batch_seed, group=number),
        on_the_way,
        algorithm,
        strategy=engine.strategy,
        threads=engine.threads,
        branches=Branches(data.branches, clients, owners, on_the_way) if data.branches and not central else None,
        optimising=optimising,
        encrypted=engine.encrypting and engine.encrypting(data, task, algorithm, codecs, links, engine.threads),
    )
