"""Transfer tasks that cannot be encrypted, or would hide nothing, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from torch import nn

from crosshatch.cli import main
from crosshatch.local.read_chain import as_chain
from crosshatch.privacy.exchanges.check_encryption import least_rows
from tests.support.bad_encryption import refusal

CONFIG = """
[data]
name = "breast_cancer"
[federation]
labels = "a"
common = 300
silos = [{ name = "a", span = [0, 10] }, { name = "b", span = [10, 14] }]
[model]
fusion = "transfer"
loss = "taylor_logistic"
block = "mlp"
hidden = [4]
outputs = 3
[algorithm]
name = "fedbcd"
local_steps = 3
batch_size = 128
[privacy]
encryption = "paillier"
accept_leakage = true
[privacy.seconds]
encrypt = 0.001
[run]
rounds = 2
threads = 1
"""

LINEAR = CONFIG.replace('block = "mlp"\nhidden = [4]', 'block = "linear"')


def test_the_config_itself_is_fine(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(CONFIG)
    with pytest.raises(SystemExit, match="0"):
        main(["train", str(tmp_path / "one.toml"), "--out", str(tmp_path / "run"), "--quiet"])
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert list(summary["bytes_by_exchange"]) == ["components", "masked_gradients", "read_gradients"]
    assert summary["computing_seconds"] + summary["communication_seconds"] == pytest.approx(summary["sim_seconds"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["model.loss=logistic"], "with loss 'logistic': what is encrypted can be added up and multiplied by clear"),
        (["federation.labels=shared", "model.head_holder=a"], "here everybody has them: set federation.labels"),
        (
            ["algorithm.name=abcd"],
            "algorithm ABCD does not use derivatives through gradients of one batch alone: use fedsgd or fedbcd",
        ),
        (
            ["algorithm.name=central"],
            "algorithm Central does not use derivatives through gradients of one batch alone: use fedsgd or fedbcd",
        ),
        (["model.hidden=[4,4]"], "needs blocks with at most one hidden layer, that of 'a' is another"),
        (["codecs.share=half"], "with codecs.share: ciphertexts cannot be compressed"),
        (["codecs.derivatives=half"], "with codecs.derivatives: ciphertexts cannot be compressed"),
        (["privacy.key_bits=1024"], "privacy.key_bits = 1024: must be a multiple of 16, at least 2048"),
        (["privacy.whole_bits=0"], "fixed point goes from -1 to 1, and a feature of silo 'a' is"),
        (["run.strategy=stacked"], "run.strategy = 'stacked' is not for transfer: use 'auto' or 'loop'"),
    ],
)
def test_refusals(changes: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in refusal(tmp_path, capsys, *changes, text=CONFIG)


@pytest.mark.parametrize(
    ("text", "changes", "words"),
    [
        (CONFIG, [], "samples, from which labels can be worked out"),
        (
            CONFIG,
            [],
            "set algorithm.batch_size to at least 944 (16 times as many), give the silo fewer features, hidden",
        ),
        (CONFIG, ["algorithm.draw=anew"], "with algorithm.draw = 'anew'"),
        (LINEAR, [], "set algorithm.batch_size to at least 512 (the least), give the silo fewer features, or accept"),
    ],
)
def test_what_would_leak(
    text: str, changes: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a: 4 x 11 + 3 x 5 parameters, 3 steps, 3 hidden numbers per sample, 16 times."""
    assert words in refusal(tmp_path, capsys, "privacy.accept_leakage=false", *changes, text=text)


def test_rows_that_a_block_asks_for() -> None:
    """With 15 columns and 8 hidden units, as in Table 2: 8 x 16 + 9 sums over labels in every step, 16 times."""
    chain = as_chain(nn.Sequential(nn.Linear(15, 8), nn.ReLU(), nn.Linear(8, 8)))
    assert chain is not None
    assert least_rows(chain, labels=False, local_steps=1) == 16 * 137
    assert least_rows(chain, labels=False, local_steps=10) == 160 * 137
    assert least_rows(chain, labels=True, local_steps=1) == 16 * (8 * 16 + 8 * 9) // 8
    linear = as_chain(nn.Linear(15, 8))
    assert linear is not None
    assert [least_rows(linear, labels=labels, local_steps=5) for labels in (False, True)] == [16 * 16, 16 * 17]


def test_embeddings_that_outgrow_the_range_are_a_divergence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Features are inside, what a large step makes of them is not: a result for a sweep, within the first round too."""
    (tmp_path / "one.toml").write_text(CONFIG.replace("[privacy]\n", "[privacy]\nwhole_bits = 5\n"))
    out = tmp_path / "run"
    with pytest.raises(SystemExit, match="1"):
        main(["train", str(tmp_path / "one.toml"), "--out", str(out), "--quiet", "--set", "algorithm.step_size=1e3"])
    told = json.loads((out / "summary.json").read_text())["diverged"]
    assert told["round"] == 1
    assert told["why"].startswith("round 1: privacy.whole_bits = 5: fixed point goes from -32 to 32, and ")
    assert "raise whole_bits, or take a smaller step size" in told["why"]
    assert "the rounds before are kept in" in capsys.readouterr().err
