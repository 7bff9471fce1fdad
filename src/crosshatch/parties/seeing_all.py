"""What somebody makes of a federation who could look at all parties: its model, and all that was sent."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from crosshatch.meter import Meter
from crosshatch.parties.agents.dual_role import Dual
from crosshatch.parties.agents.token_roles import Tokens
from crosshatch.parties.line import Name
from crosshatch.parties.party import Party
from crosshatch.parties.roles.block_averaging import mean_of
from crosshatch.parties.roles.hub_role import HubRole


def total(meters: Iterable[Meter]) -> Meter:
    found = Meter()
    for one in meters:
        for mine, theirs in ((found.links, one.links), (found.exchanges, one.exchanges)):
            for name, (size, messages) in theirs.items():
                entry = mine.setdefault(name, [0, 0])
                mine[name] = [entry[0] + size, entry[1] + messages]
    return found


def model_of(parties: Mapping[Name, Party]) -> tuple[Tensor, ...]:
    """What they make of the blocks that hubs, a server or agents keep; groups count by their samples."""
    values = [party.blocks for party in parties.values()]
    agents = [one for one in values if isinstance(one, Dual) or (isinstance(one, Tokens) and one.copies)]
    if agents:
        return tuple(one.weights if isinstance(one, Dual) else torch.stack(one.copies).mean(0) for one in agents)
    for one in values:
        if one.every:
            return tuple(one.every)
    hubs = [(party.role, party.blocks.mine) for party in parties.values() if isinstance(party.role, HubRole)]
    silos = hubs[0][0].silos
    every = [[(mine, role.agreed.samples) for role, mine in hubs if role.silo == j] for j in silos]
    if all(torch.equal(mine, one[0][0]) for one in every for mine, _ in one):
        return tuple(one[0][0] for one in every)
    return tuple(mean_of([mine for mine, _ in one], [samples for _, samples in one]) for one in every)


def best_of_parties(parties: Mapping[Name, Party]) -> tuple[Tensor, ...]:
    """The best model so far by the parties' evaluations, from what hubs of the first group or agents have kept."""
    found: dict[int, Tensor] = {}
    for name, party in parties.items():
        kept = None if party.evaluation is None else party.evaluation.kept
        if isinstance(kept, Tensor):
            found[int(name.split("-")[1])] = kept
        elif isinstance(party.role, HubRole) and party.role.group == 0 and kept is not None:
            found[party.role.silo] = kept.mine
    return tuple(found[j] for j in sorted(found))
