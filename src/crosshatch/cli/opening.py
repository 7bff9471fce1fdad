"""The first lines of a run: what is run, on whom, where it goes, and what the simulated seconds stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crosshatch.data.notes import most_important
from crosshatch.exchanges import declared
from crosshatch.network import BandwidthNetwork, ConstantNetwork, Link, SeveralNetworks
from crosshatch.report.units import human_seconds, three_digits

if TYPE_CHECKING:
    from crosshatch.data.federated import FederatedData, SiloData
    from crosshatch.runs.prepare import Prepared


def opening(prepared: Prepared, path: Path) -> list[str]:
    """What is run and where it goes, the network model, and the notes on data and clients."""
    data, algorithm = prepared.simulator.data, prepared.simulator.algorithm
    tiers = " training, all in one place" if declared(algorithm).central else f" {algorithm.topology}"
    first = f"{prepared.config.name}: {type(algorithm).__name__}{tiers} on {parties(data)}, into {path}"
    notes, run, workers = most_important(data.notes), prepared.config.run, []
    if run.workers is not None:
        who = "this process computes" if run.workers == 0 else f"workers compute: {run.workers}"
        workers = [f"{who}, threads in each: {run.threads}, pieces of each silo's clients: {run.pieces}"]
    return [
        first,
        describe_network(prepared.config.network),
        *workers,
        *notes,
        *(f"note: {note}" for note in prepared.client_notes),
    ]


def parties(data: FederatedData) -> str:
    """The silos with their clients, counted in each group as a config counts them."""
    silos = ", ".join(f"{silo.name} ({_clients(silo, data)})" for silo in data.silos)
    if data.groups is None:
        return silos
    return f"{' x '.join(str(count) for count in data.group_shape)} groups of {silos}"


def describe_network(network: ConstantNetwork | BandwidthNetwork | SeveralNetworks) -> str:
    """The network model in a line; of several all of them.

    >>> describe_network(ConstantNetwork())
    'constant network: 10 s per round trip, 1 s per local step'
    >>> describe_network(BandwidthNetwork({"client-hub": Link(0.05, 14.0, 110.0)}, step_seconds=0.002))
    'bandwidth network: client-hub 50 ms, 14 Mbit/s up, 110 Mbit/s down; 2 ms per local step'
    """
    if isinstance(network, SeveralNetworks):
        return "; also ".join(map(describe_network, network.networks))
    if isinstance(network, ConstantNetwork):
        parts = [f"{human_seconds(network.t_comm)} per round trip, {human_seconds(network.t_comp)} per local step"]
    else:
        parts = [_link(kind, link) for kind, link in network.links.items()]
        parts.append(f"{human_seconds(network.step_seconds)} per local step")
    if network.named:
        count = len(network.named)
        parts.append("1 party differs" if count == 1 else f"{count} parties differ")
    kind = "constant" if isinstance(network, ConstantNetwork) else "bandwidth"
    return f"{kind} network: {'; '.join(parts)}"


def _link(kind: str, link: Link) -> str:
    speeds = [(link.up, "up"), (link.down, "down")]
    if link.up == link.down:
        speeds = [(link.up, "each way")]
    words = [f"{three_digits(speed)} Mbit/s {way}" for speed, way in speeds if speed != float("inf")]
    return ", ".join([f"{kind} {human_seconds(link.latency)}", *words])


def _clients(silo: SiloData, data: FederatedData) -> str:
    least = most = silo.clients
    if data.groups is not None:
        pairs = np.unique(np.stack([data.groups, silo.owners]), axis=1)
        working = np.unique(pairs[0], return_counts=True)[1]  # clients with samples, by group
        least, most = int(working.min()), int(working.max())
        each, rest = divmod(silo.clients, len(working))
        if rest == 0 and most <= each:  # equal groups, in which a client may have got no sample
            least = most = each
    count = str(most) if least == most else f"{least} to {most}"
    return f"{count} client{'' if most == 1 else 's'}"
