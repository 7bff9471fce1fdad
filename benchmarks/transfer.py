"""Transfer between two silos: what B gains by A's labels.

    python -m benchmarks.transfer --data DIR [--seeds 5] [--quick] [--out FILE]

Credit default as the FedBCD paper divides it, A with payments, bills and labels (18 columns), B with profiles
(15 after encoding). B's AUC by transfer, beside that of a network of B's own on the labels of the common samples, of
A's own on A's columns, and of central training. Settings and rounds are chosen on validation rows, the same for all.

The FedBCD paper's Figures 3 and 4 are recipes: `crosshatch reproduce run fedbcd`.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from benchmarks.reach import publish, spread
from benchmarks.settings import CREDIT, Held, Setting, data_folder, hold_out
from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.data.data_settings import FederationSettings, SiloSettings
from crosshatch.data.federated import FederatedData
from crosshatch.errors import TrainingError
from crosshatch.schedules import InverseSqrt
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import ModelSettings, build_task
from crosshatch.task.metrics import evaluate

# As in the papers: one hidden layer of 64 units, here with the 64 outputs that are compared.
NETWORK = ModelSettings("mlp", hidden=(64,), fusion="transfer", alignment="distance", alignment_weight=0.01)
PROFILES = FederationSettings(
    silos=(
        SiloSettings("payments", groups=("pay_status", "bill_amount", "pay_amount")),
        SiloSettings("profile", groups=("demographic_limit",)),
    ),
    labels="payments",
)


@dataclass(frozen=True)
class Best:
    """The highest AUC on validation rows, that on test rows in the same round, and the round."""

    validation: float = 0.0
    test: float = 0.0
    round: int = 0


def best_round(simulator: Simulator, held: Held, *, rounds: int, every: int) -> Best:
    """Train, and remember the best round."""
    best, cut, data = Best(), held.validation, simulator.data
    try:
        for _ in range(rounds):
            simulator.run_round()
            if simulator.round % every:
                continue
            scores = simulator.scores([silo.test for silo in data.silos])
            parts = (scores[:cut], data.y_test[:cut]), (scores[cut:], data.y_test[cut:])
            one, other = (evaluate(["auc"], rows, labels, simulator.task.loss)["auc"] for rows, labels in parts)
            best = max(best, Best(one, other, simulator.round), key=lambda found: found.validation)
    except TrainingError:
        pass
    return best


def only(held: Held, silos: tuple[str, ...]) -> Held:
    """The same rows with the columns of these silos alone, on one machine."""
    data = held.data
    kept = tuple(silo for silo in data.silos if silo.name in silos)
    return replace(held, data=replace(data, silos=kept, label_silo=None, alone=None))


def with_own_rows(held: Held) -> FederatedData:
    """What the silo with the labels has: the common samples and its own."""
    data = only(held, ("payments",)).data
    silo, alone = data.silos[0], held.data.alone
    assert alone is not None
    train = torch.cat([silo.train, alone.x])
    owners = torch.zeros(len(train), dtype=torch.int64).numpy()
    return replace(data, silos=(replace(silo, train=train, owners=owners),), y_train=torch.cat([data.y_train, alone.y]))


@dataclass(frozen=True)
class Credit:
    """The experiment on credit default."""

    folder: Path | None
    seeds: int
    quick: bool

    def held(self, common: int | None, seed: int) -> Held:
        """The data of a seed, with so many common samples, or all columns of all."""
        federation = replace(PROFILES, common=common) if common is not None else PROFILES
        setting = Setting("credit", CREDIT, federation, NETWORK, metric="auc", batch_size=0)
        return hold_out(setting, self.folder, seed=seed)

    def _chosen(self, settings: list[Callable[[int], Best]]) -> list[Best]:
        """The runs of all seeds under the setting whose validation rows are best on average."""
        tried = [[run(seed) for seed in range(self.seeds)] for run in settings]
        return max(tried, key=lambda runs: statistics.fmean(run.validation for run in runs))

    def alone(self, held: Callable[[int], Held]) -> list[Best]:
        """Networks with one output each, added up, by plain gradient descent on all rows."""

        def run(step_size: float, l2: float, seed: int) -> Best:
            mine = held(seed)
            task = build_task(mine.data, ModelSettings("mlp", hidden=(64,), l2=l2), seed=seed)
            simulator = Simulator(mine.data, task, Central(5, InverseSqrt(step_size)), seed=seed, threads=1)
            return best_round(simulator, mine, rounds=10 if self.quick else 100, every=2)

        grid = [(step_size, l2) for step_size in (0.3, 1.0, 3.0) for l2 in (0.0, 0.01)]
        return self._chosen([partial(run, *one) for one in (grid[:1] if self.quick else grid)])

    def transfer(self, common: int) -> list[Best]:
        """FedBCD with five local steps, the alignment and the step size chosen."""

        def run(model: ModelSettings, step_size: float, seed: int) -> Best:
            held = self.held(common, seed)
            task = build_task(held.data, model, seed=seed)
            simulator = Simulator(held.data, task, FedBCD(5, InverseSqrt(step_size)), seed=seed, threads=1)
            return best_round(simulator, held, rounds=10 if self.quick else 60, every=2)

        models = [replace(NETWORK, l2=0.001), replace(NETWORK, l2=0.01, alignment="product")]
        grid = [(model, step_size) for model in models for step_size in (0.1, 0.3, 1.0)]
        return self._chosen([partial(run, *one) for one in (grid[:1] if self.quick else grid)])

    def table(self) -> Iterator[str]:
        """AUC on the test rows, mean and deviation over the seeds."""
        yield "| common samples | transfer to B | B alone, their labels |"
        yield "|---|---|---|"
        for common in (200, 500, 1000, 2000)[: 1 if self.quick else 4]:
            few = self.alone(partial(self._columns, common, ("profile",)))
            yield f"| {common} | {_auc(self.transfer(common))} | {_auc(few)} |"
        yield ""
        yield "| with all labels | AUC |"
        yield "|---|---|"
        yield f"| central, B's columns | {_auc(self.alone(partial(self._columns, None, ('profile',))))} |"
        yield f"| A alone, A's columns | {_auc(self.alone(self._payments))} |"
        both = self.alone(partial(self._columns, None, ("payments", "profile")))
        yield f"| central, all columns | {_auc(both)} |"

    def _columns(self, common: int | None, silos: tuple[str, ...], seed: int) -> Held:
        return only(self.held(common, seed), silos)

    def _payments(self, seed: int) -> Held:
        held = self.held(200, seed)
        return replace(held, data=with_own_rows(held))


def _auc(runs: list[Best]) -> str:
    return spread([run.test for run in runs], digits=4)


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.transfer", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, help="the data folder (default: CROSSHATCH_DATA)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few rounds and settings, to see that it runs")
    parser.add_argument("--out", type=Path, help="add the table to this file")
    args = parser.parse_args()
    torch.set_num_threads(1)
    folder = data_folder(args.data)
    return publish(Credit(folder, args.seeds, args.quick).table(), args.out)


if __name__ == "__main__":
    raise SystemExit(main())
