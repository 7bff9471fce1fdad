"""The federation of each run: who there is and when they exchange, in a sentence, and what every silo holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from crosshatch.report.page_tables import html_table
from crosshatch.report.runs import Run
from crosshatch.report.summary_file import FederationShape, SiloReport
from crosshatch.report.units import human_count

MOST_SILOS, MOST_ROWS = 24, 200  # of one federation, and of a page

_TIER = re.compile(r"([HV])\((\d+)\)")


def federation_tables(runs: Sequence[Run]) -> str:
    """One for each federation among the runs, which name it; empty where nothing is known of any."""
    names: dict[FederationShape, list[str]] = {}
    for run in runs:
        names.setdefault(run.facts.federation, []).append(run.name)
    found, room = "", MOST_ROWS
    for shape, who in names.items():
        if shape.silos:
            room -= min(len(shape.silos), MOST_SILOS)
            title = f"{', '.join(who)}: {federation_words(shape)}"
            found += f"<h3>{escape(title)}</h3>{_table(shape) if room >= 0 else ''}"
    return found


def federation_words(shape: FederationShape) -> str:
    """Who there is, where the labels are, and after how many local steps anything is exchanged."""
    silos, clients = len(shape.silos), sum(silo.clients for silo in shape.silos)
    if shape.graph is not None:
        graph = shape.graph
        parts = [_counted(silos, "agent"), _counted(len(graph.edges), "edge")]
        parts += [_counted(graph.tokens, "token")] if graph.tokens else []
        return ", ".join(parts) + (" and a server" if graph.server else "")
    words = f"{_counted(silos, 'silo')} with {_counted(clients, 'client')}"
    words += f" in {_counted(shape.groups, 'group')}" if shape.groups > 1 else ""
    holders = [silo.name for silo in shape.silos if silo.holds_labels]
    if silos > 1 and len(holders) == 1:
        words += f"; the labels stay at {holders[0]}"
    elif silos > 1 and len(holders) == silos:
        words += "; all share the labels"
    return words + _exchanges(shape)


def _exchanges(shape: FederationShape) -> str:
    """What the tiers say, outermost first; nobody averages where a silo is one client and there is one group."""
    tiers = [(kind, int(steps)) for kind, steps in _TIER.findall(shape.tiers)]
    words = []
    for place, (kind, steps) in enumerate(tiers):
        often = "every step" if steps == 1 else f"every {human_count(steps)} steps"
        above = any(later == "V" for later, _ in tiers[place + 1 :])
        if kind == "V":
            words += [f"silos share embeddings {often}"] if len(shape.silos) > 1 else []
        elif above:
            words.append(f"groups are averaged {often}")
        elif any(silo.clients > shape.groups for silo in shape.silos):
            words.append(f"clients are averaged {often}")
    return "".join(f"; {one}" for one in words)


def _table(shape: FederationShape) -> str:
    visits = () if shape.graph is None else shape.graph.visits
    headings = ["Silo", "Clients", "Features", "Samples", "Parameters", "Labels", *(["Visits"] if visits else [])]
    # a silo with labels is never left out before one without
    order = sorted(range(len(shape.silos)), key=lambda k: (not shape.silos[k].holds_labels, k))[:MOST_SILOS]
    rows = [
        [*_cells(shape.silos[k]), *([human_count(visits[k]) if k < len(visits) else "-"] if visits else [])]
        for k in sorted(order)
    ]
    left = len(shape.silos) - len(rows)
    return html_table(headings, rows) + (f'<p class="note">And {_counted(left, "more silo")}.</p>' if left else "")


def _cells(silo: SiloReport) -> list[str]:
    counts = (silo.clients, silo.features, silo.samples, silo.parameters)
    return [escape(silo.name), *map(human_count, counts), "yes" if silo.holds_labels else "no"]


def _counted(count: int, what: str) -> str:
    return f"{human_count(count)} {what}{'' if count == 1 else 's'}"
