"""Error feedback: what top-k compression of the embeddings costs with and without it, and bytes to an accuracy.

    python -m benchmarks.feedback --data DIR [--part full] [--seeds 1] [--quick] [--out FILE]

MNIST, four silos with a quadrant each; the head travels as plain numbers.
`full`: the model of the EF-VFL authors' MNIST experiment (one linear layer with
sigmoid to 16 numbers, their mean, a linear layer), all samples in a round. `mini`: a hidden layer of 64, side by side
into a linear head, batches of 1000. A tenth of the training rows chooses the step size. Bytes are uplink: what each of
the four parties writes, once, positions and frames included.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.reach import Chosen, Course, Search, choose, publish, spread, train
from benchmarks.settings import Held, Setting, data_folder, hold_out
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.codecs import parse_codec
from crosshatch.data.data_settings import DataSettings, FederationSettings
from crosshatch.data.federated import FederatedData
from crosshatch.seeds import torch_seed
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import ModelSettings, build_task
from crosshatch.task.fusion import Head
from crosshatch.task.losses import CrossEntropy
from crosshatch.task.task import Task

SILOS = 4
CUT = 16
QUADRANTS = FederationSettings(silos=SILOS, split="patches", patches=(2, 2))


@dataclass(frozen=True)
class Part:
    """Full batches or mini-batches: the model, the targets and the limits."""

    name: str
    setting: Setting
    batch_size: int | None
    targets: tuple[float, ...]
    main: int
    rounds: int
    every: int
    step_sizes: tuple[float, ...]
    authors_model: bool = False


FULL = Part(
    "full",
    Setting("mnist", DataSettings(name="mnist"), QUADRANTS, ModelSettings(), metric="accuracy", batch_size=0),
    None,
    targets=(0.85, 0.88, 0.90, 0.92),
    main=1,
    rounds=150,
    every=2,
    step_sizes=(4.0, 8.0),  # 4 is that of the EF-VFL authors' experiment
    authors_model=True,
)
MINI = Part(
    "mini",
    replace(FULL.setting, model=ModelSettings("mlp", hidden=(64,), fusion="head", outputs=CUT), batch_size=1000),
    1000,
    targets=(0.95, 0.97, 0.975),
    main=0,
    rounds=1500,
    every=25,
    step_sizes=(0.3, 0.5),
)
PARTS = (FULL, MINI)


@dataclass(frozen=True)
class Contestant:
    """A codec on the embeddings and Q local steps; `held`: one silo alone has the labels, and no head travels."""

    codec: str | None
    local_steps: int = 1
    held: bool = False
    only: str | None = None
    step_sizes: tuple[float, ...] = ()
    longer: int = 1  # times the rounds of the others: so little is sent in one

    @property
    def name(self) -> str:
        """As in the table."""
        method = "fedsgd" if self.local_steps == 1 else f"fedbcd Q {self.local_steps}"
        return f"{method}, {self.codec or 'no codec'}{', labels held' if self.held else ''}"


CONTESTANTS = (
    Contestant(None),
    Contestant("ef(topk(0.01))"),
    Contestant("ef(topk(0.001))", longer=4),
    Contestant("topk(0.01)"),
    Contestant("topk(0.001)"),
    Contestant("topk(0.01)", held=True, only="mini"),
    Contestant("ef(topk(0.01) | quantise(128))"),
    Contestant("ef(topk(0.02) | quantise(16))", local_steps=3, only="full"),
    Contestant("ef(topk(0.05) | quantise(16))", local_steps=5, only="mini", step_sizes=(0.3, 0.2)),
)


class MeanHead(nn.Module):
    """A linear layer on the mean of the silos' embeddings."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.output = nn.Linear(CUT, classes)

    def forward(self, embeddings: Tensor) -> Tensor:
        """Scores (n, classes) of embeddings side by side (n, silos * cut)."""
        scores: Tensor = self.output(embeddings.reshape(*embeddings.shape[:-1], SILOS, CUT).mean(-2))
        return scores


