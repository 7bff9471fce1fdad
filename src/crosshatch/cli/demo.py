"""`crosshatch demo`: handwritten digits, one silo with the left half of every image and one with the right half."""

import tomllib
from itertools import count
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.console import Console

from crosshatch.cli.opening import describe_network
from crosshatch.cli.progress import Silence
from crosshatch.errors import RunError
from crosshatch.report.compare import compare_runs
from crosshatch.report.findings import headline
from crosshatch.report.measures import parse_target
from crosshatch.report.page import write_report
from crosshatch.report.printed_tables import print_comparison
from crosshatch.report.runs import read_runs
from crosshatch.report.units import human_bytes, human_number, human_seconds
from crosshatch.runs.config import decode_config
from crosshatch.runs.one_writer import is_empty, one_writer
from crosshatch.runs.tables.overrides import overridden
from crosshatch.runs.train import train
from crosshatch.runs.watcher import Outcome

TARGET = "accuracy=0.95"
# One thread: models this small lose by sharing cores. A checkpoint at the end is enough for some seconds' work.
CONFIG = """
data = {name = "digits"}
federation = {split = "halves", clients = 1, silos = [{name = "left"}, {name = "right"}]}
model = {block = "mlp", hidden = [16]}
algorithm = {step_size = 0.15, batch_size = 256}
evaluate = {every = 4}
run = {rounds = 200, threads = 1, checkpoint_every = 200}
[network]
kind = "bandwidth"
step_seconds = 0.002
links.client-hub = {latency = 0.05, up = 10.0, down = 50.0}
links.hub-hub = {latency = 0.02, up = 1000.0, down = 1000.0}
"""
OPENING = """\
Handwritten digits; one silo has the left half of every image, one the right.
  central         all in one place: the yardstick
  fedsgd, fedbcd  a silo is one party; fedbcd takes 10 local steps per round
  tdcd-q1, tdcd   a silo is 10 clients; tdcd takes 10 local steps per round
"""


def run_demo(out: Path | None) -> None:
    fresh = (Path(f"crosshatch-demo{f'-{number}' if number > 1 else ''}") for number in count(1))
    folder = next(one for one in fresh if not one.exists()) if out is None else out
    with one_writer(folder, "running the demo"):
        if not is_empty(folder):
            raise RunError(f"the output folder {folder} exists and is not empty: choose another --out")
        _run(folder, Console())


def _run(folder: Path, console: Console) -> None:
    configs = {name: decode_config(tables) for name, tables in demo_configs().items()}
    network = fill(describe_network(configs["central"].network), 78, subsequent_indent="  ")
    console.print(OPENING + network, "", sep="\n", highlight=False, soft_wrap=True)
    for name, config in configs.items():
        print(_line(name, train(config, out=folder / name, watcher=Silence())), flush=True)
    runs = read_runs([folder / name for name in configs])
    console.print()
    print_comparison(compare_runs(runs, [TARGET]), console)
    console.print(f"\n{headline(runs, [parse_target(TARGET)])}.", highlight=False)
    report = folder / "report.html"
    write_report(runs, report, [TARGET])
    console.print(f"\nreport: {report}", highlight=False, soft_wrap=True)


def demo_configs() -> dict[str, dict[str, Any]]:
    """The tables of the demo's configs by name; they differ in the algorithm and in the clients per silo."""
    often = ["algorithm.local_steps=10", "run.rounds=50", "run.checkpoint_every=50", "evaluate.every=1"]
    chosen = {
        "central": ["algorithm.name=central"],
        "fedsgd": ["algorithm.name=fedsgd"],
        "fedbcd": ["algorithm.name=fedbcd", *often],
        "tdcd-q1": ["algorithm.name=tdcd", "algorithm.local_steps=1", "federation.clients=10"],
        "tdcd": ["algorithm.name=tdcd", "federation.clients=10", *often],
    }
    tables, target = tomllib.loads(CONFIG), f'evaluate.targets=["{TARGET}"]'
    return {name: overridden(tables, [f"run.name={name}", target, *changes]) for name, changes in chosen.items()}


def _line(name: str, outcome: Outcome) -> str:
    summary = outcome.summary
    return (
        f"{name:<8} {outcome.round:>4} rounds  accuracy {human_number(summary['final']['accuracy'])}  "
        f"{human_bytes(summary['bytes'])} sent  {human_seconds(summary['sim_seconds'])} simulated  "
        f"(in {human_seconds(summary['wall_seconds'])})"
    )
