"""`crosshatch plan --cluster` as a command."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command_line import Command

CONFIG = """
data = {name = "breast_cancer"}
federation = {silos = 2, clients = 5}
algorithm = {name = "tdcd", local_steps = 3, step_size = 0.1, batch_size = 64}
run = {rounds = 10, threads = 1}
"""


def test_a_table_of_machines(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(CONFIG)
    found = command("plan", path, "--cluster", "1x1,4x8", "--json")
    assert found.code == 0, found.err
    told = json.loads(found.out)
    assert [(one["workers"], one["cores"]) for one in told["machines"]] == [(1, 1), (4, 8)]
    assert "an estimate of a round on workers" in command("plan", path, "--cluster", "2x1").out
    refused = command("plan", path, "--cluster", "two")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
