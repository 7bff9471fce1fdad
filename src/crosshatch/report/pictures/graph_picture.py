"""Agents on a graph as an inline SVG: edges, how often each agent was visited, and how the first token began its walk.

Agents stand on a circle in their order, which shows a path, a ring or a random graph for what it is.
"""

from __future__ import annotations

from html import escape
from math import cos, hypot, pi, sin

from crosshatch.report.summary_file import FederationShape, GraphShape
from crosshatch.report.units import human_count

MOST_AGENTS = 60
MOST_HOPS = 12

Point = tuple[float, float]
_SIZE, _RADIUS, _LABEL = 460, 170, 190


def draw_graph(shape: FederationShape, graph: GraphShape) -> str:
    """An `<svg>` element; empty where there are too many agents to tell apart."""
    count = len(shape.silos)
    if not count or count > MOST_AGENTS:
        return ""
    edges = "".join(f'<path class="edge" d="M{_point(a, count)}L{_point(b, count)}"/>' for a, b in graph.edges)
    most = max(graph.visits, default=0) or 1
    agents = []
    for k, silo in enumerate(shape.silos):
        visits = graph.visits[k] if k < len(graph.visits) else 0
        x, y = _place(k, count, _RADIUS)
        hint = f"{silo.name}: {human_count(visits)} visits" if graph.visits else silo.name
        size = 5 + 7 * (visits / most) ** 0.5 if graph.visits else 8
        kind = "labels" if graph.walk[:1] == (k,) else "hub"
        agents.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"><title>{escape(hint)}</title></circle>'
        )
        if count <= 24:
            lx, ly = _place(k, count, _LABEL)
            name = silo.name if len(silo.name) <= 10 else silo.name[:9] + "…"
            side = "start" if lx > _SIZE / 2 + 30 else "end" if lx < _SIZE / 2 - 30 else "middle"
            agents.append(
                f'<text class="muted" style="text-anchor:{side}" x="{lx:.1f}" y="{ly + 4:.1f}">{escape(name)}</text>'
            )
    return (
        f'<svg class="federation" viewBox="-40 0 {_SIZE + 80} {_SIZE}" role="img" style="max-width:{_SIZE + 80}px" '
        f'aria-label="{escape(graph_title(shape, graph))}">{edges}{_walk(graph, count)}{"".join(agents)}</svg>'
    )


def graph_title(shape: FederationShape, graph: GraphShape) -> str:
    """What the picture shows, for example `20 agents, 76 edges, 10 tokens and a server`."""
    parts = [_counted(len(shape.silos), "agent"), _counted(len(graph.edges), "edge")]
    if graph.tokens:
        parts.append(_counted(graph.tokens, "token"))
    text = ", ".join(parts) + (" and a server" if graph.server else "")
    if len(graph.walk) > 1 and len(shape.silos) <= MOST_AGENTS:
        text += (
            f"; the first {_counted(min(MOST_HOPS, len(graph.walk) - 1), 'hop')} of a token, agents as large as visited"
        )
    return text


def _walk(graph: GraphShape, count: int) -> str:
    """The first hops, numbered, with arrows, and fainter as time passes.

    They bend to the right of their way, so that there and back can be told apart, and further if taken again.
    """
    hops = list(zip(graph.walk, graph.walk[1:], strict=False))[:MOST_HOPS]
    lines, badges = [], []
    for i, (a, b) in enumerate(hops):
        if a == b:
            continue
        start, end = _place(a, count, _RADIUS), _place(b, count, _RADIUS)
        length = hypot(end[0] - start[0], end[1] - start[1])
        aside = (max(0.28 * length, 44) + 64 * hops[:i].count((a, b))) / length  # a curve goes a quarter as far
        middle = (
            (start[0] + end[0]) / 2 + (end[1] - start[1]) * aside / 2,
            (start[1] + end[1]) / 2 - (end[0] - start[0]) * aside / 2,
        )
        opacity = 1 - 0.6 * i / len(hops)
        way = "Q".join((f"M{_pair(start)}", f"{_pair(middle)} {_pair(end)}"))
        lines.append(f'<path class="across" opacity="{opacity:.2f}" d="{way}"/>')
        lines.append(f'<path class="arrow" opacity="{opacity:.2f}" d="{_arrow(start, middle, end)}"/>')
        x, y = _along(start, middle, end, 0.4)
        badges.append(f'<circle class="stop" cx="{x:.1f}" cy="{y:.1f}" r="7.5"/>')
        badges.append(f'<text class="stop" x="{x:.1f}" y="{y + 3.5:.1f}">{i + 1}</text>')
    return "".join(lines + badges)


def _along(start: Point, middle: Point, end: Point, part: float) -> Point:
    """A point of the curve, 0 at its start and 1 at its end."""
    one, two, three = (1 - part) ** 2, 2 * part * (1 - part), part**2
    return (
        one * start[0] + two * middle[0] + three * end[0],
        one * start[1] + two * middle[1] + three * end[1],
    )


def _arrow(start: Point, middle: Point, end: Point) -> str:
    """A head on the curve, behind its number."""
    (x, y), (bx, by) = _along(start, middle, end, 0.7), _along(start, middle, end, 0.68)
    length = hypot(x - bx, y - by) or 1.0
    dx, dy = (x - bx) / length, (y - by) / length
    left, right = (x - 9 * dx - 4.5 * dy, y - 9 * dy + 4.5 * dx), (x - 9 * dx + 4.5 * dy, y - 9 * dy - 4.5 * dx)
    return f"M{_pair((x, y))}L{_pair(left)}L{_pair(right)}Z"


def _pair(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _place(agent: int, count: int, radius: float) -> Point:
    angle = 2 * pi * agent / count - pi / 2
    return _SIZE / 2 + radius * cos(angle), _SIZE / 2 + radius * sin(angle)


def _point(agent: int, count: int) -> str:
    return _pair(_place(agent, count, _RADIUS))


def _counted(count: int, what: str) -> str:
    return f"{human_count(count)} {what}{'' if count == 1 else 's'}"
