"""Communication graphs between agents, by networkx: named shapes, random graphs, or an edge list file.

Nodes are the agents' numbers 0 .. agents - 1. A random graph comes from its own seed, or from the run's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from crosshatch.errors import ConfigError, first_few, meant
from crosshatch.seeds import generator

if TYPE_CHECKING:  # imported where it is used: it takes time that runs without a graph need not wait
    import networkx as nx

Kind = Literal["path", "ring", "grid", "complete", "star", "erdos_renyi", "connectivity", "file", "empty"]
_NEEDS = {"erdos_renyi": "p", "connectivity": "ratio", "file": "file"}


@dataclass(frozen=True)
class Graph:
    """Table [algorithm.graph]: who may send to whom.

    `p`: of each edge of "erdos_renyi". `ratio`: of the complete graph's edges in "connectivity", a random connected
    graph (the connectivity ratio of Shi et al., 2014). `file`: an edge list, two agents (names or numbers) per line.
    `seed` draws the random kinds; left out, the run's seed does. "empty" has no edges: all traffic goes by the server.

    >>> sorted(Graph("path").build(("a", "b", "c")).edges)
    [(0, 1), (1, 2)]
    """

    kind: Kind = "complete"
    p: float | None = None
    ratio: float | None = None
    seed: int | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ConfigError(f"algorithm.graph.kind = {self.kind!r}: must be one of {', '.join(get_args(Kind))}")
        for key in ("p", "ratio", "file"):
            given, needed = getattr(self, key) is not None, _NEEDS.get(self.kind) == key
            if needed and not given:
                raise ConfigError(f"algorithm.graph.kind = '{self.kind}' needs algorithm.graph.{key}: give it a value")
            if given and not needed:
                owner = next(kind for kind, name in _NEEDS.items() if name == key)
                raise ConfigError(f"algorithm.graph.{key} belongs to kind '{owner}', not '{self.kind}': leave it out")
        for key, value in (("p", self.p), ("ratio", self.ratio)):
            if value is not None and not 0 < value <= 1:
                raise ConfigError(f"algorithm.graph.{key} = {value}: must be above 0 and at most 1")

    def build(self, agents: Sequence[str], *, seed: int = 0) -> nx.Graph:
        import networkx as nx

        count = len(agents)
        own = seed if self.seed is None else self.seed
        if self.kind == "grid":
            return _grid(count)
        if self.kind == "erdos_renyi":
            assert self.p is not None
            return nx.gnp_random_graph(count, self.p, seed=generator(own, "graph"))
        if self.kind == "connectivity":
            assert self.ratio is not None
            return _connectivity(count, self.ratio, own)
        if self.kind == "file":
            assert self.file is not None
            return _read(Path(self.file), agents)
        shapes = {"path": nx.path_graph, "ring": nx.cycle_graph, "complete": nx.complete_graph, "empty": nx.empty_graph}
        graph = nx.star_graph(count - 1) if self.kind == "star" else shapes[self.kind](count)
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))  # a ring of one agent
        return graph


def require_connected(graph: nx.Graph, agents: Sequence[str], why: str) -> None:
    """Refuse a graph in more than one piece, naming the first agent out of reach."""
    import networkx as nx

    if nx.is_connected(graph):
        return
    pieces = nx.number_connected_components(graph)
    outside = next(agents[node] for node in graph if node not in nx.node_connected_component(graph, 0))
    raise ConfigError(
        f"algorithm.graph has {pieces} pieces, '{outside}' cannot be reached from '{agents[0]}': {why} needs a "
        "connected graph, add edges or choose another kind, p or seed"
    )


def _grid(count: int) -> nx.Graph:
    """As square as the number of agents allows."""
    import networkx as nx

    rows = next(rows for rows in range(isqrt(count), 0, -1) if count % rows == 0)
    if rows == 1 and count > 3:
        raise ConfigError(
            f"algorithm.graph.kind = 'grid': {count} agents do not fill a grid of two rows or more: "
            "use 'path' or another number of silos"
        )
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, count // rows), ordering="sorted")


def _connectivity(count: int, ratio: float, seed: int) -> nx.Graph:
    """A random tree, and further edges drawn at random until the ratio is reached."""
    import networkx as nx

    possible = count * (count - 1) // 2
    wanted = round(ratio * possible)
    if wanted < count - 1:
        raise ConfigError(
            f"algorithm.graph.ratio = {ratio}: {wanted} edges cannot connect {count} agents, "
            f"it takes {(count - 1) / max(possible, 1):.3g} at least"
        )
    draw = generator(seed, "graph")
    graph = nx.empty_graph(count) if count < 2 else nx.random_labeled_tree(count, seed=draw)
    absent = sorted(nx.non_edges(graph))
    chosen = draw.permutation(len(absent))[: wanted - graph.number_of_edges()]
    graph.add_edges_from(absent[i] for i in chosen)
    return graph


def _read(path: Path, agents: Sequence[str]) -> nx.Graph:
    """Two agents per line, by name or number; `#` starts a comment."""
    import networkx as nx

    place = f"algorithm.graph.file = '{path}'"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"{place} cannot be read ({error.strerror}): check the path") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{place} is not a text file: give an edge list, two agents per line") from None
    numbers = {str(i): i for i in range(len(agents))} | {name: i for i, name in enumerate(agents)}
    graph = nx.empty_graph(len(agents))
    for number, line in enumerate(lines, start=1):
        ends = line.split("#")[0].replace(",", " ").split()
        if not ends:
            continue
        if len(ends) != 2:
            raise ConfigError(f"{path}:{number}: '{line.strip()}' is not an edge: write two agents per line")
        for end in ends:
            if end not in numbers:
                shown = f"{first_few(agents, 5)}, or 0 to {len(agents) - 1}"
                raise ConfigError(
                    f"{path}:{number}: edge to an unknown agent '{end}': {meant(end, agents)}The agents are {shown}"
                )
        if numbers[ends[0]] != numbers[ends[1]]:
            graph.add_edge(numbers[ends[0]], numbers[ends[1]])
    return graph
