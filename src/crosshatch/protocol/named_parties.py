"""Who the network's settings speak of: settings for a party that is not there would change nothing, silently.

Parties are named `silo` (a hub, or an agent of a graph) and `silo/client`. In groups these are `silo@group` and
`silo@group/client`, clients counted from 0 in each group; a name without a group speaks of all of them.
"""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.network import Network
from crosshatch.protocol.members import one_party_silos
from crosshatch.topology import Topology


def check_parties(
    data: FederatedData, network: Network, *, agents: bool = False, topology: Topology | None = None
) -> None:
    """Refuse settings for a party that is not in the federation; `agents` of a graph have no clients.

    With a `topology`, neither have silos that are one party on its tiers.
    """
    counts = {silo.name: _clients(data, silo.owners, silo.clients) for silo in data.silos}
    for name, place in network.named.items():
        whole, slash, client = name.rpartition("/") if "/" in name else (name, "", "")
        silo, at, group = (whole, "", "") if whole in counts else whole.rpartition("@")
        if silo not in counts:
            close = get_close_matches(whole, counts, n=1)
            hint = f"did you mean '{close[0]}'? " if close else ""
            raise ConfigError(f"{place} has '{name}', no silo '{whole}': {hint}The silos are {', '.join(counts)}")
        held = counts[silo]
        if at and data.groups is None:
            raise ConfigError(f"{place} has '{name}', but there are no groups: write '{silo}{slash}{client}'")
        if at and group not in {str(known) for known in held}:
            raise ConfigError(
                f"{place} has '{name}': groups of '{silo}' are {silo}@{min(held)} to {silo}@{max(held)}, "
                f"and '{silo}{slash}{client}' means all of them"
            )
        if slash and agents:
            raise ConfigError(f"{place} has '{name}': an agent of a graph has no clients: write '{silo}'")
        most = held[int(group)] if at else max(held.values())
        if slash and int(client) >= most:
            raise ConfigError(f"{place} has '{name}': clients of '{whole}' are {whole}/0 to {whole}/{most - 1}")
        if slash and topology is not None and one_party_silos(topology, [most]):
            raise ConfigError(f"{place} has '{name}': '{silo}' is one party on {topology}: write '{whole}'")


def _clients(data: FederatedData, owners: np.ndarray[tuple[int], np.dtype[np.int64]], clients: int) -> dict[int, int]:
    """How many clients a silo has, by group."""
    if data.groups is None:
        return {0: clients}
    return {int(group): len(np.unique(owners[data.groups == group])) for group in np.unique(data.groups)}
