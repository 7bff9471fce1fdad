"""A party's own share in its folder: its rows, its labels where it has them, and what everybody knows.

What other parties hold is not there: their rows and labels read as zeros, and who holds which of their samples as an
even division. Hubs and servers have the numbers of the blocks they keep, and no block. A party built from that holds
what it would hold if it were cut from all the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from crosshatch.data.dataset import Target
from crosshatch.data.federated import FederatedData, OwnSamples, SiloData
from crosshatch.parties.agents.dual_role import DualAgent
from crosshatch.parties.agents.token_roles import SERVER, TokenAgent
from crosshatch.parties.holdings.agreed import Beforehand
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import agent_name
from crosshatch.parties.party import Party
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.parties.roles.hub_role import HubRole
from crosshatch.parties.roles.server_role import ServerRole
from crosshatch.protocol.batches import Ids
from crosshatch.runtime.store import write_whole
from crosshatch.task.fit import Elsewhere
from crosshatch.task.task import Task

ABOUT, _NUMBERS = "share.json", "share.safetensors"


class _Silo(msgspec.Struct):
    name: str
    shape: tuple[int, ...]
    features: tuple[str, ...]
    clients: int


class _About(msgspec.Struct):
    """What everybody knows: the same in every folder of a run."""

    silos: list[_Silo]
    target: Target
    classes: int
    label_silo: str | None
    group_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    weighted: bool
    alone: str | None  # the silo with samples of its own
    beforehand: Beforehand


@dataclass(frozen=True)
class Share:
    """All samples, of which the parties of a folder know their own; by silo what stands for blocks of others."""

    data: FederatedData
    elsewhere: Mapping[int, Elsewhere]
    beforehand: Beforehand


def write_share(folder: Path, data: FederatedData, task: Task, parties: Sequence[Party]) -> None:
    """What these parties, which live together, hold of data and blocks."""
    silos = [_Silo(one.name, tuple(one.train.shape[1:]), one.features, one.clients) for one in data.silos]
    about = _About(
        silos, data.target, data.classes, data.label_silo, data.group_shape, data.class_names, data.weighted,
        None if data.alone is None else data.alone.silo, parties[0].role.beforehand,
    )  # fmt: skip
    tensors: dict[str, Tensor] = {}
    if data.groups is not None:
        tensors["groups"] = torch.as_tensor(data.groups)
    held = [(party.role.silo, party) for party in parties if isinstance(party.role, ClientRole | HubRole)]
    owners = {j: _even(data, j, [party for silo, party in held if silo == j]) for j in range(len(silos))}
    for party in parties:
        _add(party, data, owners, tensors)
    for j in {j for party in parties for j in _kept_by(party, len(silos))}:
        if f"x.{j}" not in tensors:  # else its client is here too, which makes the block itself
            for n, (name, one) in enumerate(task.blocks[j].named_parameters()):
                kind, own = "kept" if one.requires_grad else "fixed", name.rpartition(".")[2]
                tensors[f"{kind}.{j}.{n}.{own}"] = one.detach()
    tensors |= {f"owners.{j}": torch.as_tensor(one) for j, one in owners.items()}
    tensors |= {"like": data.y_train[:0], "like_test": data.y_test[:0]}
    write_whole(folder / ABOUT, msgspec.json.encode(about))
    write_whole(folder / _NUMBERS, save({name: one.clone() for name, one in tensors.items()}))


def _kept_by(party: Party, silos: int) -> Sequence[int]:
    """The silos whose blocks a party keeps as numbers."""
    if isinstance(party.role, HubRole):
        return [party.role.silo]
    return range(silos) if isinstance(party.role, ServerRole) else ()


def _group_rows(data: FederatedData, group: int) -> Ids:
    """The samples of a group, in the order in which it numbers them."""
    if data.groups is None:
        return np.arange(len(data.y_train))
    return np.flatnonzero(data.groups == np.unique(data.groups)[group])


def _present(data: FederatedData, silo: int, rows: Ids) -> Ids:
    """The clients of a silo in a group, in the order in which it numbers them."""
    return np.arange(data.silos[silo].clients) if data.groups is None else np.unique(data.silos[silo].owners[rows])


def _even(data: FederatedData, silo: int, own: Sequence[Party]) -> Ids:
    """A division that tells nothing but how many clients there are; none of the rows is one of our own clients'."""
    owners = np.zeros(len(data.y_train), dtype=np.int64)
    for group in range(1 if data.groups is None else len(np.unique(data.groups))):
        rows = _group_rows(data, group)
        mine = [p.role.client.number for p in own if isinstance(p.role, ClientRole) and p.role.group == group]
        present = _present(data, silo, rows)
        others = np.delete(present, mine) if len(mine) < len(present) else present
        owners[rows] = np.resize(others, len(rows))
    return owners


