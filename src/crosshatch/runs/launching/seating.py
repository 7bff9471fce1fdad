"""Who sits where: a folder per process with the share, the certificates and the plan of the parties in it."""

import socket
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Literal

from crosshatch.data.federated import FederatedData
from crosshatch.parties.agents.dual_role import DualAgent
from crosshatch.parties.agents.token_roles import TokenAgent
from crosshatch.parties.holdings.values import Blocks
from crosshatch.parties.line import Name
from crosshatch.parties.party import Party
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.runs.config import Config, config_text, part_files
from crosshatch.runs.launching.own_rows import peers_of, write_share
from crosshatch.runs.launching.process_plan import CONFIG, ProcessPlan, SeatPlan
from crosshatch.runs.launching.text_files import write_parts
from crosshatch.runtime.identity import Identity
from crosshatch.runtime.store import write_whole
from crosshatch.task.losses import ClassWeighted, Loss, SampleWeighted
from crosshatch.task.task import Task

_RANK = {"server": 0, "hub": 1, "client": 2, "agent": 2}


def houses_of(parties: Mapping[Name, Party]) -> dict[Name, list[Party]]:
    """The processes, by name, with the parties in them."""
    found: dict[Name, list[Party]] = {}
    for party in parties.values():
        found.setdefault(party.house, []).append(party)
    return found


def share_processes(parties: Mapping[Name, Party], processes: Literal["party", "silo"]) -> None:
    """Give the clients of a silo (in a group) one house; hubs and servers keep theirs.

    In it they compute one at a time, since they share torch's generator, and each has its own key, connection and
    state. A client that is one party with its hub stays with it.
    """
    if processes == "party":
        return
    for party in parties.values():
        if isinstance(party.role, ClientRole) and party.house == party.name:
            party.house = f"clients-{party.role.group}-{party.role.silo}"


def seat(
    folder: Path, parties: Mapping[Name, Party], data: FederatedData, task: Task, config: Config, *, rounds: int,
    keep: Iterable[int],
) -> None:  # fmt: skip
    """Make the folders of a run that has none, with copies of the files of own parts; the certificates are new."""
    peers, houses = peers_of(parties), houses_of(parties)
    identities = {name: Identity.make(name) for name in parties}
    ports = free_ports(parties)
    run, files = token_hex(4), part_files(config).read()
    # no message of this run is longer: blocks with the states of an optimiser, or rows of all samples
    widths = next(iter(parties.values())).role.beforehand.widths
    kept = [party.blocks.mine for party in parties.values() if isinstance(party.blocks, Blocks)]
    blocks = sum(mine.numel() for mine in kept if mine is not None)
    most = 65_536 + 16 * (4 * int(blocks) + 4 * len(data.y_train) * sum(widths))
    text = config_text(told(config, task.loss), files)
    for house, members in houses.items():
        names, home = {party.name: party for party in members}, folder / house
        home.mkdir(mode=0o700, parents=True)
        seats = []
        for name in names:
            outside = [peer for peer in peers[name] if peer not in names]
            identities[name].write(home / name)
            seats.append(SeatPlan(
                name,
                {peer: identities[peer].certificate.decode() for peer in outside},
                [peer for peer in peers[name] if peer in names],
                {peer: f"127.0.0.1:{ports[peer]}" for peer in outside if dials(name, peer)},
                ports[name] if any(dials(peer, name) for peer in outside) else None,
                names[name].follows is not None,
            ))  # fmt: skip
        write_share(home, data, task, members)
        write_whole(home / CONFIG, text.encode())
        with_rows = any(isinstance(one.role, ClientRole | TokenAgent | DualAgent) for one in members)
        write_parts(home, files, text, blocks=with_rows)
        ProcessPlan(run, rounds, sorted(keep), most, seats).write(home)


def told(config: Config, loss: Loss) -> Config:
    """The config that parties get: balanced weights of classes, which follow from all labels, as numbers."""
    inner = loss.loss if isinstance(loss, SampleWeighted) else loss
    if not isinstance(inner, ClassWeighted):
        return config
    return replace(config, model=replace(config.model, class_weights=inner.weights))


def dials(one: Name, other: Name) -> bool:
    """Clients dial their hub, hubs and agents the servers above them, and of two hubs or agents the later one."""
    first, second = _RANK[one.partition("-")[0]], _RANK[other.partition("-")[0]]
    return first > second or (first == second and one > other)


def free_ports(names: Iterable[Name]) -> dict[Name, int]:
    """A port for each that nobody uses now."""
    sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
    found = {name: one.getsockname()[1] for name, one in sockets.items()}
    for one in sockets.values():
        one.close()
    return found
