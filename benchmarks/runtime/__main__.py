"""Race parties as processes against the same parties in memory, an echo over the same streams, and the computing."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.runtime import race
from benchmarks.runtime.settings import SETTINGS


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runtime", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(SETTINGS), help="only this one; may be repeated")
    parser.add_argument("--data", type=Path, help="folder with mnist.npz; without it the CNN is left out")
    parser.add_argument("--turns", type=int, default=7, help="of each contestant; the median counts")
    options = parser.parse_args()
    race.table(options.only or list(SETTINGS), options.data, turns=options.turns)


if __name__ == "__main__":
    main()
