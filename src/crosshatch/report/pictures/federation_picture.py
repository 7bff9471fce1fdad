"""A federation as an inline SVG: silos as columns with their hub on top, clients below, exchanges as lines.

Colours and fonts come from the page's style sheet, so that the picture follows light, dark and print.
"""

from __future__ import annotations

import re
from html import escape

import msgspec

from crosshatch.report.summary_file import FederationShape, SiloShape
from crosshatch.report.units import human_count

MOST_SILOS = 6
MOST_CLIENTS = 4

_COLUMN, _GAP, _MARGIN = 168, 18, 16
_HUB_HEIGHT, _CLIENT, _SILO_HEIGHT = 46, 26, 214
_TIER = re.compile(r"([HV])\((\d+)\)")


def draw_federation(shape: FederationShape) -> str:
    """An `<svg>` element; empty when nothing is known about the silos."""
    if not shape.silos:
        return ""
    shape = _one_group(shape)
    above, shared, below = _intervals(shape.tiers)
    drawn, hidden = _visible(shape.silos)
    columns = len(drawn) + (1 if hidden else 0)
    grouped = above is not None or shape.groups > 1
    # beside a server there are words; without one a narrow screen need not make letters smaller
    width = max(2 * _MARGIN + columns * _COLUMN + (columns - 1) * _GAP, 480 if grouped else 0)
    left = (width - columns * _COLUMN - (columns - 1) * _GAP) / 2
    centres = [left + i * (_COLUMN + _GAP) + _COLUMN / 2 for i in range(columns)]
    y = 8.0
    parts = []
    if grouped:
        parts.append(_server(width, y, shape.groups, above))
        y += 96
    if columns > 1:
        parts.append(_bus(centres, y, shared))
        y += 40
    parts += [_silo(silo, centre, y, below) for silo, centre in zip(drawn, centres, strict=False)]
    if hidden:
        parts.append(_text(centres[-1], y + 28, f"+ {hidden} more silos", "muted"))
    height = y + _SILO_HEIGHT + 8
    if shape.groups > 1:
        parts.insert(0, f'<rect class="group" x="4" y="84" width="{width - 8}" height="{height - 88}" rx="12"/>')
    title = f"{len(shape.silos)} silos" if len(shape.silos) > 1 else "One silo"
    clients = human_count(sum(silo.clients for silo in shape.silos))
    return (
        f'<svg class="federation" viewBox="0 0 {width:g} {height:g}" role="img" style="max-width:{width:g}px" '
        f'aria-label="{title}, {clients} clients">{"".join(parts)}</svg>'
    )


def federation_title(shape: FederationShape) -> str:
    """What the picture shows, for example `2 silos with 20 clients; labels at 'bank'`."""
    every = sum(silo.clients for silo in shape.silos)
    shape = _one_group(shape)
    silos, clients = len(shape.silos), sum(silo.clients for silo in shape.silos)
    holders = [silo.name for silo in shape.silos if silo.holds_labels]
    title = f"{silos} silo{'s' if silos != 1 else ''} with {human_count(clients)} client{'s' if clients != 1 else ''}"
    if shape.groups > 1:
        title = f"{human_count(shape.groups)} groups, each of {title} ({human_count(every)} in all)"
    if silos > 1 and len(holders) == 1:
        title += f"; the labels stay at {holders[0]}"
    elif silos > 1 and len(holders) == silos:
        title += "; all share the labels"
    return title


def _one_group(shape: FederationShape) -> FederationShape:
    """What one of the groups has, on average: clients and samples are counted over all of them."""

    def share(count: int) -> int:
        return max(1, round(count / shape.groups)) if count else 0

    silos = [msgspec.structs.replace(s, clients=share(s.clients), samples=share(s.samples)) for s in shape.silos]
    return msgspec.structs.replace(shape, silos=tuple(silos))


def _intervals(tiers: str) -> tuple[int | None, int | None, int | None]:
    """Local steps between exchanges above, in and below the vertical tier; None where there is no such tier."""
    found = [(kind, int(steps)) for kind, steps in _TIER.findall(tiers)]
    kinds = [kind for kind, _ in found]
    if "V" not in kinds:
        return None, None, found[-1][1] if found else None
    place = kinds.index("V")
    return found[0][1] if place else None, found[place][1], found[-1][1] if place < len(found) - 1 else None


