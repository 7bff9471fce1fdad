"""How long a message may be: what each exchange can bring a party from each of its peers, before anything arrived.

Every party works it out from what it knows anyway. A peer that never sends in an exchange may send nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosshatch.exchanges import declared
from crosshatch.parties.agents.dual_role import DualAgent
from crosshatch.parties.agents.token_roles import TokenAgent
from crosshatch.parties.holdings.agreed import Agreed
from crosshatch.parties.line import Key, Name
from crosshatch.parties.party import Party
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.parties.roles.hub_role import HubRole
from crosshatch.parties.roles.role import Role
from crosshatch.parties.roles.server_role import ServerRole

_HEADER = 1024  # bytes beside the numbers, at most
_CODED = 4  # how many times longer than its numbers what a codec writes may be
_EXCHANGES = frozenset({
    "broadcast", "average", "average_groups", "share", "derivatives", "decide", "pass token", "average tokens",
    "gather", "compare duals",
})  # fmt: skip


def longest_of(party: Party, otherwise: Callable[[Key], int]) -> Callable[[Name, Key], int]:
    """By sender and key the most bytes of a message to this party; of exchanges that are not known here `otherwise`."""
    due = _due(party.role, party.text)

    def longest(sender: Name, key: Key) -> int:
        if due is None or key[1] not in _EXCHANGES:
            return otherwise(key)
        numbers = due.get((sender.partition("-")[0], key[1]))
        return 0 if numbers is None else _HEADER + numbers(sender)

    return longest


def _due(role: Any, text: Any) -> Mapping[tuple[str, str], Callable[[Name], int]] | None:
    """By kind of sender and exchange: bytes. None: it does not say."""
    if isinstance(role, TokenAgent | DualAgent):
        rows = role.agent.y.shape[0] * role.beforehand.widths[role.agent.number] * role.post.dtype.itemsize
        token = dict.fromkeys((("agent", "pass token"), ("agent", "compare duals")), rows)
        token |= dict.fromkeys((("server", "average tokens"), ("server", "gather")), rows)
        return {way: _always(size) for way, size in token.items()}
    if not isinstance(role, Role) or role.agreed.branches or declared(text).within == "federation":
        return None
    if isinstance(role, ClientRole):
        sizes = _Sizes(role.agreed, text)
        rows = sizes.rows(len(role.client.ids), role.client.model.vectors.head_size)
        block = sizes.numbers(role.client.model.vectors.size, "broadcast")
        return {
            ("hub", "share"): _always(rows), ("hub", "derivatives"): _always(rows), ("hub", "decide"): _always(8),
            ("hub", "broadcast"): _always(block),
        }  # fmt: skip
    if isinstance(role, HubRole):
        return _due_at_hub(role, _Sizes(role.agreed, text))
    if isinstance(role, ServerRole):
        sizes = _Sizes(role.agreed, text)
        return {
            ("hub", "average_groups"): lambda hub: sizes.numbers(role.sizes[_number(hub)], "average_groups"),
            ("hub", "decide"): _always(8),
        }  # fmt: skip
    return None


def _due_at_hub(role: HubRole, sizes: _Sizes) -> Mapping[tuple[str, str], Callable[[Name], int]]:
    vectors, roster = role.keeper.vectors, role.keeper.roster
    held = np.bincount(roster.owners, minlength=roster.clients)
    across = sizes.rows(role.agreed.samples, vectors.head_size)

    def of_client(client: Name) -> int:
        return sizes.rows(int(held[_number(client)]), 0)

    return {
        ("client", "share"): of_client, ("client", "derivatives"): of_client,
        ("client", "average"): _always(sizes.numbers(vectors.size, "average")),
        ("hub", "share"): _always(across), ("hub", "derivatives"): _always(across), ("hub", "decide"): _always(8),
        ("server", "average_groups"): _always(sizes.numbers(vectors.size, "average_groups")),
        ("server", "decide"): _always(8),
    }  # fmt: skip


@dataclass(frozen=True)
class _Sizes:
    """Bytes of rows and of blocks under a text."""

    agreed: Agreed
    text: Any

    def rows(self, samples: int, head: int) -> int:
        """Of all silos' numbers about so many samples, a part for each local step, and the head."""
        agreed, count = self.agreed, samples * max(1, self.text.local_steps)
        width = sum(agreed.width("derivatives", j) for j in agreed.silos)
        coded = _CODED if {"share", "derivatives", "head"} & set(agreed.codecs) else 1
        # whose each row is, and what codecs begin with
        along = 8 * count + 64 * max(agreed.clients) if coded > 1 else 0
        bound: int = coded * agreed.dtype.itemsize * (count * width + head) + along
        return bound

    def numbers(self, size: int, exchange: str) -> int:
        """Of so many numbers of a block, with two moments of each where they travel."""
        coded = _CODED if exchange in self.agreed.codecs else 1
        moments = 2 * size + 1 if self.agreed.averages_moments else 0
        return self.agreed.dtype.itemsize * (coded * size + moments)


def _always(size: int) -> Callable[[Name], int]:
    return lambda _: size


def _number(party: Name) -> int:
    """Of a hub's silo, or of a client."""
    return int(party.rpartition("-")[2])
