"""The page: whole, self-contained, safe against what configs contain, written in one step."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosshatch.errors import ConfigError, RunError
from crosshatch.report.curves import thin
from crosshatch.report.page import write_report
from crosshatch.report.runs import read_run, read_runs
from tests.support.written_runs import WriteRun, curve, silo

VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(HTMLParser):
    """Checks that tags nest; keeps scripts, tags with attributes, and the text that a reader sees."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] != "style":
            self.text += data

    @property
    def data(self) -> dict[str, Any]:
        """What the page's own script draws."""
        data: dict[str, Any] = json.loads(self.scripts[0])
        return data


def several(write_run: WriteRun) -> list[Path]:
    return [
        write_run("FedSGD", algorithm="fedsgd", q=1, rows=curve(1, 90_000, 200)),
        write_run("TDCD", q=10),
        write_run("central", algorithm="central", q=12, bytes_per_round=0, finished=False),
    ]


def report(paths: list[Path], *targets: str) -> str:
    out = paths[0].parent / "report.html"
    write_report(read_runs(paths), out, targets)
    return out.read_text(encoding="utf-8")


def test_sections_and_headline(write_run: WriteRun) -> None:
    page = Page(report(several(write_run), "auc=0.75"))
    # from the curves: 1 - exp(-rq/40) >= 0.25/0.28 in round 90 with q = 1 and in round 10 with q = 10
    assert "TDCD reaches AUC 0.75 with 800 kB, 10x less than FedSGD" in page.text
    for heading in ("What the runs reached", "Cost to reach a target", "Where the bytes went", "Who took part"):
        assert heading in page.text
    assert "Not finished: central." in page.text
    assert "2 silos with 103 clients" in page.text
    assert "crosshatch 0.1.0, torch 2.13.0" in page.text
    assert [attributes["value"] for tag, attributes in page.tags if tag == "option"] == [
        *("auc", "train_loss", "loss"),
        *("differ", "all", "log"),
    ]
    assert [a["value"] for t, a in page.tags if t == "input" and a["type"] == "radio"] == [
        "round",
        "bytes",
        "sim_seconds",
    ]


def test_config_is_shown_verbatim(write_run: WriteRun) -> None:
    path = write_run("a")
    page = Page(report([path]))
    assert (path / "config.toml").read_text() in page.text
    assert sum(tag == "details" for tag, _ in page.tags) == 1


def test_nothing_is_loaded(write_run: WriteRun) -> None:
    html = report(several(write_run))
    page = Page(html)
    assert len(html.encode()) < 100_000
    for sign in (
        r"src\s*=",
        r"href\s*=",
        "<link",
        "@import",
        r"fetch\(",
        "XMLHttpRequest",
        r"url\(",
        "https?:",
        "//cdn",
    ):
        assert not re.search(sign, html), sign
    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "iframe", "object", "embed", "link", "base", "form", "a"})


def test_policy_allows_the_one_script_and_no_others(write_run: WriteRun) -> None:
    page = Page(report(several(write_run)))
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy") or ""
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in page.scripts[1:]]
    assert len(hashes) == 1
    assert rules["script-src"] == f"'sha256-{hashes[0]}'"
    assert rules["default-src"] == "'none'"
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \" ' & ${x} $title"


def test_everything_from_a_run_is_escaped(write_run: WriteRun) -> None:
    evil_rows = [row | {EVIL: 0.5} for row in curve(10, 1000)]
    paths = [
        write_run(EVIL, algorithm=EVIL.replace('"', ""), rows=evil_rows, directory=f"run{i}", strategy={EVIL: EVIL},
                  versions={EVIL: EVIL}, bytes_by_link={EVIL: {"bytes": 9, "messages": 1}}, bytes_by_exchange={EVIL: 9},
                  precision=EVIL, targets={f"{EVIL}>=1": None},
                  federation={"silos": [silo(EVIL, holds_labels=True), silo(EVIL)], "tiers": EVIL})
        for i in range(2)
    ]  # fmt: skip
    (paths[0] / "config.toml").write_text(f"# {EVIL}\n[{json.dumps(EVIL)}]\nkey = {json.dumps(EVIL)}\n")
    page = Page(report(paths, "auc=0.6"))
    assert len(page.scripts) == 2
    assert all(tag != "img" for tag, _ in page.tags)
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    assert EVIL in page.text
    assert page.data["runs"][0]["name"].startswith(EVIL)


def test_curves_are_those_of_the_files(write_run: WriteRun) -> None:
    paths = several(write_run)
    data = Page(report(paths, "auc=0.75")).data
    for path, run in zip(paths, data["runs"], strict=True):
        rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        for key in ("round", "bytes"):
            assert run["x"][key] == [row[key] for row in rows]
        assert run["x"]["sim_seconds"] == [float(f"{row['sim_seconds']:.6g}") for row in rows]
        for metric in ("auc", "loss", "train_loss"):
            assert run["y"][metric] == [float(f"{row[metric]:.6g}") for row in rows]
    assert [hit and hit["round"] for hit in data["targets"][0]["arrivals"]] == [90, 10, 8]
    assert len({(run["color"], run["dash"]) for run in data["runs"]}) == 3


