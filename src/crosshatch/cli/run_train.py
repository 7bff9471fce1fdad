"""`crosshatch train`, and `crosshatch launch`, which does the same with parties in processes of their own."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosshatch.cli.pipes import say
from crosshatch.cli.progress import choose_watcher
from crosshatch.data.sources import require_sources
from crosshatch.errors import ConfigError, DivergenceError
from crosshatch.report.measures import main_metric, metric_title
from crosshatch.report.page import write_report
from crosshatch.report.runs import read_runs
from crosshatch.report.units import human_bytes, human_number, human_seconds, workers_line
from crosshatch.runs.config import read_config
from crosshatch.runs.directory import open_existing
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.stopping import INTERRUPTED
from crosshatch.runs.tracking.trackers import require_trackers
from crosshatch.runtime.needed import require_runtime

if TYPE_CHECKING:
    from crosshatch.runs.watcher import Outcome

FAR = 2  # times the first loss: beyond, a run ended far worse than it began


def run_train(
    config_path: Path, changes: Sequence[str], *, out: Path | None, data: Path | None, resume: bool, quiet: bool,
    launched: Mapping[str, Any] | None = None, ray: str | None = None,
) -> int:  # fmt: skip
    """Train and say how it ended; the exit code. `launched`: with processes, and what these are told."""
    # A run is known by its folder, unless its config names it.
    config = read_config(config_path, changes, name=None if out is None else out.resolve().name)
    require_sources(config.data, config.federation, data)
    require_trackers(config.run.track)
    processes = launched is not None
    if processes:
        require_runtime("crosshatch launch")
        if config.run.workers is not None:
            raise ConfigError("run.workers is for crosshatch train, parties compute by themselves: leave it out")
    # Imported late: torch takes seconds, and the config was checked without it.
    if launched is not None:
        from crosshatch.runs.launching.launch import launch

        train: Callable[..., Outcome] = partial(launch, **launched)
    else:
        from crosshatch.runs.train import train as alone

        train = partial(alone, ray=ray)

    out = Path("runs") / config.name if out is None else out
    page = out / "report.html"
    with one_writer(out, "training"):  # until its page is written too
        begun = resume and open_existing(out).config.is_file()
        if resume and not begun and not (launched or {}).get("from_round"):
            words = f"no earlier run in {out}: this one starts at round 0"
            say(f"warning: {words}", sys.stderr) if quiet else say(words)
        try:
            with choose_watcher(quiet=quiet) as watcher:
                outcome = train(config, out=out, folder=data, resume=resume, watcher=watcher)
        except DivergenceError:
            write_report(read_runs([out]), page)
            raise
        except KeyboardInterrupt:  # once more, or before the first round
            if (out / "config.toml").is_file():
                again = _again(out, data, launched=processes)
                raise KeyboardInterrupt(f"interrupted; go on from the last checkpoint with: {again}") from None
            raise
        if outcome.finished and not (outcome.was_finished and page.exists()):
            write_report(read_runs([out]), page)
    if not outcome.finished:
        say(
            f"stopped after round {outcome.round}; go on with: {_again(out, data, launched=processes)}",
            sys.stderr,
        )
        return INTERRUPTED
    if not quiet:
        say(_ending(outcome))
        _warn_if_worse(outcome)
    return 0


def _again(out: Path, data: Path | None, *, launched: bool) -> str:
    folder = [] if data is None else ["--data", str(data)]
    command = ["launch" if launched else "train", str(out / "config.toml"), "--out", str(out), "--resume", *folder]
    return shlex.join(["crosshatch", *command])


def _ending(outcome: Outcome) -> str:
    if outcome.was_finished:
        return f"the run in {outcome.path} has finished already, after round {outcome.round}: nothing to do"
    summary = outcome.summary
    final = ", ".join(f"{name} {human_number(value)}" for name, value in summary["final"].items())
    cost = f"{human_bytes(summary['bytes'])} sent, {human_seconds(summary['sim_seconds'])} simulated"
    if "processes" in summary:
        cost += f", {human_seconds(summary['real_seconds'])} with {summary['processes']} processes over mutual TLS 1.3"
    if "workers" in summary:
        cost += f"; {workers_line(summary['workers'])}"
    best = summary.get("best_round")
    if best is not None:
        value = f"{metric_title(best['by'])} {human_number(best[best['by']])}"
        cost += f"; best on the validation rows after round {best['round']} ({value}), its model is in best_model"
    cost += "".join(_spread(name, silo) for name, silo in summary.get("per_client", {}).get("silos", {}).items())
    diverged = f"; it diverged at round {summary['diverged']['round']}" if "diverged" in summary else ""
    return f"finished after round {outcome.round}: {final}; {cost}; {outcome.path}{diverged}"


def _spread(name: str, silo: dict[str, Any]) -> str:
    if not silo["metrics"]:
        return ""
    metric = main_metric(tuple(silo["metrics"]))
    found = silo["metrics"][metric]
    reach = f"{human_number(found['min'])} to {human_number(found['max'])}"
    return f"; {metric_title(metric)} of the clients of {name} {reach}"


def _warn_if_worse(outcome: Outcome) -> None:
    """Of a loss that grew, but not by the rule that calls it divergence and was said already."""
    if outcome.losses is None or "diverged" in outcome.summary:
        return
    first, last = outcome.losses
    if last > FAR * abs(first):
        say(
            f"warning: the training loss ended at {human_number(last)} and began at {human_number(first)}: "
            f"{outcome.advice}",
            sys.stderr,
        )
