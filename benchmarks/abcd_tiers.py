"""ABCD on the topologies of TDCD and HSGD: rounds, bytes and simulated time to a target against these two.

    python -m benchmarks.abcd_tiers --data DIR --out FILE [--seeds 3] [--table]

As `benchmarks.abcd`, with ten clients per silo: `V(Q) H(Q)`, or in five groups that are averaged every second round,
`H(2Q) V(Q) H(Q)`. The step size is that with which Q = 1, which takes central training's steps where there are no
groups, is best on the validation rows; the target is what it reaches in so many rounds as there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.abcd import ROUNDS, SETS, Book, Contestant, best_step, grid, table
from benchmarks.settings import Held, Setting, data_folder, hold_out
from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.exchanges import Algorithm

CLIENTS, GROUPS = 10, 5
FRACTION = 0.2  # of the clients of a group, which HSGD selects; the others' batches have as many samples
LOCAL_STEPS = (5, 10, 20)


def _of(name: str, groups: int = 1) -> Setting:
    """A set of `benchmarks.abcd`, its silos' samples held by clients, in groups where there are any."""
    setting = SETS[name]
    federation = replace(setting.federation, clients=CLIENTS, groups=groups)
    return replace(setting, name=f"{name}, {'clients' if groups == 1 else 'groups'}", federation=federation)


WITH_CLIENTS = tuple(_of(name) for name in ("mnist-quadrants", "credit-4", "superconductivity-4"))
WITH_GROUPS = tuple(_of(name, GROUPS) for name in ("mnist-halves", "credit-2", "physionet-3"))


@dataclass(frozen=True)
class Rival(Contestant):
    """A method with its local steps, all on one topology."""

    def algorithm(self, step_size: float, batch_size: int) -> Algorithm:
        """With this step size; where HSGD is a rival there are groups."""
        q = self.local_steps
        if self.method == "hsgd":
            return HSGD(2 * q, q, step_size, FRACTION)
        if self.method == "tdcd":
            return TDCD(q, step_size, batch_size)
        grouped = self.method == "abcd in groups"
        return ABCD(q, step_size, batch_size, weights="at_work", global_steps=2 * q if grouped else None)

    def __str__(self) -> str:
        return f"{self.method} Q={self.local_steps}{' held' if self.held else ''}"


def _columns(rival: str, ours: str) -> dict[str, Contestant]:
    rivals = [Rival(rival), *(Rival(one, q) for one in (rival, ours) for q in LOCAL_STEPS)]
    rivals += [Rival(one, 10, held=True) for one in (rival, ours)]
    return {str(one): one for one in rivals}


RACES = ((WITH_CLIENTS, _columns("tdcd", "abcd")), (WITH_GROUPS, _columns("hsgd", "abcd in groups")))


def _batches(setting: Setting, held: Held) -> Setting:
    """In groups a batch has as many samples as the clients that HSGD selects."""
    if setting.federation.groups == 1:
        return setting
    return replace(setting, batch_size=int(len(held.data.y_train) / GROUPS * FRACTION))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the data sets, or CROSSHATCH_DATA")
    parser.add_argument("--out", type=Path, required=True, help="the file of the runs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print what is in the file")
    given = parser.parse_args(arguments)
    book = Book(given.out)
    for settings, columns in RACES:
        if given.table:
            for costs in (False, True):
                print("\n".join(table(book, settings, columns, own=False, costs=costs)) + "\n")
            continue
        first = next(iter(columns.values()))
        for setting in settings:
            held = hold_out(setting, data_folder(given.data), seed=0)
            one = _batches(setting, held)
            for step_size in grid(setting):
                book.get(one, held, first, step_size, 0)
            central = best_step(setting, book, first, ROUNDS["fedsgd"])
            for contestant in columns.values():
                for seed in range(given.seeds):
                    book.get(one, held, contestant, central, seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
