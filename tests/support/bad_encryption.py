"""A config with encryption, and how its refusals are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosshatch.cli import main

CONFIG = """
[data]
name = "breast_cancer"
test_fraction = 0.1
[federation]
labels = "b"
silos = [{ name = "a", span = [0, 10] }, { name = "b", span = [10, 30] }]
[algorithm]
name = "fedbcd"
batch_size = 512
[privacy]
encryption = "paillier"
[privacy.seconds]
encrypt = 0.001
[run]
rounds = 2
threads = 1
"""


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], *changes: str, text: str = CONFIG) -> str:
    """What is said about a config with these changes."""
    (folder / "one.toml").write_text(text)
    out = folder / "run"
    sets = [part for change in changes for part in ("--set", change)]
    with pytest.raises(SystemExit) as ended:
        main(["train", str(folder / "one.toml"), "--out", str(out), "--quiet", *sets])
    said = capsys.readouterr().err
    assert ended.value.code == 2, said
    assert len(said.strip().splitlines()) == 1, said
    assert not out.exists()
    return said
