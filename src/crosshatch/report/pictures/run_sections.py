"""What a page says of each run below its curves: bytes, what deciding by it comes to, its clients, who took part."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from crosshatch.report.compare import Comparison
from crosshatch.report.measures import metric_title
from crosshatch.report.page_tables import html_table, names_of, run_name
from crosshatch.report.runs import Run
from crosshatch.report.summary_file import ClientSpread, FederationShape, SiloClients, SiloReport, Traffic, WorstClient
from crosshatch.report.units import human_bytes, human_count, human_number, with_deviation
from crosshatch.task.measuring.decisions import Decisions

MOST_SILOS, MOST_ROWS = 24, 200  # of one federation, and of a page
MOST_OF_CLIENTS = 20  # runs and silos whose clients are told of
_SIDE, _EDGE = 150, 12  # pixels
_TIER = re.compile(r"([HV])\((\d+)\)")

Parts = Mapping[str, Traffic]


def byte_tables(runs: Sequence[Run]) -> str:
    """By kind of link and direction, and by exchange; without a table where all went one way, or in one exchange."""
    by_link = _byte_table([(run.name, run.facts.bytes_by_link) for run in runs], "carries")
    exchanges = [
        (run.name, {name: Traffic(size) for name, size in run.facts.bytes_by_exchange.items()}) for run in runs
    ]
    return by_link + _byte_table(exchanges, "takes")


def _byte_table(runs: Sequence[tuple[str, Parts]], verb: str) -> str:
    """Of runs that sent the same one row; the title says which part dominates in the run that sent most."""
    alike: dict[str, tuple[list[str], Parts]] = {}
    for name, parts in runs:
        alike.setdefault(str(parts), ([], parts))[0].append(name)
    by_run = [(names_of(who, "curves"), parts) for who, parts in alike.values()]
    names = list(dict.fromkeys(name for _, parts in by_run for name in parts))
    who, most = max(by_run, key=lambda item: _total(item[1]))
    if len(names) < 2 or not _total(most):
        return ""
    first = max(most, key=lambda key: most[key].bytes)
    title = f"'{first}' {verb} {round(100 * most[first].bytes / _total(most))}% of the bytes of {who}"
    rows = [[escape(run), human_bytes(_total(parts)), *(_bytes_cell(parts.get(name), _total(parts)) for name in names)]
            for run, parts in by_run]  # fmt: skip
    return f"<h3>{escape(title)}</h3>{html_table(['Trained', 'Together', *map(escape, names)], rows)}"


def _total(parts: Parts) -> float:
    return sum(part.bytes for part in parts.values())


def _bytes_cell(part: Traffic | None, total: float) -> str:
    if part is None or total == 0:
        return "-"
    messages = f"{human_count(part.messages)} messages, " if part.messages else ""
    return f"{human_bytes(part.bytes)}<small>{messages}{100 * part.bytes / total:.0f}%</small>"


def decision_table(runs: Sequence[Run], result: Comparison, swatches: Sequence[str]) -> str:
    """One row per run of two classes; of several seeds the first. Empty where there is none."""
    rows, chosen = [], False
    for run, outcome, swatch in zip(runs, result.outcomes, swatches, strict=True):
        found = run.facts.decisions
        if found is None:
            continue
        chosen = chosen or found.on_validation
        counts = (found.true_positives, found.false_positives, found.false_negatives, found.true_negatives)
        name = run_name(outcome, swatch) + ("<small>its first seed</small>" if run.seeds else "")
        rows.append([
            name, human_number(found.threshold), *map(human_count, counts), human_number(found.precision),
            human_number(found.recall), human_number(found.f1), _reliability(found),
        ])  # fmt: skip
    headings = ["Trained", "Threshold", "True positives", "False positives", "False negatives", "True negatives",
                "Precision", "Recall", "F1", "Reliability"]  # fmt: skip
    who = "was chosen on the validation rows, for the highest F1 there" if chosen else "is 0.5: no validation rows"
    note = (
        f'<p class="note">On the test rows; the threshold {who}. Reliability: the share that is positive against the '
        "probability that was given, in tenths; on the line both are the same.</p>"
    )
    return html_table(headings, rows) + note if rows else ""


def _reliability(found: Decisions) -> str:
    """Dots of the bins over the line on which probabilities are right; larger where there are more rows."""
    total = sum(one.samples for one in found.reliability) or 1
    length = _SIDE - 2 * _EDGE
    dots = "".join(
        f'<circle cx="{_EDGE + length * one.probability:.1f}" cy="{_SIDE - _EDGE - length * one.positive:.1f}" '
        f'r="{2 + 6 * (one.samples / total) ** 0.5:.1f}"/>'
        for one in found.reliability
    )
    line = f'<path d="M{_EDGE} {_SIDE - _EDGE}L{_SIDE - _EDGE} {_EDGE}"/>'
    words = "share of positives against probability"
    return f'<svg class="reliability" viewBox="0 0 {_SIDE} {_SIDE}" role="img" aria-label="{words}">{line}{dots}</svg>'


def client_table(runs: Sequence[Run], metrics: Sequence[str]) -> str:
    """How metrics spread over the clients of each run's silos; empty where clients were not measured."""
    every = [(run.name, name, silo) for run in runs for name, silo in run.facts.per_client.silos.items()]
    rows = every[:MOST_OF_CLIENTS]
    shown = [metric for metric in metrics if any(metric in silo.metrics for *_, silo in rows)]
    if not shown:
        return ""
    note = "The common model on the test samples of every client by itself."
    note += " Of several seeds the first is shown." if any(run.seeds for run in runs) else ""
    note += f" {len(every) - len(rows)} more are in the summaries." if len(every) > len(rows) else ""
    headings = ["Run and silo", "Clients", *(f"{escape(metric_title(metric))}, mean" for metric in shown)]
    cells = [
        [f"{escape(run)}<small>{escape(name)}</small>", human_count(silo.measured)
         + _left_out(silo.too_small, "too small") + _left_out(silo.one_label, "with one label"),
         *(_spread_cell(silo.metrics.get(metric)) for metric in shown)]
        for run, name, silo in rows
    ]  # fmt: skip
    return f'<h3>{escape(_widest(rows, shown[0]))}</h3>{html_table(headings, cells)}<p class="note">{note}</p>'


