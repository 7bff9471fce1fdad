"""What cannot be encrypted, or would hide nothing, through the command line: one line, exit code 2, nothing left."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosshatch.cli import main
from tests.support.bad_encryption import CONFIG, refusal


def test_the_config_itself_is_fine(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(CONFIG)
    with pytest.raises(SystemExit, match="0"):
        main(["train", str(tmp_path / "one.toml"), "--out", str(tmp_path / "run"), "--quiet"])
    assert (tmp_path / "run" / "summary.json").is_file()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["privacy.key_bits=1024"], "privacy.key_bits = 1024: must be a multiple of 16, at least 2048"),
        (["privacy.key_bits=2050"], "must be a multiple of 16"),
        (["privacy.key_bits=100000"], "at most 7680"),
        (["privacy.encryption=ckks"], "privacy.encryption = 'ckks': expected 'none' or 'paillier'"),
        (["privacy.ciphertexts=fake"], "privacy.ciphertexts = 'fake': expected 'real' or 'costs'"),
        (["privacy.ciphertexts=real"], "privacy.seconds has no effect on real ciphertexts"),
        (["privacy.encryption=none"], "privacy.seconds has no effect without encryption"),
        (["privacy.seconds.encrypt=-1"], "privacy.seconds.encrypt = -1.0: must be a finite number of at least 0"),
        (["privacy.fraction_bits=4"], "privacy.fraction_bits = 4: must be at least 8"),
        (["privacy.whole_bits=50"], "at most 60 together"),
        (["model.block=mlp"], "needs a linear block in every silo without labels, that of 'a' is not: set model.block"),
        (["model.fusion=head"], "with model.fusion = 'head'"),
        (["federation.labels=shared"], "here everybody has them: set federation.labels"),
        (["algorithm.derivatives=continued"], "nobody can follow a derivative that it cannot read"),
        (["algorithm.name=tdcd"], "algorithm TDCD does not use derivatives through gradients of one batch alone"),
        (["algorithm.name=abcd"], "algorithm ABCD does not use derivatives"),
        (["algorithm.name=central"], "algorithm Central does not use derivatives"),
        (["federation.clients=2"], "takes one client per silo"),
        (["codecs.derivatives=topk(0.1)"], "with codecs.derivatives: ciphertexts cannot be compressed"),
        (
            ["algorithm.batch_size=256", "algorithm.division_seed=0"],
            "would learn 11 sums over the derivatives of 256 samples, from which labels can",
        ),
        (["algorithm.batch_size=11"], "set algorithm.batch_size to at least 512 (the least), give the silo fewer"),
        (["algorithm.batch_size=11"], "or accept that labels leak with privacy.accept_leakage = true"),
        (["data.test_fraction=0.11"], "would learn 11 sums over the derivatives of 506 samples"),
        (["algorithm.draw=anew"], "with algorithm.draw = 'anew': every new batch tells more about the same labels"),
        (["algorithm.draw=again"], "algorithm.draw = 'again': expected 'anew' or 'partition'"),
        (["algorithm.division_seed=-1"], "algorithm.division_seed = -1: must be at least 0"),
        (["privacy.accept_leakage=yes"], "privacy.accept_leakage = 'yes': expected true or false"),
        (["privacy.whole_bits=1"], "fixed point goes from -2 to 2, and a feature of silo 'a' is"),
    ],
)
def test_refusals(changes: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in refusal(tmp_path, capsys, *changes)


def test_a_batch_has_sixteen_times_as_many_rows_as_there_are_sums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """40 columns and a bias; 656 rows will do."""
    x = np.random.default_rng(0).normal(size=(1640, 41)).round(3)
    rows = [",".join(map(str, (*one, int(one[0] > 0)))) for one in x]
    (tmp_path / "many.csv").write_text("\n".join([",".join([*(f"c{i}" for i in range(41)), "y"]), *rows]))
    text = CONFIG.replace('name = "breast_cancer"', 'path = "many.csv"\nlabel = "y"')
    text = text.replace("[0, 10]", "[0, 40]").replace("[10, 30]", "[40, 41]").replace("0.1\n", "0.2\n")
    said = refusal(tmp_path, capsys, "algorithm.batch_size=400", text=text)
    assert "would learn 41 sums over the derivatives of 437 samples" in said
    assert "set algorithm.batch_size to at least 656 (16 times as many)" in said
    (tmp_path / "one.toml").write_text(text.replace("512", "656"))
    with pytest.raises(SystemExit, match="0"):
        main(["train", str(tmp_path / "one.toml"), "--out", str(tmp_path / "run"), "--quiet"])


@pytest.mark.parametrize("changes", [["batch_size=11"], ["draw=anew", "batch_size=100"], ["draw=anew"]])
def test_who_accepts_that_labels_leak_may_run_it(changes: list[str], tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(CONFIG.replace("[privacy]\n", "[privacy]\naccept_leakage = true\n"))
    sets = [part for change in changes for part in ("--set", f"algorithm.{change}")]
    with pytest.raises(SystemExit, match="0"):
        main(["train", str(tmp_path / "one.toml"), "--out", str(tmp_path / "run"), "--quiet", *sets])


@pytest.mark.parametrize("name", ["stcd", "mtcd", "dcpa"])
def test_graphs_are_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = f'name = "{name}"\n'
    text = CONFIG.replace('name = "fedbcd"\nbatch_size = 512\n', settings).replace('labels = "b"\n', "")
    kind = name.upper()
    assert f"privacy.encryption is not for {kind}: use fedsgd or fedbcd" in refusal(tmp_path, capsys, text=text)


def test_derivatives_outside_of_the_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A regression whose labels are in the hundreds of thousands."""
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3))
    rows = [f"{i},{a},{b},{300_000 * (a + b + c)}" for i, (a, b, c) in enumerate(x)]  # no column tells the label alone
    (tmp_path / "people.csv").write_text("\n".join(["id,u,v,y", *rows]))
    text = CONFIG.replace('name = "breast_cancer"', 'path = "people.csv"\nid = "id"\nlabel = "y"\nstandardise = false')
    text = text.replace("span = [0, 10]", 'columns = ["u"]').replace("span = [10, 30]", 'columns = ["v"]')
    text = text.replace("batch_size = 512\n", "batch_size = 100\ndraw = 'anew'\n")
    text = text.replace("[privacy]\n", "[privacy]\naccept_leakage = true\n")
    said = refusal(tmp_path, capsys, text=text)
    assert "privacy.whole_bits = 16: fixed point goes from -65536 to 65536, and a derivative of the loss is" in said


def test_without_gmpy2(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.split(".")[0] == "gmpy2":
            raise ImportError(name)
        return usual(name, *args, **options)

    for name in [one for one in sys.modules if one.split(".")[0] == "gmpy2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    assert "privacy.encryption needs gmpy2, which is not installed: pip install" in refusal(tmp_path, capsys)
