"""Mistakes in a user's own block, and numbers no machine can take: one line each, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosshatch.cli import main

BLOCKS = """
import sys
from torch import nn

class Late(nn.Module):
    def __init__(self, input_shape, outputs):
        super().__init__()
        self.linear = nn.Linear(input_shape[0], outputs)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 3:
            raise ZeroDivisionError("too late")
        return self.linear(x)

class Detached(Late):
    def forward(self, x):
        return self.linear(x).detach()

class NotANumber(Late):
    def forward(self, x):
        return self.linear(x) * float("nan")

class Leaving(Late):
    def forward(self, x):
        sys.exit(0)
"""
CONFIG = """
data = {name = "wine"}
federation = {clients = 3}
algorithm = {name = "tdcd"}
run = {rounds = 2, threads = 1}
model = {block = "mlp"}
"""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("model.block=blocks.py:Late", "blocks.py, line 14 failed with ZeroDivisionError: too late"),
        ("model.block=blocks.py:Detached", "do not depend on its parameters"),
        ("model.block=blocks.py:NotANumber", "before the first round the training loss is not finite"),
        ("model.block=blocks.py:Leaving", "failed with SystemExit"),
        ("network.t_comm=inf", "network.t_comm = inf"),
        ("model.hidden=[2000000000]", "does not fit into memory"),
        ("algorithm.local_steps=99999999999999999999", "algorithm.local_steps"),
        ("run.threads=9999999999999", "run.threads"),
        ("run.device=meta", "run.device = 'meta'"),
    ],
)
def test_one_line_and_nothing_left(
    change: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blocks.py").write_text(BLOCKS)
    (tmp_path / "wine.toml").write_text(CONFIG)
    with pytest.raises(SystemExit) as ended:
        main(["train", "wine.toml", "--quiet", "--out", "run", "--set", change])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert words in said
    assert not (tmp_path / "run").exists()
