"""Federations in words, and the tables below them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crosshatch.report.findings import axes_of
from crosshatch.report.page import write_report
from crosshatch.report.pictures.run_sections import MOST_SILOS, federation_tables, federation_words
from crosshatch.report.runs import read_run
from crosshatch.report.summary_file import FederationShape, GraphShape, SiloReport
from tests.support.written_runs import WriteRun


def shape(clients: list[int], tiers: str = "", groups: int = 1) -> FederationShape:
    silos = [SiloReport(f"silo {i}", n) for i, n in enumerate(clients)]
    return FederationShape(tuple(silos), tiers, groups)


def graph(agents: int, **settings: Any) -> FederationShape:
    return FederationShape(tuple(SiloReport(f"a{k}") for k in range(agents)), graph=GraphShape(**settings))


@pytest.mark.parametrize(
    ("federation", "words"),
    [
        (shape([1]), "1 silo with 1 client"),
        (shape([10, 20], "V(5) H(5)"), "2 silos with 30 clients, V(5) H(5)"),
        (shape([12, 120], "H(20) V(10)", groups=12), "2 silos with 132 clients in 12 groups, H(20) V(10)"),
        (graph(1), "1 agent, 0 edges"),
        (graph(3, edges=((0, 1), (1, 2)), tokens=1), "3 agents, 2 edges, 1 token"),
        (graph(3, edges=((0, 1),), tokens=2, server=True), "3 agents, 1 edge, 2 tokens and a server"),
    ],
)
def test_words(federation: FederationShape, words: str) -> None:
    assert federation_words(federation) == words


def test_runs_of_one_federation_share_a_table_and_the_label_holder_stays(write_run: WriteRun) -> None:
    silos = [{"name": f"<{k}>", "clients": 2, "holds_labels": k == 29} for k in range(30)]
    runs = [read_run(write_run(name, federation={"silos": silos})) for name in ("one", "two")]
    html = federation_tables(runs)
    assert html.count("<table") == 1
    assert "one, two: 30 silos with 60 clients" in html
    assert html.count("<tr>") == MOST_SILOS + 1
    assert "&lt;29&gt;" in html
    assert "&lt;28&gt;" not in html
    assert "And 6 more silos" in html
    assert federation_tables([read_run(write_run("none", federation={"tiers": "V(1)"}))]) == ""


def test_a_report_has_the_visits_and_counts_communications(tmp_path: Path) -> None:
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
    assert '<td data-label="Visits">5</td>' in page
    assert 'value="communications"' in page