def model(part: Part, data: FederatedData, seed: int) -> Task:
    """The blocks and the head, from the seed."""
    if not part.authors_model:
        return build_task(data, part.setting.model, seed=seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(seed, "initial"))
        blocks = [nn.Sequential(nn.Flatten(), nn.Linear(14 * 14, CUT), nn.Sigmoid()) for _ in range(SILOS)]
        return Task(tuple(blocks), Head(MeanHead(data.classes), 0), CrossEntropy())


@cache
def held_rows(setting: Setting, folder: Path | None) -> Held:
    """One client a silo, so the seed divides nothing."""
    return hold_out(setting, folder, seed=0)


def uplink(simulator: Simulator) -> int:
    """What the parties send, each message once: with shared labels everybody sends the same to the three others."""
    links = simulator.meter.links
    if "hub-hub across" in links:
        return links["hub-hub across"][0] // (SILOS - 1)
    return links["hub-hub up"][0]


def compete(part: Part, contestant: Contestant, folder: Path | None, seeds: int) -> Chosen:
    """Step size by validation rows, a run for each seed."""
    search = Search(part.setting.metric, part.targets, part.main, contestant.longer * part.rounds, part.every)
    held = held_rows(part.setting, folder)
    if contestant.held:
        held = replace(held, data=replace(held.data, label_silo=held.data.silos[0].name))

    def run(step_size: float, seed: int, limit: int) -> Course:
        q = contestant.local_steps
        simulator = Simulator(
            held.data,
            model(part, held.data, seed),
            FedSGD(step_size, part.batch_size) if q == 1 else FedBCD(q, step_size, part.batch_size),
            seed=seed,
            codecs={"share": parse_codec(contestant.codec)} if contestant.codec else {},
            threads=1,
        )
        return train(simulator, held, search, limit=limit, bytes_of=uplink)

    grid = contestant.step_sizes or part.step_sizes
    return choose(f"{part.name} {contestant.name}", run, grid, search, seeds=seeds)


def row(part: Part, contestant: Contestant, found: Chosen) -> str:
    """One line: the best accuracy within the rounds, and uplink megabytes to each target."""
    best = f"{spread([course.best for course in found.courses], 4)} of {contestant.longer * part.rounds}"
    cells = [part.name, contestant.name, f"{found.step_size:g}", best]
    for target in part.targets:
        spent = found.spent(target)
        rounds = "" if spent is None else "/".join(str(one.round) for one in spent)
        cells.append("-" if spent is None else f"{spread([one.bytes / 1e6 for one in spent])} ({rounds})")
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Run the chosen parts and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", dest="parts", action="append", choices=[part.name for part in PARTS])
    parser.add_argument("--codec", help="only this codec")
    parser.add_argument("--step-sizes", help="another grid, like 4,8 (tried in this order)")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a few rounds, to see that it runs")
    parser.add_argument("--data", type=Path, help="data folder (default: CROSSHATCH_DATA)")
    parser.add_argument("--out", type=Path, help="add the tables to this file too")
    given = parser.parse_args()
    torch.set_num_threads(1)
    return publish(tables(given), given.out)


def tables(given: argparse.Namespace) -> Iterator[str]:
    """The lines, part by part."""
    for part in PARTS:
        if given.parts and part.name not in given.parts:
            continue
        if given.step_sizes:
            part = replace(part, step_sizes=tuple(float(size) for size in given.step_sizes.split(",")))
        part = replace(part, rounds=2 * part.every, step_sizes=part.step_sizes[:1]) if given.quick else part
        targets = " | ".join(f"MB to {target:g} (rounds)" for target in part.targets)
        yield f"\n| batches | contestant | step size | best, of rounds at most | {targets} |"
        yield "|---" * (4 + len(part.targets)) + "|"
        for contestant in CONTESTANTS:
            if contestant.only in (None, part.name) and given.codec in (None, contestant.codec):
                yield row(part, contestant, compete(part, contestant, data_folder(given.data), given.seeds))


if __name__ == "__main__":
    sys.exit(main())
