"""Graphs have the edges they should, and settings that make no sense are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import ConfigError
from crosshatch.graphs import Graph, require_connected

NAMES = tuple("abcdef")


def edges(graph: Graph, names: tuple[str, ...] = NAMES) -> set[tuple[int, int]]:
    return {(min(e), max(e)) for e in graph.build(names).edges}


def test_named_shapes() -> None:
    path = {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)}
    assert edges(Graph("path")) == path
    assert edges(Graph("ring")) == path | {(0, 5)}
    assert edges(Graph("star")) == {(0, k) for k in range(1, 6)}
    assert edges(Graph("complete")) == {(i, j) for i in range(6) for j in range(i + 1, 6)}
    assert edges(Graph("grid")) == {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}
    assert edges(Graph("empty")) == set()


@pytest.mark.parametrize("kind", ["path", "ring", "star", "complete", "grid", "empty"])
def test_one_agent_is_a_graph(kind: Any) -> None:
    graph = Graph(kind).build(("only",))
    assert (list(graph.nodes), list(graph.edges)) == ([0], [])


@given(st.integers(2, 30), st.floats(0.01, 1.0), st.integers(0, 99))
def test_connectivity_ratio(agents: int, ratio: float, seed: int) -> None:
    names = tuple(str(i) for i in range(agents))
    wanted = round(ratio * agents * (agents - 1) / 2)
    graph = Graph("connectivity", ratio=ratio, seed=seed)
    if wanted < agents - 1:
        with pytest.raises(ConfigError, match="edges cannot connect"):
            graph.build(names)
    else:
        built = graph.build(names)
        assert sorted(built.nodes) == list(range(agents))
        assert built.number_of_edges() == wanted
        assert nx.is_connected(built)


def test_random_graphs_follow_their_seed_or_the_runs() -> None:
    names = tuple(str(i) for i in range(12))
    for settings in ({"kind": "erdos_renyi", "p": 0.5}, {"kind": "connectivity", "ratio": 0.5}):
        own = Graph(**settings, seed=3)  # type: ignore[arg-type]
        assert set(own.build(names, seed=1).edges) == set(own.build(names, seed=2).edges)
        free = Graph(**settings)  # type: ignore[arg-type]
        assert set(free.build(names, seed=1).edges) != set(free.build(names, seed=2).edges)
        assert set(free.build(names, seed=3).edges) == set(own.build(names).edges)


def test_erdos_renyi_has_about_the_right_number_of_edges() -> None:
    counts = [
        Graph("erdos_renyi", p=0.3, seed=s).build([str(i) for i in range(20)]).number_of_edges() for s in range(50)
    ]
    assert 190 * 0.3 - 5 < sum(counts) / 50 < 190 * 0.3 + 5


def test_an_edge_list_takes_names_and_numbers(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("# who talks to whom\na b\n1, c  # a comment\n\n2 3\n")
    assert edges(Graph("file", file=str(file)), ("a", "b", "c", "d")) == {(0, 1), (1, 2), (2, 3)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a b\nb x", r"edges.txt:2: edge to an unknown agent 'x'.*The agents are a, b, c, or 0 to 2"),
        ("a 9", r"edges.txt:1: edge to an unknown agent '9'"),
        ("a", r"edges.txt:1: 'a' is not an edge: write two agents per line"),
    ],
)
def test_a_bad_edge_list_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        Graph("file", file=str(tmp_path / "edges.txt")).build(("a", "b", "c"))


def test_an_absent_edge_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as refusal:
        Graph("file", file=str(tmp_path / "none.txt")).build(NAMES)
    assert str(refusal.value).count("none.txt") == 1


def test_an_edge_list_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "edges.bin").write_bytes(bytes(range(256)))
    with pytest.raises(ConfigError, match=r"edges.bin' is not a text file: give an edge list, two agents per line"):
        Graph("file", file=str(tmp_path / "edges.bin")).build(NAMES)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"kind": "erdos_renyi"}, r"needs algorithm.graph.p"),
        ({"kind": "connectivity"}, r"needs algorithm.graph.ratio"),
        ({"kind": "file"}, r"needs algorithm.graph.file"),
        ({"kind": "path", "p": 0.4}, r"algorithm.graph.p belongs to kind 'erdos_renyi'"),
        ({"kind": "erdos_renyi", "p": 1.5}, r"algorithm.graph.p = 1.5: must be above 0 and at most 1"),
        ({"kind": "connectivity", "ratio": 0.0}, r"algorithm.graph.ratio = 0.0: must be above 0"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Graph(**settings)


def test_a_grid_needs_rows() -> None:
    with pytest.raises(ConfigError, match="7 agents do not fill a grid"):
        Graph("grid").build(tuple("abcdefg"))


def test_a_disconnected_graph_is_named() -> None:
    with pytest.raises(ConfigError, match=r"2 pieces, 'c' cannot be reached from 'a': a walk needs a connected graph"):
        require_connected(nx.Graph([(0, 1), (2, 3)]), tuple("abcd"), "a walk")