def test_values_that_are_not_finite_become_gaps(write_run: WriteRun) -> None:
    rows = curve(10, 1000)
    rows[3]["auc"], rows[4]["auc"], rows[5]["auc"] = math.nan, math.inf, None
    y = Page(report([write_run("gaps", rows=rows)])).data["runs"][0]["y"]["auc"]
    assert [i for i, value in enumerate(y) if value is None] == [3, 4, 5]


def test_many_runs_look_different(write_run: WriteRun) -> None:
    data = Page(report([write_run(f"r{i}", q=i + 1) for i in range(20)])).data
    assert len({(run["color"], run["dash"]) for run in data["runs"]}) == 20


def test_equal_curves_stay_visible_below_each_other(write_run: WriteRun) -> None:
    names = ["one", "yard", "two", "three"]
    paths = [write_run(name, algorithm="central" if name == "yard" else "tdcd") for name in names]
    page = report(paths)
    widths = [run["width"] for run in Page(page).data["runs"]]
    assert widths[0] > widths[2] > widths[3] >= 2  # drawn in this order: each leaves the edges of those before it free
    assert widths[1] > max(widths[0], widths[2]) + 2
    for width in widths:
        assert f'stroke-width="{width:g}"' in page  # the legend shows the same


@pytest.mark.parametrize("most", [40, 88, 1000])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_long_curves_are_thinned_where_no_pixel_shows_it(most: int, logarithmic: bool) -> None:
    count = 20_007
    kept = thin(count, most)
    assert kept == sorted(set(kept))
    assert 0.8 * most <= len(kept) <= most
    assert (kept[0], kept[-1]) == (0, count - 1)
    # a curve as long as the page is wide, drawn whole and through the points kept
    rounds = np.arange(count)
    values = 1 - np.exp(-rounds / 2000) + 0.2 * np.exp(-rounds / 20)
    across = np.log(np.maximum(rounds, 1)) if logarithmic else rounds.astype(float)
    drawn = np.interp(across[1:], across[kept[1:]], values[kept[1:]])
    wide = most > 40
    assert np.abs(drawn - values[1:]).max() * 400 < (1 if wide else 8)  # pixels of 400


def test_short_curves_are_kept_whole() -> None:
    assert thin(5, 5) == thin(5, 1000) == [0, 1, 2, 3, 4]


def long_rows(evaluations: int, seed: int) -> list[dict[str, Any]]:
    """Noisy curves of eight metrics, with all the digits that a run writes."""
    random = np.random.default_rng(seed)
    noise = random.normal(scale=0.01, size=(evaluations, 8))
    names = ("train_loss", "loss", "accuracy", "auc", "f1", "top5", "precision", "recall")
    return [
        {"iteration": 10 * i, "round": i, "bytes": 123_457 * i, "messages": 40 * i, "communications": 3 * i,
         "sim_seconds": 0.3123456789 * i, "wall_seconds": 0.02 * i}
        | {name: 0.9 - 0.5 * math.exp(-i / 50) + noise[i, k] for k, name in enumerate(names)}
        for i in range(evaluations)
    ]  # fmt: skip


@pytest.mark.parametrize("count", [1, 68])
def test_a_page_has_at_most_a_megabyte(write_run: WriteRun, count: int) -> None:
    silos = {"silos": [silo(f"hospital-{k}", 20) for k in range(17)], "tiers": "V(10) H(10)"}
    cost = {f"hospital-{k}": {"samples": 40, "step_flops": 1600, "step_memory": 2, "run_flops": 3} for k in range(17)}
    paths = []
    for i in range(count):
        name = f"tdcd-with-a-telling-name-{i}"
        path = write_run(name, rows=long_rows(1000, i), q=i + 1, cost=cost, federation=silos)
        config = (path / "config.toml").read_text() + "".join(f"setting_{k} = {i * (k < 9)}\n" for k in range(200))
        (path / "config.toml").write_text(config)
        paths.append(path)
    html = report(paths, "auc=0.8", "loss=0.7", "accuracy=0.75")
    assert len(html.encode()) <= 1_000_000
    page = Page(html)
    assert len(page.data["runs"]) == count
    assert all(len(run["y"]["auc"]) >= 60 for run in page.data["runs"])
    assert all(f"tdcd-with-a-telling-name-{i}" in page.text for i in range(count))


