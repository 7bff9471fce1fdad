"""Which federations an algorithm does not run on: both engines refuse the same."""

from collections.abc import Mapping
from typing import Any

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData, require_groups_of_whole_clients
from crosshatch.exchanges.declared import declared
from crosshatch.protocol import refusals
from crosshatch.protocol.members import Member, one_party_silos
from crosshatch.task.task import Task


def check_runs_on(data: FederatedData, task: Task, algorithm: Any, codecs: Mapping[str, AnyCodec]) -> None:
    """A ConfigError where it does not run on this federation, with this model and these codecs."""
    name, known, topology = type(algorithm).__name__, declared(algorithm), algorithm.topology
    refusals.check_head(data, task)
    refusals.check_transfer(data, task, name, topology)
    refusals.check_optimiser(data, task, name, {} if known.central else codecs)
    if known.central:
        return
    refusals.check_topology(data, name, topology)
    refusals.check_derivatives(data, task, name, continued=known.continues_derivatives)
    refusals.check_turns(task, name, topology, turns=known.takes_turns)
    refusals.check_codecs(data, codecs)
    refusals.check_window(data, known.window, known.batch_size)
    require_groups_of_whole_clients(data)


def one_party_silos_in(member: Member, task: Task, algorithm: Any) -> frozenset[int]:
    """Silos of a group that are one party each; a ConfigError where its clients are more than the algorithm takes."""
    name, known, topology = type(algorithm).__name__, declared(algorithm), algorithm.topology
    if not known.central:
        where = member.suffix.replace("@", " in group ")
        several = known.several_clients
        refusals.check_clients(member.data, name, topology, pairs=known.pairs, several=several, where=where)
    one_party = one_party_silos(topology, [silo.clients for silo in member.data.silos])
    at_server = known.within == "federation" and not known.pairs  # in pairs every device has its own side
    refusals.check_states_at_server(task, name, one_party, at_server=at_server)
    return one_party
