"""A role offers a text what the exchanges are, and nothing else; beside it there is what its party asks of it."""

from __future__ import annotations

from typing import Any

import pytest

from crosshatch.exchanges import DualFederation, Federation, TokenFederation
from crosshatch.parties.agents.dual_role import DualAgent
from crosshatch.parties.agents.token_roles import TokenAgent, TokenServer
from crosshatch.parties.party import AnyRole
from crosshatch.parties.roles.branch_role import BranchRole
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.parties.roles.hub_role import HubRole
from crosshatch.parties.roles.role import Role
from crosshatch.parties.roles.server_role import ServerRole


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