def test_many_graphs_share_the_room_for_tables(write_run: WriteRun) -> None:
    edges = [[a, b] for a in range(60) for b in range(a)]
    paths = []
    for i in range(68):
        graph = {"edges": edges, "tokens": 3, "visits": [i + 1] * 60}
        federation = {"silos": [silo(f"agent-{k}", 1) for k in range(60)], "graph": graph}
        paths.append(write_run(f"walk-{i}", federation=federation))
    html = report(paths)
    assert len(html.encode()) <= 1_000_000
    assert 1 <= html.count('data-label="Visits"') <= 200
    assert html.count("60 agents, 1,770 edges, 3 tokens") >= 68


def test_bare_run_still_makes_a_page(write_run: WriteRun) -> None:
    rows = [{"round": 0, "bytes": 0, "sim_seconds": 0, "lift": 1.5}]
    path = write_run("bare", rows=rows, finished=False)
    page = Page(report([path]))
    assert "lift of bare ends at 1.5" in page.text
    assert "Where the bytes went" not in page.text


def test_runs_without_a_common_metric(write_run: WriteRun) -> None:
    rows = [{"round": i, "bytes": i, "sim_seconds": i, "rmse": 2.0 - i} for i in range(2)]
    page = Page(report([write_run("a"), write_run("b", rows=rows, finished=False)]))
    assert set(page.data["titles"]) == {"auc", "loss", "train_loss", "rmse"}
    assert page.data["titles"]["rmse"]["round"] == "RMSE against round"


def test_refused_targets_leave_no_file(write_run: WriteRun, tmp_path: Path) -> None:
    runs = [read_run(write_run("a"))]
    for target, error in (("f1=0.5", RunError), ("auc", ConfigError)):
        with pytest.raises(error):
            write_report(runs, tmp_path / "out.html", [target])
    with pytest.raises(RunError, match="no runs"):
        write_report([], tmp_path / "out.html")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_run_without_metrics_is_refused(write_run: WriteRun, tmp_path: Path) -> None:
    rows = [{"round": 0, "bytes": 0, "sim_seconds": 0}]
    with pytest.raises(RunError, match="measured nothing"):
        write_report([read_run(write_run("mute", rows=rows, finished=False))], tmp_path / "out.html")


def test_written_in_one_step(write_run: WriteRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [read_run(write_run("a"))]
    out = tmp_path / "out.html"
    out.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(RunError, match="No space left on device"):
            write_report(runs, out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "out.html"]
    write_report(runs, out)
    assert out.read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(RunError, match="cannot write"):
        write_report(runs, tmp_path / "absent" / "out.html")


def test_same_runs_same_page(write_run: WriteRun) -> None:
    paths = several(write_run)
    assert report(paths) == report(paths)


WHY = "round 6: training diverged, the training loss is 1e+04 & more: lower it"


def test_runs_that_diverged_are_marked_in_words(write_run: WriteRun) -> None:
    rows = curve(5, 1000, 6)
    paths = [write_run("good"), write_run("bad", rows=rows, diverged={"round": 6, "why": WHY})]
    html = report(paths, "auc=0.75")
    page = Page(html)
    assert f"Diverged: bad, {WHY}." in page.text
    assert "Not finished" not in page.text
    assert "good reaches AUC 0.75 with 800 kB; bad diverged" in page.text
    assert html.count("bad<small>diverged at round 6</small>") == 2  # what was reached, and the cost of targets
    assert "good<small>" not in html
    assert "bad (diverged)</button>" in html  # the legend
    assert [run["name"] for run in page.data["runs"]] == ["good", "bad (diverged)"]
    assert page.data["runs"][0]["diverged"] is None
    last = rows[-1]
    assert page.data["runs"][1]["diverged"] == {
        "x": {key: last[key] for key in ("round", "bytes", "sim_seconds")},
        "y": {key: last[key] for key in ("train_loss", "auc", "loss")},
    }


def test_many_reasons_have_to_be_opened(write_run: WriteRun) -> None:
    for lost, inside in ((3, 0), (4, 1)):
        paths = [write_run(f"bad {lost} {i}", diverged={"round": 6, "why": WHY}) for i in range(lost)]
        html = report(paths)
        assert html.count("Diverged: bad") == lost
        assert html.count(f"<summary>{lost} runs diverged</summary>") == inside


def test_the_word_stands_at_the_last_evaluation_where_none_came_after(write_run: WriteRun) -> None:
    rows = curve(5, 1000, 6)
    page = Page(report([write_run("bad", rows=rows, diverged={"round": 7, "why": WHY})]))
    assert page.data["runs"][0]["diverged"]["x"]["round"] == 6
    page = Page(report([write_run("warned", rows=rows, diverged={"round": 3, "why": WHY})]))
    assert page.data["runs"][0]["diverged"]["x"]["round"] == 4
    assert page.data["runs"][0]["diverged"]["y"]["auc"] == rows[2]["auc"]