def _visible(silos: tuple[SiloShape, ...]) -> tuple[tuple[SiloShape, ...], int]:
    """Those drawn, and how many are left out; a silo with labels is never left out before one without."""
    if len(silos) <= MOST_SILOS:
        return silos, 0
    keep = sorted(range(len(silos)), key=lambda i: (not silos[i].holds_labels, i))[: MOST_SILOS - 1]
    return tuple(silos[i] for i in sorted(keep)), len(silos) - len(keep)


def _every(steps: int | None) -> str:
    return "" if steps is None else " every step" if steps == 1 else f" every {human_count(steps)} steps"


def _server(width: float, y: float, groups: int, interval: int | None) -> str:
    middle = width / 2
    lines = "".join(
        f'<path class="line" d="M{middle:g} {y + 40:g} L{middle + shift:g} {y + 76:g}"/>' for shift in (-70, 0, 70)
    )
    label = f"{human_count(groups)} groups like this" if groups > 1 else "groups below"
    return (
        f"{lines}"
        f'<rect class="server" x="{middle - 60:g}" y="{y:g}" width="120" height="40" rx="8"/>'
        f"{_text(middle, y + 25, 'server', 'name')}"
        f"{_text(middle + 72, y + 17, label, 'muted start')}"
        f"{_text(middle + 72, y + 33, f'averaged{_every(interval)}', 'muted start')}"
    )


def _bus(centres: list[float], y: float, interval: int | None) -> str:
    """Every hub hears every other one: a line along the top with a drop to each hub."""
    drops = "".join(f'<path class="across" d="M{x:g} {y + 20:g} V{y + 40:g}"/>' for x in centres)
    return (
        f'<path class="across" d="M{centres[0]:g} {y + 20:g} H{centres[-1]:g}"/>{drops}'
        f"{_text((centres[0] + centres[-1]) / 2, y + 12, f'hubs share embeddings{_every(interval)}', 'muted')}"
    )


def _silo(silo: SiloShape, centre: float, y: float, interval: int | None) -> str:
    left = centre - _COLUMN / 2
    hub_bottom, clients_top = y + _HUB_HEIGHT, y + _HUB_HEIGHT + 40
    # one left out would take as much room as one drawn
    count = silo.clients if silo.clients <= MOST_CLIENTS + 1 else MOST_CLIENTS
    more = silo.clients - count
    step = 36 if count <= MOST_CLIENTS else 31
    first = centre - (count - 1) * step / 2
    spots = [first + i * step for i in range(count)]
    lines = "".join(f'<path class="line" d="M{centre:g} {hub_bottom:g} L{x:g} {clients_top:g}"/>' for x in spots)
    boxes = "".join(
        f'<rect class="client" x="{x - _CLIENT / 2:g}" y="{clients_top:g}" '
        f'width="{_CLIENT}" height="{_CLIENT}" rx="6"/>'
        for x in spots
    )
    note = f"+ {human_count(more)} more clients" if more else f"{silo.clients} client{'s' if silo.clients != 1 else ''}"
    note_y = clients_top + _CLIENT + 16
    averaged = f"averaged{_every(interval)}" if interval is not None and silo.clients > 1 else ""
    facts = [f"{human_count(silo.features)} features", f"{human_count(silo.samples)} samples",
             f"{human_count(silo.parameters)} parameters"]  # fmt: skip
    badge = ""
    if silo.holds_labels:
        badge = (
            f'<rect class="labels" x="{centre + 24:g}" y="{y - 12:g}" width="52" height="18" rx="9"/>'
            f"{_text(centre + 50, y + 1, 'labels', 'badge')}"
        )
    return (
        f'<g><rect class="panel" x="{left:g}" y="{y + _HUB_HEIGHT / 2:g}" width="{_COLUMN}" '
        f'height="{_SILO_HEIGHT - _HUB_HEIGHT / 2:g}" rx="10"/>{lines}{boxes}'
        f'<rect class="hub" x="{left + 8:g}" y="{y:g}" width="{_COLUMN - 16}" height="{_HUB_HEIGHT}" rx="8"/>'
        f"{_text(centre, y + 22, silo.name, 'name', most=18)}{_text(centre, y + 38, 'hub', 'muted')}{badge}"
        f"{_text(centre, note_y, note, 'muted')}{_text(centre, note_y + 15, averaged, 'muted')}"
        + "".join(_text(centre, note_y + 40 + 18 * i, fact, "fact") for i, fact in enumerate(facts))
        + "</g>"
    )


def _text(x: float, y: float, text: str, kind: str, most: int = 200) -> str:
    short = text if len(text) <= most else f"{text[: most - 3]}..."
    full = f"<title>{escape(text)}</title>" if short != text else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(short)}{full}</text>'
