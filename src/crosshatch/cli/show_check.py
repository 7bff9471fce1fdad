"""`crosshatch check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosshatch.data.reading.sources import require_sources
from crosshatch.report.units import human_bytes, human_seconds
from crosshatch.report.word_widths import keep_words
from crosshatch.runs.config import part_files, read_config
from crosshatch.runs.parts.blaming import blaming

if TYPE_CHECKING:
    from crosshatch.data.looking.seen import FileSeen
    from crosshatch.runs.checking.check import ConfigCheck

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
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
    for file in check.files:
        _say(console, _file_line(file))
    for file in check.files:
        if file.purpose == "training":
            console.print(keep_words(_columns(check, file), console))
    _say(console, _rows_line(check))
    if check.classes:
        console.print(keep_words(_classes(check), console))
    _say(console, f"{check.name}: {check.algorithm} {check.tiers}".rstrip() + f"; {check.model}")
    console.print(keep_words(_silos(check), console))
    for line in _round_lines(check):
        _say(console, line)
    for note in check.notes:
        word, style = ("warning", "yellow") if note.is_warning else ("note", "")
        console.print(Text(f"{word}: {note}".replace(f"{Path.cwd()}/", ""), style=style))
    _say(console, _last_line(check))


def _say(console: Console, line: str) -> None:
    console.print(line.replace(f"{Path.cwd()}/", ""), markup=False, highlight=False)


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


def _columns(check: ConfigCheck, file: FileSeen) -> Table:
    becomes = {name: text for silo in check.silos for name, text in silo.columns.items()}
    table = Table(title=Path(file.path).name)
    for heading in ("column", "is", "missing", "different", "first", "becomes"):
        table.add_column(heading, justify="right" if heading in ("missing", "different") else "left")
    for column in file.columns:
        own = becomes.get(column.name) or becomes.get(f"{file.silo}.{column.name}")
        purpose = {"id": "joins the files" if file.silo else "the row's name", "label": "what is learned"}.get(
            column.kind
        )
        table.add_row(
            Text(column.name), column.kind, f"{column.missing:,}", f"{column.different:,}",
            Text(_short(column.example)), purpose or own or "left out",
        )  # fmt: skip
    return table


def _classes(check: ConfigCheck) -> Table:
    table = Table()
    table.add_column("label" if check.target == "multilabel" else "class")
    kinds = [kind for kind in ("training", "validation", "test") if check.rows[kind]]
    for kind in kinds:
        table.add_column(kind, justify="right")
    for one in check.classes[:MOST_CLASSES]:
        table.add_row(Text(_short(one.name, 30)), *(f"{getattr(one, kind):,}" for kind in kinds))
    if len(check.classes) > MOST_CLASSES:
        table.add_row(f"and {len(check.classes) - MOST_CLASSES} more", *("" for _ in kinds))
    return table


def _rows_line(check: ConfigCheck) -> str:
    rows = check.rows
    validation = f", {rows['validation']:,} for validation" if rows["validation"] else ""
    two = f"two classes, '{check.positive}' is the positive one (data.positive)"
    kinds = {"binary": two, "multiclass": f"{len(check.classes)} classes", "multilabel": "several labels"}
    what = kinds.get(check.target, "a quantity (regression)")
    return f"rows: {rows['training']:,} for training{validation}, {rows['test']:,} for testing; the label is {what}"


def _silos(check: ConfigCheck) -> Table:
    table = Table()
    for heading in ("silo", "clients", "columns", "inputs", "block", "parameters"):
        table.add_column(heading, justify="left" if heading in ("silo", "block") else "right")
    for silo in check.silos:
        columns = f"{len(silo.columns):,}" if silo.columns else "-"
        table.add_row(
            Text(silo.name), f"{silo.clients:,}", columns, silo.inputs, silo.block, f"{silo.parameters:,}",
        )  # fmt: skip
    if check.head_parameters:
        table.add_row("(head)", "", "", "", "", f"{check.head_parameters:,}")
    return table


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


def _last_line(check: ConfigCheck) -> str:
    warnings = len(check.warnings)
    if not check.notes:
        return "nothing else to say: go on with crosshatch train"
    counted = "no warnings" if not warnings else "1 warning" if warnings == 1 else f"{warnings} warnings"
    return f"{counted} and {len(check.notes) - warnings} notes; settings are in docs/howto/own-data.md"


def _short(text: str, most: int = 16) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
