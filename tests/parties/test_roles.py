"""A role offers a text what the exchanges are, and nothing else; beside it there is what its party asks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from crosshatch.algorithms.tdcd import TDCD
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Blocks, DualFederation, Federation, TokenFederation
from crosshatch.parties.agents.dual_role import DualAgent
from crosshatch.parties.agents.token_roles import TokenAgent, TokenServer
from crosshatch.parties.party import AnyRole
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.parties.roles.hub_role import HubRole
from crosshatch.parties.roles.role import Role
from crosshatch.parties.roles.server_role import ServerRole
from crosshatch.parties.roles.tree import BranchRole
from crosshatch.testing.federations import make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty


def offered(kind: type[Any]) -> set[str]:
    """Methods and properties without an underscore in front."""
    return {
        name
        for one in kind.__mro__[:-1]
        for name, value in vars(one).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }


@pytest.mark.parametrize(
    ("role", "exchanges"),
    [
        *((kind, Federation) for kind in (Role, ClientRole, HubRole, BranchRole, ServerRole)),
        *((kind, TokenFederation) for kind in (TokenAgent, TokenServer)),
        (DualAgent, DualFederation),
    ],
)
def test_a_role_has_the_methods_of_its_federation_and_no_more(role: type[Any], exchanges: type[Any]) -> None:
    assert offered(role) - offered(AnyRole) == offered(exchanges)


@dataclass(frozen=True)
class Keeping(TDCD):
    """Its clients go on with their own blocks every other round."""

    def run_round(self, fed: Federation[Any, Any, Any, Any], blocks: Blocks, r: int) -> Blocks:
        after: Blocks = (
            fed.broadcast(blocks, fed.draw_batch(None, round=r)) if r % 2 else super().run_round(fed, blocks, r)
        )
        return after


def test_a_text_that_declares_to_leave_nothing_with_clients_and_does_is_stopped() -> None:
    engine = PartyByParty(make_data((2, 2)), make_task(2), Keeping(2, 0.1))
    engine.run_round()
    with pytest.raises(
        ConfigError, match="Keeping declares `returns_blocks`, but its clients hold something after round 1"
    ):
        engine.run_round()
