"""What needs no data and no model is refused before torch is imported, which alone takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.command_line import environment

CONFIG = """
[data]
{data}
[federation]
{federation}
[model]
{model}
[algorithm]
name = "tdcd"
{algorithm}
[run]
rounds = 2
{run}
"""

CASES: dict[str, tuple[dict[str, str], str]] = {
    "unknown key": ({"algorithm": "local_step = 3"}, "did you mean 'local_steps'?"),
    "wrong type": ({"run": "seed = 'one'"}, "run.seed = 'one'"),
    "Q = 0": ({"algorithm": "local_steps = 0"}, "algorithm.local_steps = 0"),
    "unknown block": ({"model": "block = 'linnear'"}, "unknown block 'linnear'"),
    "negative weight": ({"model": "l1 = -1.0"}, "l1 = -1.0"),
    "unknown data set": ({"data": "name = 'whine'"}, "'whine'"),
    "absent file": ({"data": "path = 'gone.csv'"}, "no file"),
    "absent file of a silo": (
        {"data": "label = 'y'", "federation": "silos = [{name = 'a', path = 'gone.csv'}]"},
        "no file",
    ),
    "a set of the data folder": ({"data": "name = 'mnist'"}, "give it by --data"),
}

# One process for all: each line is what was said, and whether torch was there by then.
SCRIPT = """
import contextlib, io, json, sys
from crosshatch.cli import main
for path in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        main([path.split(":")[0], path.split(":")[1]])
    print(json.dumps([said.getvalue(), "torch" in sys.modules]))
"""


def test_without_torch(tmp_path: Path) -> None:
    arguments = []
    for number, (sections, _) in enumerate(CASES.values()):
        filled = dict.fromkeys(("data", "federation", "model", "algorithm", "run"), "") | {"data": "name = 'wine'"}
        (tmp_path / f"{number}.toml").write_text(CONFIG.format(**(filled | sections)))
        arguments.append(f"train:{number}.toml")
    (tmp_path / "bad.toml").write_text("[data\n")
    arguments += ["train:bad.toml", "train:absent.toml", "plan:2.toml"]
    words = [words for _, words in CASES.values()] + ["bad.toml is not TOML", "no config file", "local_steps = 0"]
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], cwd=tmp_path, env=environment(), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    for line, expected in zip(ran.stdout.splitlines(), words, strict=True):
        said, torch_is_there = json.loads(line)
        assert said.startswith("error: ")
        assert expected in said
        assert not torch_is_there, said
