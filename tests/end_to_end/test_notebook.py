"""The tutorial's notebook, cell after cell in one process, as a kernel runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl

from crosshatch import read_run

NOTEBOOK = Path(__file__).parents[2] / "examples" / "tutorial.ipynb"
TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"


def test_the_notebook_runs_and_its_figures_are_those_it_shows(tmp_path: Path) -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells)
    # From standard input: as in a kernel, the main module is no file that a process of the sweep could load.
    done = subprocess.run([sys.executable, "-"], input=text, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = [line for cell in cells for output in cell["outputs"] for line in output.get("text", [])]
    assert done.stdout.splitlines() == "".join(shown).splitlines()
    assert pl.read_csv(tmp_path / "scores.csv").height == 49
    (alone,) = read_run(tmp_path / "runs" / "alone").summary["federation"]["silos"]
    assert (alone["name"], alone["features"]) == ("clinic", 12)
    kept = [json.loads((tmp_path / "runs" / name / "fingerprint.json").read_text()) for name in ("central", "alone")]
    assert kept[0]["test"] == kept[1]["test"], "the clinic alone is tested on other patients"
    headline = re.search(r"<h1>(.*?)</h1>", (tmp_path / "decision.html").read_text(encoding="utf-8"))
    assert headline is not None
    said = re.fullmatch(r"abcd .* test loss 0\.1 with (.* kB) in the median, 4x less than fedsgd .*", headline[1])
    assert said is not None, headline[1]
    assert f"{said[1]}: four times less" in " ".join(TUTORIAL.read_text(encoding="utf-8").split())
