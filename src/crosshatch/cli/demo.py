"""`crosshatch demo`: handwritten digits, one silo with the left half of every image and one with the right half."""

import sys
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.console import Console

from crosshatch.cli.opening import describe_network
from crosshatch.cli.progress import Bar, Silence
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
from crosshatch.runs.train import train
from crosshatch.runs.watcher import Outcome

TARGET = "accuracy=0.95"
OPENING = """\
Handwritten digits; one silo has the left half of every image, one the right.
  central         all in one place: the yardstick
  fedsgd, fedbcd  a silo is one party; fedbcd takes 10 local steps per round
  tdcd-q1, tdcd   a silo is 10 clients; tdcd takes 10 local steps per round
"""


def run_demo(out: Path | None) -> None:
    folder = _fresh(Path("crosshatch-demo")) if out is None else out
    with one_writer(folder, "running the demo"):
        if not is_empty(folder):
            raise RunError(f"the output folder {folder} exists and is not empty: choose another --out")
        _run(folder, Console())


def _run(folder: Path, console: Console) -> None:
    configs = {name: decode_config(tables) for name, tables in demo_configs().items()}
    network = fill(describe_network(configs["central"].network), 78, subsequent_indent="  ")
    console.print(OPENING + network, "", sep="\n", highlight=False, soft_wrap=True)
    for name, config in configs.items():
        watcher = Bar(console, brief=True) if sys.stdout.isatty() else Silence()
        with watcher:
            outcome = train(config, out=folder / name, watcher=watcher)
        if isinstance(watcher, Silence):
            print(_line(name, outcome), flush=True)
    runs = read_runs([folder / name for name in configs])
    console.print()
    print_comparison(compare_runs(runs, [TARGET]), console)
    console.print(f"\n{headline(runs, [parse_target(TARGET)])}.", highlight=False)
    report = folder / "report.html"
    write_report(runs, report, [TARGET])
    console.print(f"\nreport: {report}", highlight=False, soft_wrap=True)


def demo_configs() -> dict[str, dict[str, Any]]:
    """The tables of the demo's configs by name; they differ in the algorithm and in the clients per silo."""
    chosen: dict[str, tuple[dict[str, Any], int]] = {
        "central": ({"name": "central"}, 1),
        "fedsgd": ({"name": "fedsgd"}, 1),
        "fedbcd": ({"name": "fedbcd", "local_steps": 10}, 1),
        "tdcd-q1": ({"name": "tdcd", "local_steps": 1}, 10),
        "tdcd": ({"name": "tdcd", "local_steps": 10}, 10),
    }
    return {name: _config(name, algorithm, clients) for name, (algorithm, clients) in chosen.items()}


def _config(name: str, algorithm: dict[str, Any], clients: int) -> dict[str, Any]:
    rounds = 50 if algorithm.get("local_steps", 1) > 1 else 200
    return {
        "data": {"name": "digits"},
        "federation": {
            "split": "halves",
            "clients": clients,
            "silos": [{"name": "left"}, {"name": "right"}],
        },
        "model": {"block": "mlp", "hidden": [16]},
        "algorithm": {"step_size": 0.15, "batch_size": 256} | algorithm,
        "network": {
            "kind": "bandwidth",
            "step_seconds": 0.002,
            "links": {
                "client-hub": {"latency": 0.05, "up": 10.0, "down": 50.0},
                "hub-hub": {"latency": 0.02, "up": 1000.0, "down": 1000.0},
            },
        },
        "evaluate": {"every": 1 if rounds == 50 else 4, "targets": [TARGET]},
        # One thread: models this small lose by sharing cores. A checkpoint at the end is enough for some seconds' work.
        "run": {"name": name, "rounds": rounds, "threads": 1, "checkpoint_every": rounds},
    }


def _fresh(folder: Path) -> Path:
    """The folder itself, or with the first free number behind it."""
    candidate, number = folder, 2
    while candidate.exists():
        candidate, number = folder.with_name(f"{folder.name}-{number}"), number + 1
    return candidate


def _line(name: str, outcome: Outcome) -> str:
    summary = outcome.summary
    return (
        f"{name:<8} {outcome.round:>4} rounds  accuracy {human_number(summary['final']['accuracy'])}  "
        f"{human_bytes(summary['bytes'])} sent  {human_seconds(summary['sim_seconds'])} simulated  "
        f"(in {human_seconds(summary['wall_seconds'])})"
    )
