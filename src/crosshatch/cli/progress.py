"""How a run is watched: a live bar on a terminal, a line an evaluation elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from crosshatch.cli.opening import opening
from crosshatch.cli.pipes import say
from crosshatch.data.notes import most_important
from crosshatch.report.measures import COST_KEYS, main_metric, metric_title
from crosshatch.report.printed_tables import print_line
from crosshatch.report.units import human_bytes, human_number, human_seconds
from crosshatch.runs.watcher import Watcher

if TYPE_CHECKING:
    from crosshatch.runs.prepare import Prepared

WIDE = 110  # columns of a terminal that take a bar with all figures
LONG = 5.0  # seconds of waiting for a party before anybody is told
SOON = 2.0  # seconds in which rounds tell little about those to come


class _Pace:
    """Rounds per second, from when the round that a process begins with is over: until then others may be starting."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._done, self._since = 0, 0.0

    def see(self, round: int) -> bool:
        """So many rounds are done; whether they are what this process begins with."""
        if self._first is None:
            self._first = self._done = round
        self._done = max(self._done, round)
        if self._done == self._first:
            self._since = time.monotonic()
        return self._done == self._first

    @property
    def speed(self) -> float:
        """0.0: nothing is known yet."""
        seconds = time.monotonic() - self._since
        return (self._done - (self._first or 0)) / seconds if seconds > SOON else 0.0


class Shown:
    """Somebody who tells, perhaps below a bar, which is drawn meanwhile and left as it is at the end."""

    def __init__(self, bar: Progress | None = None) -> None:
        self._bar = bar

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


class _ShownRun(Shown, Watcher):
    """A watcher that is shown."""

    def warned(self, text: str) -> None:
        """Divergence is never silent."""
        say(f"warning: {text}", sys.stderr)


class PlainProgress(_ShownRun):
    """One plain line per evaluation."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._rounds = 0
        self._pace = _Pace()
        self._waited_for: str | None = None  # who was named last

    def tell(self, text: str) -> None:
        self._print(text)

    def begin(self, prepared: Prepared, path: Path) -> None:
        for line in opening(prepared, path):
            self._print(line)
        self._rounds = prepared.config.run.rounds

    def advance(self, round: int) -> None:
        self._pace.see(round)

    def evaluated(self, row: Mapping[str, Any]) -> None:
        self._pace.see(row["round"])
        left, speed = "", self._pace.speed
        if speed > 0 and row["round"] < self._rounds:
            left = f"  left {human_seconds(round((self._rounds - row['round']) / speed, 1))}"
        width = len(str(self._rounds))
        self._print(f"round {row['round']:>{width}}/{self._rounds}  {figures(row)}{left}")

    def under_way(self, sent: int, waited_for: tuple[str, float] | None) -> None:  # noqa: ARG002
        """A line when a process is waited for, once for each in turn."""
        name = None if waited_for is None or waited_for[1] < LONG else waited_for[0]
        if name is not None and name != self._waited_for:
            self._print(waiting(waited_for))
        self._waited_for = name

    def _print(self, line: str) -> None:
        say(line, self._stream)


class Bar(_ShownRun):
    """A live bar with the newest figures, below the lines that say what is run."""

    def __init__(self, console: Console) -> None:
        self._narrow = console.width < WIDE
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12 if self._narrow else 24),
            TextColumn("round {task.completed}/{task.total}"),
            TextColumn("{task.fields[figures]}", markup=False),
            TextColumn("{task.fields[live]}", markup=False),
            TimeRemainingColumn(compact=True),
            console=console,
        )
        super().__init__(self._progress)
        self._task: TaskID | None = None
        self._pace = _Pace()

    def tell(self, text: str) -> None:
        """Above the bar, where it stays."""
        print_line(self._progress.console, text)

    def begin(self, prepared: Prepared, path: Path) -> None:
        """Draw the bar, from the round a resumed run goes on from."""
        for line in opening(prepared, path):
            print_line(self._progress.console, line, whole=False)
        run, done = prepared.config.run, prepared.simulator.round
        self._task = self._progress.add_task(
            prepared.config.name, total=run.rounds, completed=done, figures="", live=""
        )

    def advance(self, round: int) -> None:
        assert self._task is not None
        if self._pace.see(round):
            self._progress.reset(self._task, completed=round)
        self._progress.update(self._task, completed=round)

    def under_way(self, sent: int, waited_for: tuple[str, float] | None) -> None:
        assert self._task is not None
        live = f"{self._pace.speed:.1f} rounds/s  {human_bytes(sent)}"
        if waited_for is not None and waited_for[1] >= LONG:
            live = f"{live}  {waiting(waited_for)}"
        self._progress.update(self._task, live=live)

    def evaluated(self, row: Mapping[str, Any]) -> None:
        assert self._task is not None
        self._progress.update(self._task, figures=figures(row, short=self._narrow))

    def warned(self, text: str) -> None:
        print_line(self._progress.console, f"warning: {text}")


class Silence(_ShownRun):
    """Nothing at all, but warnings: those on the data too, the three heaviest."""

    def begin(self, prepared: Prepared, path: Path) -> None:  # noqa: ARG002 - one signature for all watchers
        """Say what is probably not as it was meant."""
        for line in most_important(note for note in prepared.simulator.data.notes if note.is_warning):
            say(line, sys.stderr)


def waiting(waited_for: tuple[str, float] | None) -> str:
    """Who is waited for and since when.

    >>> waiting(("hub-0-1", 12.4))
    'waiting for hub-0-1 for 12 s'
    """
    return "" if waited_for is None else f"waiting for {waited_for[0]} for {waited_for[1]:.0f} s"


def choose_watcher(*, quiet: bool) -> PlainProgress | Bar | Silence:
    if quiet:
        return Silence()
    return Bar(Console()) if sys.stdout.isatty() else PlainProgress(sys.stdout)


def figures(row: Mapping[str, Any], *, short: bool = False) -> str:
    """The figures of an evaluation on a line; `short`: the main metric and the bytes alone."""
    metrics = tuple(name for name in row if name not in (*COST_KEYS, "train_loss"))
    main = main_metric(metrics)
    value, sent = f"{metric_title(main)} {human_number(row[main])}", human_bytes(row["bytes"])
    if short:
        return f"{value}  {sent}"
    return f"loss {human_number(row['train_loss'])}  {value}  {sent}  simulated {human_seconds(row['sim_seconds'])}"
