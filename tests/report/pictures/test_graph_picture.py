"""The picture of agents on a graph: every edge and agent once, nothing unescaped."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

from crosshatch.report.findings import axes_of
from crosshatch.report.page import write_report
from crosshatch.report.pictures.graph_picture import MOST_AGENTS, draw_graph, graph_title
from crosshatch.report.runs import read_run
from crosshatch.report.summary_file import FederationShape, GraphShape, SiloShape


def shape(agents: int, **graph: Any) -> tuple[FederationShape, GraphShape]:
    drawn = GraphShape(**graph)
    return FederationShape(tuple(SiloShape(f"a<{k}>") for k in range(agents)), graph=drawn), drawn


def parse(svg: str) -> dict[str, list[ElementTree.Element]]:
    found: dict[str, list[ElementTree.Element]] = {}
    for element in ElementTree.fromstring(svg).iter():
        found.setdefault(element.tag, []).append(element)
    return found


def test_edges_and_agents() -> None:
    federation, graph = shape(4, edges=((0, 1), (1, 2), (2, 3)), tokens=2, server=True, visits=(1, 4, 9, 0))
    drawn = parse(draw_graph(federation, graph))
    assert Counter(path.get("class") for path in drawn["path"]) == {"edge": 3}
    radii = [float(c.get("r", "0")) for c in drawn["circle"]]
    assert radii[2] == max(radii)
    assert radii[3] == min(radii)
    assert [t.text for t in drawn["title"]] == ["a<0>: 1 visits", "a<1>: 4 visits", "a<2>: 9 visits", "a<3>: 0 visits"]
    assert "2 tokens and a server" in drawn["svg"][0].get("aria-label", "")


def test_titles() -> None:
    assert graph_title(*shape(1)) == "1 agent, 0 edges"
    assert graph_title(*shape(3, edges=((0, 1), (1, 2)), tokens=1)) == "3 agents, 2 edges, 1 token"
    title = graph_title(*shape(3, edges=((0, 1),), tokens=2, server=True, visits=(1, 2, 3)))
    assert title == "3 agents, 1 edge, 2 tokens and a server; agents as large as visited"


def test_a_crowd_is_not_drawn() -> None:
    assert draw_graph(*shape(MOST_AGENTS + 1)) == ""
    assert draw_graph(*shape(0)) == ""


def test_a_report_shows_the_graph_and_counts_communications(tmp_path: Path) -> None:
    lines = [
        '{"round": 0, "bytes": 0, "communications": 0, "sim_seconds": 0, "suboptimality": 1.0}',
        '{"round": 9, "bytes": 900, "communications": 9, "sim_seconds": 90, "suboptimality": 1e-5}',
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    (tmp_path / "summary.json").write_text(
        '{"name": "walk", "algorithm": "stcd", "federation": {"silos": [{"name": "a"}, {"name": "b"}], '
        '"graph": {"edges": [[0, 1]], "tokens": 1, "visits": [5, 4]}}}'
    )
    run = read_run(tmp_path)
    assert run.metric_names == ("suboptimality",)
    assert [axis.key for axis in axes_of([run])] == ["round", "bytes", "sim_seconds", "communications"]
    write_report([run], tmp_path / "report.html", ["suboptimality=1e-4"])
    page = (tmp_path / "report.html").read_text()
    assert "2 agents, 1 edge, 1 token" in page
    assert 'value="communications"' in page
