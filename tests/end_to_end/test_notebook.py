"""The tutorial's notebook, cell after cell in one process, as a kernel runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl

NOTEBOOK = Path(__file__).parents[2] / "examples" / "tutorial.ipynb"


def test_the_notebook_runs_and_its_figures_are_those_it_shows(tmp_path: Path) -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells)
    # From standard input: as in a kernel, the main module is no file that a process of the sweep could load.
    done = subprocess.run([sys.executable, "-"], input=text, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = [line for cell in cells for output in cell["outputs"] for line in output.get("text", [])]
    assert done.stdout.splitlines() == "".join(shown).splitlines()
    assert pl.read_csv(tmp_path / "scores.csv").height == 49
    headline = json.loads((tmp_path / "studies" / "study" / "result.json").read_text())["headline"]
    assert headline.startswith("The columns of laboratory add ")
    kept = [
        json.loads((path / "fingerprint.json").read_text())["test"]
        for path in (tmp_path / "studies" / "study" / "runs").iterdir()
    ]
    assert len(set(kept)) == 1, "not all were tested on the same patients"
