"""The page in a real browser: curves are drawn, and the controls redraw them."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from crosshatch.report.page import write_report
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.runs import read_runs
from crosshatch.report.units import human_bytes, human_number, human_seconds
from tests.support.client_spreads import silos, spread
from tests.support.small_studies import study_here, write_config, write_rows
from tests.support.written_runs import WriteRun, curve, write_seed

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BROWSER, reason="no chromium to look at the page with")]

# Records, after each click, what is on the screen; the result is read back from the page.
PROBE = """
(async () => {
  const seen = [];
  const look = () => seen.push({
    title: document.getElementById("curve-title").textContent,
    axis: document.getElementById("x-title").textContent,
    label: document.getElementById("y-title").textContent,
    lines: document.querySelectorAll("#curves .line").length,
    ticks: [...document.querySelectorAll("#curves .xtick")].map((tick) => tick.textContent),
    values: [...document.querySelectorAll("#curves .ytick")].map((tick) => Number(tick.textContent)),
    outside: document.getElementById("outside").hidden ? "" : document.getElementById("outside").textContent,
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
  const choose = (value) => () => {
    const range = document.getElementById("range");
    range.value = value;
    range.dispatchEvent(new Event("change"));
  };
  await after(choose("all"));
  await after(choose("log"));
  await after(() => document.querySelectorAll(".legend button")[1].dispatchEvent(new MouseEvent("dblclick")));
  const out = document.createElement("template");
  out.id = "probe";
  out.setAttribute("data-seen", encodeURIComponent(JSON.stringify(seen)));
  document.body.append(out);
})();
"""


def dump(page: Path, profile: Path) -> str:
    """The page's DOM after its scripts ran."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
               "--disable-component-update", "--disable-sync", "--hide-scrollbars", f"--user-data-dir={profile}",
               "--window-size=1300,1000", "--virtual-time-budget=5000", "--dump-dom"]  # fmt: skip
    command = [BROWSER, *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def probe(page: Path, script: str, tmp_path: Path) -> Any:
    """What a script of ours finds in a copy of the page without its rule against such scripts."""
    html, found = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    assert found == 1
    copy = tmp_path / "probe.html"
    copy.write_text(html.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    seen = re.search(r'data-seen="([^"]*)"', dump(copy, tmp_path / "profile"))
    assert seen is not None, "the probe did not finish"
    return json.loads(unquote(seen[1]))


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
    drawing = dom[dom.index('<div id="curves"') : dom.index('<p id="x-title"')]
    assert ">diverged</text>" in drawing


def test_curves_are_drawn_under_the_policy(page: Path, tmp_path: Path) -> None:
    dom = dump(page, tmp_path / "profile")
    drawing = dom[dom.index('<div id="curves"') : dom.index('<p id="x-title"')]
    assert drawing.count('class="line"') == 3
    assert "target 0.75" in drawing
    title = re.search(r'<h2 id="curve-title">(.*?)</h2>', dom)
    assert title is not None
    assert title[1] == "TDCD reaches AUC 0.75 in 10 rounds, 9x fewer than &lt;b&gt;FedSGD&lt;/b&gt;"
    outside = {link for link in re.findall(r"https?://[^\"'\s<)]+", drawing) if "www.w3.org" not in link}
    assert outside == set()


def test_controls_redraw(page: Path, tmp_path: Path) -> None:
    rounds, size, seconds, log, loss, hidden, *ranges = probe(page, PROBE, tmp_path)
    assert [view["axis"] for view in (rounds, size, seconds)] == [
        "round",
        "bytes sent by all parties",
        "simulated time",
    ]
    assert "with 800 kB" in size["title"]
    assert size["ticks"][1].endswith("MB")
    assert log["ticks"] != seconds["ticks"]
    assert "20 s" in log["ticks"]
    assert (rounds["label"], loss["label"]) == ("AUC", "test loss")
    assert [view["lines"] for view in (rounds, size, seconds, log, loss, hidden)] == [3, 3, 3, 3, 3, 2]
    assert len({view["height"] for view in (rounds, size, seconds, log, loss, hidden)}) == 1
    # the test loss begins at 0.69; its worst tenth and the evaluation before training are not in sight at first
    everything, by_tens, alone = ranges
    assert max(loss["values"]) < 0.65 <= max(everything["values"])
    assert (loss["outside"], everything["outside"]) == ("Some points lie outside: choose all values.", "")
    assert everything["values"] != by_tens["values"]
    assert alone["lines"] == 1


# What the page says of a point, and what units.py says of the same number.
WORDS = """
(() => {
  const numbers = %s;
  const said = Object.fromEntries(["number", "bytes", "seconds"].map((kind) => [kind, numbers.map(plots[kind])]));
  const mark = [...document.querySelectorAll("#curves .mark")].pop().getBoundingClientRect();
  const at = { clientX: mark.x + mark.width / 2, clientY: mark.y + mark.height / 2, bubbles: true };
  document.getElementById("curves").dispatchEvent(new PointerEvent("pointermove", at));
  said.hover = [...document.getElementById("hover").childNodes].map((node) => node.textContent);
  const out = document.createElement("template");
  out.setAttribute("data-seen", encodeURIComponent(JSON.stringify(said)));
  document.body.append(out);
})();
"""


def test_what_is_pointed_at_is_said_in_the_words_of_the_tables(page: Path, tmp_path: Path) -> None:
    numbers = [0, 0.00001234, 0.0123456, 0.51, 0.99996, 7, 12.345, 59.96, 999.4, 999.6, 12346, 1.5e6, 2.345e9]
    said = probe(page, WORDS % json.dumps(numbers), tmp_path)
    assert said["number"] == [human_number(value) for value in numbers]
    assert said["bytes"] == [human_bytes(value) for value in numbers]
    assert said["seconds"] == [human_seconds(value) for value in numbers]
    # curves lie on each other where some marks are: whose it is is not ours to say
    assert re.fullmatch(r"(<b>FedSGD</b>|TDCD|central): 0\.\d+", said["hover"][0])
    assert re.fullmatch(r"round \d+, .* k?M?B, .* m?s", said["hover"][1])


# In a frame, because a window of a browser without a screen has a least width.
SIZES = """
<body><script>
const found = [];
const look = (width) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:2000px;border:0`;
  frame.srcdoc = atob("%s");
  frame.onload = () => setTimeout(() => {
    const page = frame.contentDocument;
    const all = (what) => [...page.querySelectorAll(what)];
    const edge = page.documentElement.clientWidth;
    const beyond = (one) => one.getBoundingClientRect().right > edge + 1;
    const inBox = (one) => one.closest(".scroll, pre, #drawing > svg > svg, .legend.many");
    const size = (one) => parseFloat(page.defaultView.getComputedStyle(one).fontSize);
    const [drawing] = all("#drawing > svg");
    found.push({
      width: edge, page: page.documentElement.scrollWidth,
      beyond: all("body *").filter((one) => beyond(one) && !inBox(one)).map((one) => one.outerHTML.slice(0, 80)),
      scrolling: all(".scroll").filter((one) => one.scrollWidth > one.clientWidth + 1).length,
      lines: all("#curves .line").length,
      type: Math.min(...all("#drawing text").map(size)),
      drawing: drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width,
    });
    done();
  }, 50);
  document.body.append(frame);
});
(async () => {
  for (const width of [1300, 400]) await look(width);
  const out = document.createElement("template");
  out.setAttribute("data-seen", encodeURIComponent(JSON.stringify(found)));
  document.body.append(out);
})();
</script></body>
"""


def sizes(page: Path, tmp_path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is how wide on a screen of 1,300 pixels, and on one of 400."""
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    outer = tmp_path / "frames.html"
    outer.write_text(SIZES % base64.b64encode(html.encode("ascii", "xmlcharrefreplace")).decode())
    seen = re.search(r'data-seen="([^"]*)"', dump(outer, tmp_path / "profile"))
    assert seen is not None, "the probe did not finish"
    wide, narrow = json.loads(unquote(seen[1]))
    assert (wide["width"], narrow["width"]) == (1300, 400)
    return wide, narrow


@pytest.mark.parametrize(("runs", "seeds", "validated"), [(1, 1, 0), (30, 1, 0), (3, 4, 0), (5, 3, 3), (5, 1, 7)])
def test_nothing_is_cut_off_wide_or_narrow(
    write_run: WriteRun, tmp_path: Path, runs: int, seeds: int, validated: int
) -> None:
    """So many metrics are measured on validation rows, too, which choose a round."""
    names = ("accuracy", "top5", "precision", "recall", "f1")[: 2 if validated == 3 else 5]
    on_validation = ("auc", "loss", *names)[:validated]
    paths = []
    for seed in range(seeds):
        rows = [row | dict.fromkeys(names, row["auc"] * (1 - 0.0123 * seed)) for row in curve(10, 8_000_000)]
        rows = [row | {f"validation_{name}": row[name] for name in on_validation} for row in rows]
        clients = silos(**{name: spread(0.7123, 0.9345) for name in ("auc", "loss", *names)})
        given: dict[str, Any] = {"rows": rows, "per_client": clients}
        given |= {"best_round": {"by": "validation_auc", **rows[-2]}} if validated else {}
        paths += [write_seed(write_run, f"tdcd with a longer name {i}", seed, q=i + 1, **given) for i in range(runs)]
    write_report(pool_seeds(read_runs(paths)), tmp_path / "report.html", ["auc=0.75", "loss=0.5"])
    wide, narrow = sizes(tmp_path / "report.html", tmp_path)
    for view in (wide, narrow):
        assert view["page"] == view["width"]
        assert view["beyond"] == []
        assert view["lines"] == runs
        assert view["type"] >= 12
        assert view["drawing"] == pytest.approx(1, abs=0.01)  # letters are not scaled down
        assert view["scrolling"] == 0  # where there is no room for columns, a row is a list


def test_nothing_of_a_study_is_cut_off(tmp_path: Path) -> None:
    """Its table has every metric with an interval, and costs; silos have long names here, and links are slow."""
    write_rows(tmp_path / "rows.csv", n=300, seed=1, alone=0.7, joint=0.85)
    config = write_config(tmp_path, algorithm="tdcd")
    config.write_text(
        config.read_text().replace("insurer", "the_insurer_of_the_region").replace("bank", "savings_bank")
    )
    changes = ["federation.clients=3", "network.t_comm=1234.5", "algorithm.local_steps=7"]
    study_here(config, tmp_path / "study", steps=("0.000123", "0.3"), changes=changes)
    for view in sizes(tmp_path / "study" / "report.html", tmp_path):
        assert view["page"] == view["width"]
        assert view["beyond"] == []
        assert view["scrolling"] == 0
        assert view["lines"] == 5


def test_seeds_are_drawn_as_a_band(write_run: WriteRun, tmp_path: Path) -> None:
    paths = []
    for seed in range(3):
        rows = [row | {"auc": row["auc"] + 0.01 * seed * (row["round"] > 0)} for row in curve(10, 1000)]
        paths.append(write_seed(write_run, "tdcd", seed, rows=rows))
    other = write_run("one", q=1, rows=[row | {"suboptimality": 2.0 - row["auc"]} for row in curve(1, 1000)])
    write_report(pool_seeds(read_runs([*paths, other])), tmp_path / "report.html")
    dom = dump(tmp_path / "report.html", tmp_path / "profile")
    drawing = dom[dom.index('<div id="curves"') : dom.index('<p id="x-title"')]
    assert drawing.count('class="line"') == 2
    assert drawing.count('class="band"') == 1
    assert "NaN" not in drawing
    # a metric that only the other run has
    script = PROBE[: PROBE.index("  await after(() => {});")]
    script += """
      const metric = document.getElementById("metric");
      metric.value = "suboptimality";
      metric.dispatchEvent(new Event("change"));
      look();
      seen[0].drawn = document.querySelectorAll("#curves .line:not([d=''])").length;
      document.body.dataset.seen = encodeURIComponent(JSON.stringify(seen));
    })();"""
    (view,) = probe(tmp_path / "report.html", script, tmp_path)
    assert (view["label"], view["drawn"]) == ("suboptimality", 1)
