"""What a page says of each run below its curves: bytes, what deciding by it comes to, its clients, who took part."""

from collections.abc import Mapping, Sequence
from html import escape

from crosshatch.report.compare import Comparison
from crosshatch.report.measures import metric_title
from crosshatch.report.page_tables import html_table, names_of, run_name
from crosshatch.report.runs import Run
from crosshatch.report.summary_file import ClientSpread, FederationShape, Traffic, WorstClient
from crosshatch.report.units import human_bytes, human_count, human_number, with_deviation

MOST_SILOS, MOST_ROWS = 24, 200  # of one federation, and of a page
MOST_OF_CLIENTS = 20  # runs and silos whose clients are told of

Parts = Mapping[str, Traffic]


def byte_tables(runs: Sequence[Run]) -> str:
    """By kind of link and direction, and by exchange; without a table where all went one way, or in one exchange."""
    exchanges = [
        (run.name, {name: Traffic(size) for name, size in run.facts.bytes_by_exchange.items()}) for run in runs
    ]
    return _byte_table([(run.name, run.facts.bytes_by_link) for run in runs]) + _byte_table(exchanges)


def _byte_table(runs: Sequence[tuple[str, Parts]]) -> str:
    """Of runs that sent the same one row."""
    alike: dict[str, tuple[list[str], Parts]] = {}
    for name, parts in runs:
        alike.setdefault(str(parts), ([], parts))[0].append(name)
    names = list(dict.fromkeys(name for _, parts in alike.values() for name in parts))
    if len(names) < 2 or not any(_total(parts) for _, parts in alike.values()):
        return ""
    rows = [
        [escape(names_of(who, "curves")), human_bytes(_total(parts)),
         *(_bytes_cell(parts.get(name), _total(parts)) for name in names)]
        for who, parts in alike.values()
    ]  # fmt: skip
    return html_table(["Trained", "Together", *map(escape, names)], rows)


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
            human_number(found.recall), human_number(found.f1),
        ])  # fmt: skip
    headings = ["Trained", "Threshold", "True positives", "False positives", "False negatives", "True negatives",
                "Precision", "Recall", "F1"]  # fmt: skip
    who = "was chosen on the validation rows, for the highest F1 there" if chosen else "is 0.5: no validation rows"
    note = f'<p class="note">On the test rows; the threshold {who}.</p>'
    return html_table(headings, rows) + note if rows else ""


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
    return f'{html_table(headings, cells)}<p class="note">{note}</p>'


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
    """Who there is, and the tiers."""
    silos, clients = len(shape.silos), sum(silo.clients for silo in shape.silos)
    if shape.graph is not None:
        graph = shape.graph
        parts = [_counted(silos, "agent"), _counted(len(graph.edges), "edge")]
        parts += [_counted(graph.tokens, "token")] if graph.tokens else []
        return ", ".join(parts) + (" and a server" if graph.server else "")
    words = f"{_counted(silos, 'silo')} with {_counted(clients, 'client')}"
    words += f" in {_counted(shape.groups, 'group')}" if shape.groups > 1 else ""
    return f"{words}, {shape.tiers}" if shape.tiers else words


def _table(shape: FederationShape) -> str:
    visits = () if shape.graph is None else shape.graph.visits
    headings = ["Silo", "Clients", "Features", "Samples", "Parameters", "Labels", *(["Visits"] if visits else [])]
    # a silo with labels is never left out before one without
    order = sorted(range(len(shape.silos)), key=lambda k: (not shape.silos[k].holds_labels, k))[:MOST_SILOS]
    rows = []
    for k in sorted(order):
        silo = shape.silos[k]
        counts = map(human_count, (silo.clients, silo.features, silo.samples, silo.parameters))
        visited = [human_count(visits[k]) if k < len(visits) else "-"] if visits else []
        rows.append([escape(silo.name), *counts, "yes" if silo.holds_labels else "no", *visited])
    left = len(shape.silos) - len(rows)
    return html_table(headings, rows) + (f'<p class="note">And {_counted(left, "more silo")}.</p>' if left else "")


def _counted(count: int, what: str) -> str:
    return f"{human_count(count)} {what}{'' if count == 1 else 's'}"
