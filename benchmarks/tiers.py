"""Three tiers against their rivals: bytes and simulated time of HSGD, TDCD, JFL and their compressed forms to a target.

    python -m benchmarks.tiers --data DIR [--set esr] [--local-steps 1] [--seeds 3] [--quick] [--out FILE]

The split, the selection of devices and the links are those of the HSGD paper (Yu et al., section VII-A), P = Q for all.
Half of the test rows are validation rows: they choose each step size, by the rounds to one of the targets.
TDCD knows one group only, so raw data moves first: nine tenths of the training data over one 204 Mbps line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch

from benchmarks.reach import Chosen, Course, Search, choose, publish, spread, train
from benchmarks.settings import Held, data_folder, hold_out_of_test
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.jfl import JFL
from crosshatch.codecs import parse_codec
from crosshatch.data.data_settings import DataSettings, FederationSettings, SampleSplit, SiloSettings
from crosshatch.network import BandwidthNetwork, Link
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import ModelSettings, build_task

GROUPS = 10
MOBILE = Link(up=14.0, down=110.0)
BROADBAND = Link(up=74.0, down=204.0)
COMPRESSED = parse_codec("topk(0.21875)")  # embeddings and head, as in the HSGD paper


@dataclass(frozen=True)
class Setting:
    """A set divided among ten hospitals and their patients' devices, with targets and the grid of step sizes.

    `round_seconds`: of the local steps of a round at P = Q = 1, and of JFL's, where a hospital trains a model for each
    of its devices one after the other (the paper's Table IV).
    """

    name: str
    data: DataSettings
    federation: FederationSettings
    model: ModelSettings
    fraction: float
    metric: str
    targets: tuple[float, ...]
    main: int
    step_sizes: tuple[float, ...]
    steps: int
    round_seconds: tuple[float, float]
    every: int = 5  # local steps between evaluations, or a round where that is longer
    raw_values: int = 0  # numbers a sample before preparation, those that would be moved

    def search(self, q: int) -> Search:
        """Rounds and evaluations for Q local steps; three evaluations in a row are meaned, since AUCs jump about."""
        return Search(self.metric, self.targets, self.main, max(1, self.steps // q), max(1, self.every // q), smooth=3)


def _two(hospital: SiloSettings, device: SiloSettings, groups: SampleSplit) -> FederationSettings:
    return FederationSettings(silos=(hospital, replace(device, clients="each")), groups=GROUPS, group_samples=groups)


ESR = Setting(
    "esr",
    DataSettings(name="epileptic_seizure"),
    _two(
        SiloSettings("hospital", span=(0, 89)),
        SiloSettings("device", span=(89, 178)),
        SampleSplit("main_labels", main=2, main_share=700 / 920),
    ),
    ModelSettings("lstm", hidden=(16,), steps=89, fusion="head", outputs=16, head_holder="hospital"),
    fraction=0.02,
    metric="auc",
    targets=(0.60, 0.65, 0.70),
    main=1,
    step_sizes=(1.0, 0.5, 2.0),
    steps=400,
    round_seconds=(0.064, 0.1),
    raw_values=178,
)
PHYSIONET = Setting(
    "physionet2012",
    DataSettings(name="physionet2012", impute="mean", indicators=True, clip=4.0),
    _two(
        SiloSettings("hospital", groups=("laboratory", "respiratory_fluid")),
        SiloSettings("device", groups=("vitals",)),
        SampleSplit("dirichlet", alpha=2.0),
    ),
    ModelSettings("lstm", hidden=(16,), fusion="head", outputs=16, head_holder="hospital"),
    fraction=0.02,
    metric="auc",
    targets=(0.75, 0.78, 0.80),
    main=2,
    step_sizes=(1.0, 2.0),
    steps=150,
    round_seconds=(0.05, 0.8),
    raw_values=48 * 37,
)
MNIST = Setting(
    "mnist",
    DataSettings(name="mnist", limit=34580),
    _two(
        SiloSettings("hospital", window=(0, 11, 0, 28)),  # 308 and 476 pixels; the paper has 300 and 484
        SiloSettings("device", window=(11, 28, 0, 28)),
        SampleSplit("main_labels", main=2, main_share=3000 / 3458),
    ),
    ModelSettings("cnn", channels=8, dense=32, fusion="head", outputs=16, head_holder="hospital"),
    fraction=0.01,
    metric="auc",
    targets=(0.8, 0.9, 0.95),
    main=1,
    step_sizes=(0.3, 0.2),
    steps=200,
    round_seconds=(0.06, 0.48),
    raw_values=784,
)
SETTINGS = (ESR, PHYSIONET, MNIST)


@dataclass(frozen=True)
class Contestant:
    """A method: `merged` moves all groups to one place; `share` is the part of HSGD's devices that it selects."""

    name: str
    merged: bool = False
    compressed: bool = False
    pairs: bool = False
    share: float = 1.0

    def algorithm(self, q: int, step_size: float, fraction: float) -> HSGD | JFL:
        """P = Q. HSGD with one group is TDCD with a head and with devices selected: nobody is left to average with."""
        return JFL(q, step_size, fraction) if self.pairs else HSGD(q, q, step_size, self.share * fraction)

    @property
    def groups(self) -> int:
        """Groups whose bytes are counted together."""
        return 1 if self.merged else GROUPS


CONTESTANTS = (
    Contestant("HSGD"),
    Contestant("JFL", pairs=True),
    Contestant("TDCD", merged=True),
    Contestant("C-HSGD", compressed=True),
    Contestant("C-TDCD", merged=True, compressed=True),
    Contestant("TDCD, a tenth", merged=True, share=1 / GROUPS),
    Contestant("C-TDCD, a tenth", merged=True, compressed=True, share=1 / GROUPS),
)


@cache
def held_rows(setting: Setting, folder: Path | None, merged: bool, seed: int) -> Held:
    """The divided data: ten groups, or all of it in one."""
    federation = setting.federation
    if merged:
        federation = replace(federation, groups=1, group_samples=SampleSplit())
    return hold_out_of_test(setting.data, federation, folder, seed=seed)


def network(setting: Setting, contestant: Contestant, samples: int) -> BandwidthNetwork:
    """Devices on mobile lines, the rest on broadband; JFL's seconds are those of a hospital of average size."""
    links = {"client-hub": MOBILE, "hub-hub": BROADBAND, "group-server": BROADBAND}
    models = samples / GROUPS * setting.fraction if contestant.pairs else 1
    return BandwidthNetwork(links=links, step_seconds=setting.round_seconds[contestant.pairs] / models)


def simulate(
    setting: Setting, contestant: Contestant, folder: Path | None, q: int, step_size: float, seed: int
) -> tuple[Simulator, Held]:
    """A contestant before its first round."""
    held = held_rows(setting, folder, contestant.merged, seed)
    simulator = Simulator(
        held.data,
        build_task(held.data, setting.model, seed=seed),
        contestant.algorithm(q, step_size, setting.fraction),
        seed=seed,
        network=network(setting, contestant, len(held.data.y_train)),
        codecs=dict.fromkeys(("share", "head"), COMPRESSED) if contestant.compressed else {},
        threads=1,
    )
    return simulator, held


def compete(setting: Setting, contestant: Contestant, folder: Path | None, q: int, seeds: int) -> Chosen:
    """Step size by validation rows, then the other seeds."""
    search = setting.search(q)

    def run(step_size: float, seed: int, limit: int) -> Course:
        simulator, held = simulate(setting, contestant, folder, q, step_size, seed)
        return train(simulator, held, search, limit=limit)

    return choose(f"{setting.name} {contestant.name} Q {q}", run, setting.step_sizes, search, seeds=seeds)


def raw(setting: Setting, contestant: Contestant, folder: Path | None) -> tuple[int, float]:
    """Bytes and seconds of moving raw data: nine groups' of ten, in 32 bits, into one download of 204 Mbps."""
    if not contestant.merged:
        return 0, 0.0
    samples = len(held_rows(setting, folder, False, 0).data.y_train)
    size = samples * (GROUPS - 1) // GROUPS * setting.raw_values * 4
    return size, size * 8e-6 / BROADBAND.down


HEAD = (
    "set | method | P = Q | devices per round | step size | target | rounds (seeds) | MB, all | MB, each group "
    "| of which raw | simulated s"
)


def rows(setting: Setting, contestant: Contestant, found: Chosen, folder: Path | None, q: int) -> list[str]:
    """A line of the table for each target."""
    moved, waited = raw(setting, contestant, folder)
    samples = len(held_rows(setting, folder, contestant.merged, 0).data.y_train)
    devices = round(samples / contestant.groups * setting.fraction * contestant.share) * contestant.groups
    lines = []
    for target in setting.targets:
        cells = [setting.name, contestant.name, q, devices, f"{found.step_size:g}", f"{setting.metric} {target:g}"]
        spent = found.spent(target)
        if spent is None:
            best = ", ".join(f"{course.best:.3f}" for course in found.courses)
            cells += [f"not within {setting.search(q).rounds}; best {best}", "-", "-", "-", "-"]
        else:
            megabytes = [(one.bytes + moved) / 1e6 for one in spent]
            each = [value / contestant.groups for value in megabytes]
            seconds = [one.seconds + waited for one in spent]
            rounds = "/".join(str(one.round) for one in spent)
            cells += [rounds, spread(megabytes), spread(each), f"{moved / 1e6:.3g}", spread(seconds)]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def shorten(setting: Setting) -> Setting:
    """A few rounds at one step size: to see that it runs."""
    return replace(setting, steps=20, step_sizes=setting.step_sizes[:1])


def main() -> int:
    """Run the chosen sets and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--set", dest="sets", action="append", choices=names, help="only this set (may be repeated)")
    parser.add_argument("--method", action="append", help="only this method (may be repeated)")
    parser.add_argument("--local-steps", type=int, default=1, help="Q, and P with it")
    parser.add_argument("--step-sizes", help="another grid, like 0.3,1 (tried in this order)")
    parser.add_argument("--steps", type=int, help="local steps at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a few rounds, to see that it runs")
    parser.add_argument("--data", type=Path, help="data folder (default: CROSSHATCH_DATA)")
    parser.add_argument("--out", type=Path, help="add the table to this file too")
    given = parser.parse_args()
    torch.set_num_threads(1)
    return publish(table(given), given.out)


def table(given: argparse.Namespace) -> Iterator[str]:
    """The lines, set by set."""
    folder = data_folder(given.data)
    yield f"| {HEAD} |"
    yield "|---" * 11 + "|"
    for setting in SETTINGS:
        if given.sets and setting.name not in given.sets:
            continue
        if given.step_sizes:
            setting = replace(setting, step_sizes=tuple(float(size) for size in given.step_sizes.split(",")))
        setting = replace(setting, steps=given.steps or setting.steps)
        setting = shorten(setting) if given.quick else setting
        for contestant in CONTESTANTS:
            if not given.method or contestant.name in given.method:
                found = compete(setting, contestant, folder, given.local_steps, given.seeds)
                yield from rows(setting, contestant, found, folder, given.local_steps)


if __name__ == "__main__":
    sys.exit(main())
