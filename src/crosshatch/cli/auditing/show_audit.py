"""`crosshatch audit theorem1` and `crosshatch audit attacks`."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from crosshatch.cli.pipes import say
from crosshatch.report.printed_tables import print_line, print_table
from crosshatch.report.units import human_number

if TYPE_CHECKING:
    from crosshatch.audit.attack_findings import AttackFindings
    from crosshatch.audit.attacks import Attacks
    from crosshatch.audit.recoveries import Recovery
    from crosshatch.audit.theorem1 import SiloFindings, Theorem1


def show_theorem1(run: Path, *, silo: str | None, private_start: bool, data: Path | None, as_json: bool) -> None:
    from crosshatch.audit.theorem1 import audit_theorem1  # late: torch takes seconds

    with _notes():
        found = audit_theorem1(run, silo=silo, private_start=private_start, folder=data)
    if as_json:
        print(json.dumps(asdict(found), indent=2, allow_nan=False))
    else:
        _print_theorem1(found, Console())


def show_attacks(run: Path, *, data: Path | None, as_json: bool) -> None:
    from crosshatch.audit.attacks import audit_attacks  # late: torch takes seconds

    with _notes(), Console(stderr=True).status("attacking") as status:
        found = audit_attacks(run, folder=data, progress=lambda done: status.update(f"done: {done}"))
    if as_json:
        print(json.dumps(asdict(found), indent=2, allow_nan=False))
    else:
        _print_attacks(found, Console())


@contextmanager
def _notes() -> Iterator[None]:
    """What an audit warns of, as lines on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for one in caught:
        say(f"note: {one.message}", sys.stderr)


def _print_theorem1(found: Theorem1, console: Console) -> None:
    labels = "labels shared" if found.labels == "shared" else f"labels held by {found.labels}"
    print_line(
        console,
        f"{found.run}: {found.algorithm}, {labels}, initial weights {found.start}; {found.messages:,} messages "
        f"of {found.rounds:,} rounds were recorded, run again they differ by {human_number(found.reproduced)}",
    )
    headings = "silo|features|other data sets|data differ by|messages differ by|rows are"
    print_table(console, headings, map(_silo_cells, found.silos), "Other data that give the same messages")
    kept = ", ".join(one.silo for one in found.silos if one.statistics_kept)
    if kept:
        print_line(console, f"Columns of the other data have the true means and deviations: {kept}.")
    if any(one.others == "infinitely many" for one in found.silos):
        print_line(
            console,
            "Rows that are not unique are told up to a turn, and columns of two values exactly: see "
            "`crosshatch audit attacks`.",
        )
    if any(one.recoveries for one in found.silos):
        rows = ((one.silo, *_recovery_cells(recovery)) for one in found.silos for recovery in one.recoveries)
        headings = "silo|to somebody who knows|error|recovered|of"
        print_table(console, headings, rows, "Rows recovered where a condition fails")
    for leak in found.label_leaks:
        told = ", ".join(f"{name} {human_number(value)}" for name, value in leak.figures.items())
        print_line(console, f"{leak.attack}, {leak.target}: {told} ({leak.remark}): the theorem is not about labels.")


def _silo_cells(one: SiloFindings) -> tuple[str | Text, ...]:
    data = "-" if one.data_difference is None else f"{100 * one.data_difference:.3g}%"
    messages = "-" if one.message_difference is None else f"{one.message_difference:.2g}"
    told = {"infinitely many": "not unique", "one": "one of two", "none": "unique"}[one.others]
    verdict = Text(told if one.same_messages else "unique", style="" if one.same_messages else "yellow")
    return one.silo, str(one.features), one.others, data, messages, verdict


def _recovery_cells(one: Recovery) -> tuple[str, ...]:
    error = "-" if one.error is None else f"{one.error:.2g}"
    share = "-" if one.share is None else f"{100 * one.share:.4g}%"
    return one.knows, error, share, one.remark


def _print_attacks(found: Attacks, console: Console) -> None:
    print_line(console, f"{found.run}: {found.algorithm}, after round {found.rounds:,}")
    rows: list[tuple[str | Text, ...]] = []
    for one in found.findings:
        for number, (name, value) in enumerate((*one.figures.items(), *one.beside.items())):
            first = (one.attack, one.target) if not number else ("", "")
            style = "" if name in one.figures else "dim"
            rows.append((*first, Text(name, style=style), Text(human_number(value), style=style)))
    print_table(console, "attack|on|figure|value", rows)
    for one in found.findings:
        print_line(console, f"{one.attack}, {one.target}: {_in_words(one)}")
    for one in found.findings:
        if one.warning:
            print_line(console, f"warning: {one.warning}", "yellow")


def _in_words(one: AttackFindings) -> str:
    if one.why:
        return one.why if one.why.startswith("not tried") else f"nothing to attack, {one.why}"
    parts = [f"knows {one.knows}" if one.knows else "", one.remark, f"lower by {one.lowers}" if one.lowers else ""]
    return "; ".join(part for part in parts if part)
