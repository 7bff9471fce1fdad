"""The page in a real browser: curves are drawn, and the controls redraw them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

from crosshatch.report import read_runs, write_report
from tests.report.conftest import WriteRun, curve

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BROWSER, reason="no chromium to look at the page with")]

# Records, after each click, what is on the screen; the result is read back from the page.
PROBE = """
(async () => {
  const seen = [];
  const look = () => seen.push({
    title: document.getElementById("curve-title").textContent,
    axis: document.querySelector("#curves .xtitle").textContent,
    label: document.querySelector("#curves .ytitle").textContent,
    lines: document.querySelectorAll("#curves .scatterlayer .js-line").length,
    ticks: [...document.querySelectorAll("#curves .xtick text")].map((tick) => tick.textContent),
    height: document.querySelector("main").getBoundingClientRect().height,
  });
  const after = async (act) => { act(); await new Promise((done) => setTimeout(done, 50)); look(); };
  await after(() => {});
  await after(() => document.querySelector("input[value=bytes]").click());
  await after(() => document.querySelector("input[value=sim_seconds]").click());
  await after(() => document.getElementById("log").click());
  await after(() => {
    const metric = document.getElementById("metric");
    metric.value = "loss";
    metric.dispatchEvent(new Event("change"));
  });
  await after(() => document.querySelector(".legend button").click());
  const out = document.createElement("template");
  out.id = "probe";
  out.setAttribute("data-seen", encodeURIComponent(JSON.stringify(seen)));
  document.body.append(out);
})();
"""


def dump(page: Path, profile: Path) -> str:
    """The page's DOM after its scripts ran."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
               "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}",
               "--window-size=1300,1000", "--virtual-time-budget=5000", "--dump-dom"]  # fmt: skip
    command = [BROWSER, *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.fixture
def page(write_run: WriteRun, tmp_path: Path) -> Path:
    paths = [
        write_run("<b>FedSGD</b>", q=1, rows=curve(1, 90_000, 200)),
        write_run("TDCD", q=10),
        write_run("central", algorithm="central", bytes_per_round=0),
    ]
    write_report(read_runs(paths), tmp_path / "report.html", ["auc=0.75"])
    return tmp_path / "report.html"


def test_the_word_stands_where_a_run_diverged(write_run: WriteRun, tmp_path: Path) -> None:
    paths = [write_run("good"), write_run("bad", rows=curve(5, 1000, 6), diverged={"round": 6, "why": "it grew"})]
    write_report(read_runs(paths), tmp_path / "report.html")
    dom = dump(tmp_path / "report.html", tmp_path / "profile")
    drawing = dom[dom.index('<div id="curves"') : dom.index('<script type="application/json"')]
    assert ">diverged</text>" in drawing


def test_curves_are_drawn_under_the_policy(page: Path, tmp_path: Path) -> None:
    dom = dump(page, tmp_path / "profile")
    drawing = dom[dom.index('<div id="curves"') : dom.index('<script type="application/json"')]
    assert drawing.count("js-line") == 3
    assert "target 0.75" in drawing
    title = re.search(r'<h2 id="curve-title">(.*?)</h2>', dom)
    assert title is not None
    assert title[1] == "TDCD reaches AUC 0.75 in 10 rounds, 9x fewer than &lt;b&gt;FedSGD&lt;/b&gt;"
    outside = {link for link in re.findall(r"https?://[^\"'\s<)]+", drawing) if "www.w3.org" not in link}
    assert outside == set()


def test_controls_redraw(page: Path, tmp_path: Path) -> None:
    html = page.read_text(encoding="utf-8")
    # the page forbids any script but its own, so the probe needs a copy without that rule
    html, found = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    assert found == 1
    copy = tmp_path / "probe.html"
    copy.write_text(html.replace("</body>", f"<script>{PROBE}</script></body>"), encoding="utf-8")
    dom = dump(copy, tmp_path / "profile")
    probe = re.search(r'data-seen="([^"]*)"', dom)
    assert probe is not None, "the probe did not finish"
    rounds, size, seconds, log, loss, hidden = json.loads(unquote(probe[1]))
    assert [view["axis"] for view in (rounds, size, seconds)] == [
        "round",
        "bytes sent by all parties",
        "simulated time",
    ]
    assert "with 800 kB" in size["title"]
    assert size["ticks"][1].endswith("MB")
    assert log["ticks"] != seconds["ticks"]
    assert "20" in log["ticks"]
    assert (rounds["label"], loss["label"]) == ("AUC", "test loss")
    assert [view["lines"] for view in (rounds, size, seconds, log, loss, hidden)] == [3, 3, 3, 3, 3, 2]
    assert len({view["height"] for view in (rounds, size, seconds, log, loss, hidden)}) == 1
