"""The scripts in examples/ run, and the README shows the shortest of them."""

from __future__ import annotations

import re
import runpy

import pytest

from tests.architecture.modules import ROOT

EXAMPLES = ROOT / "examples"
SAYS = {  # what must stand in the output, and the least value of the number behind it
    "four_tiers.py": (r"accuracy ([\d.]+)", 0.9),
    "noise.py": (r"AUC ([\d.]+)", 0.95),
    "own_block.py": (r"accuracy ([\d.]+)", 0.9),
    "python_api.py": (r"AUC ([\d.]+)", 0.99),
}


def test_all_scripts_are_tried() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_script(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    pattern, least = SAYS[name]
    found = re.search(pattern, capsys.readouterr().out)
    assert found is not None
    assert float(found[1]) >= least


def test_readme_shows_the_python_example() -> None:
    body = (EXAMPLES / "python_api.py").read_text(encoding="utf-8").partition('"""\n\n')[2]
    assert body in (ROOT / "README.md").read_text(encoding="utf-8")
