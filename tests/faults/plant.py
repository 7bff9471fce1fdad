"""Plant one fault after another into a copy of the tree, and see whether the tests named beside it catch it.

    python -m tests.faults.plant                 all of them; exit code 1 if one goes unnoticed
    python -m tests.faults.plant -k window       those whose name has this word
    python -m tests.faults.plant --list
    python -m tests.faults.plant --parties       those of engines, with the parties as the only judges

A fault is a text in a file, and what to write in its place; `faults.toml` has them, each with the tests that should
fail. They run in a temporary copy of `src` and `tests`, for three minutes at the most.

The parties can judge code alone that they do not run themselves: where a fault is in code that both engines share,
both go wrong alike, and the tests named beside it are what catches it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("faults.toml")
MOST_SECONDS = 180
# What holds the simulator against the parties: weights, bytes and messages; seconds.
BY_PARTIES = ("tests/testing/test_check_federation.py", "tests/testing/test_clocks.py")
_COPIED = ("src", "tests", "pyproject.toml", "benchmarks", "examples", "README.md")


@dataclass(frozen=True)
class Fault:
    """What to write in place of which text of a file, and which tests should notice."""

    name: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]
    of_engines: bool = True  # about what an engine computes, and so for the parties to judge
    seconds: int = MOST_SECONDS

    def planted(self, root: Path) -> str:
        """The file with the fault in it."""
        source = (root / self.file).read_text(encoding="utf-8")
        if source.count(self.text) != 1:
            raise ValueError(f"'{self.name}': its text stands {source.count(self.text)} times in {self.file}, not once")
        return source.replace(self.text, self.instead)


def faults() -> tuple[Fault, ...]:
    """All faults of the list, in its order."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))["fault"]
    return tuple(
        Fault(
            one["name"], one["file"], one["text"], one["instead"], tuple(one["tests"].split()),
            one.get("of_engines", True),
        )
        for one in found
    )  # fmt: skip


def run_by_parties() -> frozenset[str]:
    """The files that parties run on any of the federations they are tried on; there they take plain steps."""
    program = (
        "import sys, types; sys.modules['crosshatch.local.solve'] = types.SimpleNamespace(solve=None);"  # plain steps
        "import crosshatch.parties.parties_of, crosshatch.testing.federations;"
        "del sys.modules['crosshatch.local.solve']; print(*sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    named = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    return frozenset(f"src/{name.replace('.', '/')}.py" for name in named if name.startswith("crosshatch."))


def is_caught(fault: Fault, root: Path) -> bool:
    """Whether a test fails with the fault in the tree at `root`, which is left as it was."""
    path = root / fault.file
    before = path.read_text(encoding="utf-8")
    path.write_text(fault.planted(root), encoding="utf-8")
    try:
        return not _pass(fault.tests, root, fault.seconds)
    finally:
        path.write_text(before, encoding="utf-8")


def _pass(tests: tuple[str, ...], root: Path, seconds: int) -> bool:
    """Whether these tests pass in the tree; that they cannot be run at all is a mistake in the list.

    Those that take too long have noticed nothing.
    """
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    options = ("-q", "-x", "-n", "2", "-p", "no:cacheprovider", "--hypothesis-profile=faults")
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"the tests {' '.join(tests)} take more than {seconds} s: name fewer", flush=True)
        return True
    if done.returncode and " failed" not in done.stdout[-200:]:
        raise SystemExit(f"the tests {' '.join(tests)} did not run:\n{done.stdout[-2000:]}{done.stderr[-1000:]}")
    return done.returncode == 0


def main() -> int:
    """Plant what is asked for; how many went unnoticed decides the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", metavar="WORD", default="", help="only faults whose name has this word")
    parser.add_argument("--list", action="store_true", help="name the faults and plant none")
    parser.add_argument("--parties", action="store_true", help="the parties alone shall notice")
    asked = parser.parse_args()
    chosen = [fault for fault in faults() if asked.k in fault.name]
    if asked.parties:
        shared = run_by_parties()
        for fault in chosen:
            if fault.of_engines and fault.file in shared:
                print(f"shared      {fault.name}: {' '.join(fault.tests)}", flush=True)
        apart = [fault for fault in chosen if fault.of_engines and fault.file not in shared]
        chosen = [replace(fault, tests=BY_PARTIES, seconds=4 * MOST_SECONDS) for fault in apart]
    if asked.list:
        print("\n".join(f"{fault.name}  ({fault.file})" for fault in chosen))
        return 0
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in _COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, root / name)
        for fault in chosen:
            begun = time.monotonic()
            caught = is_caught(fault, root)
            unnoticed += not caught
            print(
                f"{'caught' if caught else 'NOT CAUGHT':10}  {time.monotonic() - begun:4.0f} s  {fault.name}",
                flush=True,
            )
    print(f"{len(chosen) - unnoticed} of {len(chosen)} caught")
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main())