def _widest(rows: Sequence[tuple[str, str, SiloClients]], metric: str) -> str:
    """Says where the spread is widest, and who is worst there."""
    measured = [(run, name, silo.metrics[metric]) for run, name, silo in rows if metric in silo.metrics]
    run, name, spread = max(measured, key=lambda item: item[2].max - item[2].min)
    worst = f", worst at {_who(spread.worst[0])}" if spread.worst else ""
    title = metric_title(metric)
    reach = f"{human_number(spread.min)} to {human_number(spread.max)}"
    return f"{title[0].upper()}{title[1:]} of the clients of {name} in {run}: {reach}{worst}"


def _who(client: WorstClient) -> str:
    return f"{client.client} ({client.value_of_column})" if client.value_of_column else client.client


def _spread_cell(spread: ClientSpread | None) -> str:
    if spread is None:
        return "-"
    low, high, *half = map(human_number, (spread.min, spread.max, spread.lower_quartile, spread.upper_quartile))
    lines = [f"median {human_number(spread.median)}", f"half of them {half[0]} to {half[1]}", f"all {low} to {high}"]
    lines += [f"worst: {escape(_who(spread.worst[0]))}"] if spread.worst else []
    return with_deviation(spread.mean, spread.deviation) + "".join(f"<small>{line}</small>" for line in lines)


def _left_out(count: int, why: str) -> str:
    return f"<small>{human_count(count)} {why}</small>" if count else ""


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
