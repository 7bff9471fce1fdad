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

class Remembering(nn.Sequential):
    def __init__(self, input_shape, outputs):
        super().__init__(nn.utils.parametrizations.spectral_norm(nn.Linear(input_shape[0], outputs)))

class Mixing(Late):
    def forward(self, x):
        return self.linear(x - x.mean(0))

class Writing(Late):
    def forward(self, x):
        return self.linear(x.mul_(0.5))

class Squeezing(Late):
    def forward(self, x):
        return self.linear(x).squeeze()

class Double(Late):
    def forward(self, x):
        return self.linear(x).double()

class Rare(Late):
    def forward(self, x):
        return self.linear(x)[: 7 if len(x) == 100 else None]

class Wider(Late):
    def forward(self, x):
        return self.linear(x)[:, : 2 if len(x) == 100 else None]
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
        ("model.block=blocks.py:NotANumber", "the block of silo 'silo1' returns NaN or infinity for training sample 0"),
        ("model.block=blocks.py:Leaving", "failed with SystemExit"),
        ("model.block=blocks.py:Remembering", "block of silo 'silo1' changes its buffer '0.parametrizations.weight.0."),
        ("model.block=blocks.py:Mixing", "block of silo 'silo1' lets samples look at each other"),
        ("model.block=blocks.py:Writing", "block of silo 'silo1' writes into its input"),
        ("model.block=blocks.py:Squeezing", "block of silo 'silo1' returned (3,) for 1 sample"),
        ("model.block=blocks.py:Double", "block of silo 'silo1' returned numbers of type float64"),
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


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("Rare", "block of silo 'silo1' returned (7, 3) for 100 samples: return a row of outputs each"),
        ("Wider", "block of silo 'silo1' returned 2 outputs per sample for 100 samples and 3 for others"),
    ],
)
@pytest.mark.parametrize(
    "algorithm",
    ["algorithm.name=fedbcd", "algorithm.name=mtcd", "algorithm.derivatives=each_round", "model.fusion=head"],
)
def test_outputs_that_are_wrong_for_one_number_of_samples(
    block: str,
    words: str,
    algorithm: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blocks.py").write_text(BLOCKS)
    (tmp_path / "wine.toml").write_text(CONFIG)
    limited = ["data.limit=100", "federation.clients=1", f"model.block=blocks.py:{block}", algorithm, "model.outputs=3"]
    if "mtcd" in algorithm:
        limited += ["algorithm.hops_between_averages=2", "algorithm.step_size=0.001", "algorithm.tokens=1"]
    with pytest.raises(SystemExit) as ended:
        main(["train", "wine.toml", "--quiet", "--out", "run", *(f"--set={change}" for change in limited)])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert words in said
