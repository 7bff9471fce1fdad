"""`crosshatch check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from crosshatch.data.notes import counted
from crosshatch.data.sources import require_sources
from crosshatch.data.text.text_format import SEPARATORS
from crosshatch.own_parts import blaming
from crosshatch.report.printed_tables import print_line, print_table
from crosshatch.report.units import human_bytes, human_seconds
from crosshatch.runs.config import part_files, read_config

if TYPE_CHECKING:
    from crosshatch.data.looking.seen import FileSeen
    from crosshatch.runs.checking.check import ConfigCheck

MOST_CLASSES = 20
WARNED = 1


def show_check(config_path: Path, changes: Sequence[str], *, data: Path | None, as_json: bool, strict: bool) -> int:
    """Print what was understood of a config; the exit code, which with `strict` tells of warnings."""
    config = read_config(config_path, changes)
    require_sources(config.data, config.federation, data)
    from crosshatch.runs.checking.check import make_check  # late: torch takes seconds

    with blaming(part_files(config).names):
        check = make_check(config, folder=data)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(asdict(check)), indent=2).decode())
    else:
        _print(check, Console())
    return WARNED if strict and check.warnings else 0


def _print(check: ConfigCheck, console: Console) -> None:
    say = partial(print_line, console, whole=False)
    for file in check.files:
        say(_file_line(file))
    for file in check.files:
        if file.purpose == "training":
            headings = "column|is|>missing|>different|first|becomes"
            print_table(console, headings, _columns(check, file), Path(file.path).name)
    say(_rows_line(check))
    if check.classes:
        kinds = [kind for kind in ("training", "validation", "test") if check.rows[kind]]
        headings = "|>".join(("label" if check.target == "multilabel" else "class", *kinds))
        rows = [(_short(one.name, 30), *(f"{getattr(one, kind):,}" for kind in kinds)) for one in check.classes]
        more = [(f"and {len(rows) - MOST_CLASSES} more", *("" for _ in kinds))] if len(rows) > MOST_CLASSES else []
        print_table(console, headings, rows[:MOST_CLASSES] + more)
    say(f"{check.name}: {check.algorithm} {check.tiers}".rstrip() + f"; {check.model}")
    print_table(console, "silo|>clients|>columns|>inputs|block|>parameters", _silos(check))
    for line in _round_lines(check):
        say(line)
    for note in check.notes:
        say(f"{'warning' if note.is_warning else 'note'}: {note}", "yellow" if note.is_warning else "")
    warnings, said = len(check.warnings), "nothing else to say: go on with crosshatch train"
    if check.notes:
        counts = counted(warnings, "warning") if warnings else "no warnings"
        said = f"{counts} and {len(check.notes) - warnings} notes; settings are in docs/howto/own-data.md"
    say(said)


def _file_line(file: FileSeen) -> str:
    whose = f"{file.silo}: " if file.silo else ""
    kind = "Parquet"
    if file.encoding:
        decimal = {",": "decimal commas", ".": "decimal points", "whole": "whole numbers", "": "no numbers"}.get(
            file.decimal, "both decimal marks"
        )
        separator = SEPARATORS.get(file.separator, f"separator '{file.separator}'")
        kind = f"{file.encoding.replace('utf-8-sig', 'utf-8')}, {separator}, {decimal}"
    nulls = f", missing: {' '.join(file.nulls)}" if file.nulls else ""
    lost = f"; {file.lost:,} rows lost, their ids are not in all files" if file.lost else ""
    return f"{whose}{file.path} ({file.purpose}): {file.rows:,} rows, {len(file.columns)} columns; {kind}{nulls}{lost}"


def _columns(check: ConfigCheck, file: FileSeen) -> Iterator[tuple[str, ...]]:
    becomes = {name: text for silo in check.silos for name, text in silo.columns.items()}
    purposes = {"id": "joins the files" if file.silo else "the row's name", "label": "what is learned"}
    for one in file.columns:
        own = becomes.get(one.name) or becomes.get(f"{file.silo}.{one.name}") or "left out"
        cells = one.name, one.kind, f"{one.missing:,}", f"{one.different:,}", _short(one.example)
        yield *cells, purposes.get(one.kind, own)


def _rows_line(check: ConfigCheck) -> str:
    rows = check.rows
    validation = f", {rows['validation']:,} for validation" if rows["validation"] else ""
    two = f"two classes, '{check.positive}' is the positive one (data.positive)"
    kinds = {"binary": two, "multiclass": f"{len(check.classes)} classes", "multilabel": "several labels"}
    what = kinds.get(check.target, "a quantity (regression)")
    return f"rows: {rows['training']:,} for training{validation}, {rows['test']:,} for testing; the label is {what}"


def _silos(check: ConfigCheck) -> Iterator[tuple[str, ...]]:
    for silo in check.silos:
        columns = f"{len(silo.columns):,}" if silo.columns else "-"
        yield silo.name, f"{silo.clients:,}", columns, silo.inputs, silo.block, f"{silo.parameters:,}"
    if check.head_parameters:
        yield "(head)", "", "", "", "", f"{check.head_parameters:,}"


def _round_lines(check: ConfigCheck) -> list[str]:
    if check.round is None:
        return []
    lines = [
        f"a round sends {human_bytes(check.round.bytes)} in {check.round.messages:,.0f} messages, and takes "
        f"{human_seconds(check.round.seconds)} simulated"
    ]
    if len(check.round.links) > 1:
        parts = (f"{link} {human_bytes(size)} in {count:,.0f}" for link, (size, count) in check.round.links.items())
        lines.append(f"of that: {', '.join(parts)}")
    return lines


def _short(text: str, most: int = 16) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
