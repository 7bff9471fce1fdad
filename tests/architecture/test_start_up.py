"""What a plain run does not wait for: libraries that take long to load and that it has no use for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SLOW = ("networkx", "torch._dynamo", "scipy", "pandas", "matplotlib", "ray")
PROGRAM = f"""
import sys
from crosshatch import read_config, train
train(read_config("config.toml"), out="run")
print([name for name in {SLOW!r} if name in sys.modules])
"""


def test_a_run_loads_no_library_that_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(
        "a,b,c,d,y\n" + "".join(f"{i},{i % 3},{i % 5},{i % 7},{i % 2}\n" for i in range(40))
    )
    (tmp_path / "config.toml").write_text(
        'data = {path = "rows.csv", label = "y"}\nalgorithm = {name = "fedbcd"}\nfederation = {silos = 2}\n'
        'evaluate = {metrics = ["loss"]}\nrun = {rounds = 1, threads = 1}\n'
    )
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stdout + done.stderr
