"""Which parties share a process: by default none, on request all clients of a silo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from crosshatch.parties.line import Name
from crosshatch.parties.party import Party
from crosshatch.parties.roles.client_role import ClientRole


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