def _add(party: Party, data: FederatedData, owners: Mapping[int, Ids], tensors: dict[str, Tensor]) -> None:
    """What one party holds, put in its place among all samples."""
    role = party.role
    if isinstance(role, TokenAgent | DualAgent):
        _put(tensors, np.arange(len(data.y_train)), {f"x.{role.agent.number}": role.agent.x, "y": role.agent.y})
    if not isinstance(role, ClientRole | HubRole):
        return
    rows = _group_rows(data, role.group)
    if role.selection is not None:  # which of the selected clients hold the samples it knows of
        most = max(range(len(data.silos)), key=role.agreed.clients.__getitem__)
        owners[most][rows[role.selection.ids]] = _present(data, most, rows)[role.selection.owners]
    present = _present(data, role.silo, rows)
    if isinstance(role, HubRole):
        owners[role.silo][rows] = present[role.keeper.roster.owners]
        return
    ids = rows[role.client.ids]
    owners[role.silo][ids] = present[role.client.number]
    _put(tensors, ids, {f"x.{role.silo}": role.client.x, "y": role.client.y})
    if role.client.anchors is not None and data.alone is not None:
        tensors |= {"alone.x": data.alone.x, "alone.y": data.alone.y}


def _put(tensors: dict[str, Tensor], ids: Ids, held: Mapping[str, Tensor | None]) -> None:
    """Rows with the numbers of their samples, behind those that are there."""
    for name, values in held.items():
        if values is not None:
            pairs = ((f"{name}.ids", torch.as_tensor(ids)), (name, values))
            tensors |= {key: torch.cat([tensors[key], one]) if key in tensors else one for key, one in pairs}


def read_share(folder: Path, dtype: torch.dtype) -> Share:
    """What the parties of a folder hold."""
    about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=_About)
    tensors = load_file(folder / _NUMBERS)
    samples = len(tensors["owners.0"])
    silos = []
    for j, one in enumerate(about.silos):
        train = torch.zeros((1, *one.shape), dtype=dtype).expand(samples, *one.shape)
        if f"x.{j}" in tensors:
            train = torch.zeros((samples, *one.shape), dtype=dtype)
            train[tensors[f"x.{j}.ids"]] = tensors[f"x.{j}"]
        owners = tensors[f"owners.{j}"].numpy()
        silos.append(SiloData(one.name, train, train[:1], one.features, owners, one.clients))
    like, test = tensors["like"], tensors["like_test"]
    y = torch.zeros((samples, *like.shape[1:]), dtype=like.dtype)
    y_test = torch.zeros((1, *test.shape[1:]), dtype=test.dtype)
    if "y" in tensors:
        y[tensors["y.ids"]] = tensors["y"]
    alone = OwnSamples(str(about.alone), tensors["alone.x"], tensors["alone.y"]) if "alone.x" in tensors else None
    data = FederatedData(
        tuple(silos), y, y_test, about.target, about.classes, about.label_silo,
        tensors["groups"].numpy() if "groups" in tensors else None, about.group_shape,
        class_names=about.class_names, weighted=about.weighted, alone=alone,
    )  # fmt: skip
    widths = about.beforehand.widths
    elsewhere = {j: Elsewhere(widths[j], _kept(tensors, j)) for j in range(len(silos)) if f"x.{j}" not in tensors}
    return Share(data, elsewhere, about.beforehand)


def _kept(tensors: Mapping[str, Tensor], silo: int) -> dict[str, nn.Parameter]:
    """The numbers of a block, in their order; biases can be told by their names."""
    found = {}
    for name, one in tensors.items():
        kind, _, place = name.partition(".")
        if kind in ("kept", "fixed") and place.startswith(f"{silo}."):
            _, n, own = place.split(".")
            found[int(n)] = f"{own}{n}", nn.Parameter(one, requires_grad=kind == "kept")
    return dict(found[n] for n in sorted(found))


def peers_of(parties: Mapping[Name, Party]) -> dict[Name, list[Name]]:
    """Who talks to whom: clients to their hub, hubs to each other and to the servers above them; agents as on a graph.

    Agents also talk to the server of tokens, where there is one.
    """
    found: dict[Name, set[Name]] = {name: set() for name in parties}

    def join(one: Name, other: Name) -> None:
        found[one].add(other)
        found[other].add(one)

    hubs = {(p.role.group, p.role.silo): (p.name, p.role) for p in parties.values() if isinstance(p.role, HubRole)}
    for (group, silo), (name, role) in hubs.items():
        for (other_group, other_silo), (other, _) in hubs.items():
            if group == other_group and silo < other_silo:
                join(name, other)
        for above in role.servers:
            join(name, above.name)
    for party in parties.values():
        if isinstance(party.role, ClientRole):
            join(party.name, hubs[party.role.group, party.role.silo][0])
        elif isinstance(party.role, TokenAgent | DualAgent):
            for number in party.role.near:
                join(party.name, agent_name(number))
            if SERVER in parties:
                join(party.name, SERVER)
    return {name: sorted(mine) for name, mine in found.items()}
