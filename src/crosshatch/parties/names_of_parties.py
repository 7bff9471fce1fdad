"""What parties are called: group, silo and number say who it is."""

from crosshatch.parties.line import Name


def hub_name(group: int, silo: int) -> Name:
    return f"hub-{group}-{silo}"


def client_name(group: int, silo: int, number: int) -> Name:
    return f"client-{group}-{silo}-{number}"


def branch_name(group: int, silo: int, level: int, number: int) -> Name:
    """A node of the tree below a hub, which is level 0 itself."""
    return f"branch-{group}-{silo}-{level}-{number}" if level else hub_name(group, silo)


def server_name(level: int, member: int) -> Name:
    """The server of one member of a tier of groups; level 0 is the outermost, with a single member."""
    return f"server-{level}-{member}"


def agent_name(number: int) -> Name:
    """An agent of a graph; its server is `server_name(0, 0)`."""
    return f"agent-{number}"
