"""Agents on a graph as an inline SVG: edges, how often each agent was visited, and how the first token began its walk.

Agents stand on a circle in their order, which shows a path, a ring or a random graph for what it is.
"""

from __future__ import annotations

from html import escape
from math import cos, pi, sin

from crosshatch.report.summary import FederationShape, GraphShape
from crosshatch.report.units import human_count

MOST_AGENTS = 60
MOST_HOPS = 12

_SIZE, _RADIUS, _LABEL = 460, 170, 200


def draw_graph(shape: FederationShape, graph: GraphShape) -> str:
    """An `<svg>` element; empty where there are too many agents to tell apart."""
    count = len(shape.silos)
    if not count or count > MOST_AGENTS:
        return ""
    edges = "".join(f'<path d="M{_point(a, count)}L{_point(b, count)}"/>' for a, b in graph.edges)
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
            agents.append(f'<text class="muted" x="{lx:.1f}" y="{ly + 4:.1f}">{escape(name)}</text>')
    server = '<text class="name" x="230" y="234">server</text>' if graph.server and count > 2 else ""
    return (
        f'<svg class="federation" viewBox="0 0 {_SIZE} {_SIZE}" role="img" style="max-width:{_SIZE}px" '
        f'aria-label="{escape(graph_title(shape, graph))}">{edges}{_walk(graph, count)}{"".join(agents)}{server}</svg>'
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
    """The first hops, bent to the inside so that going there and back can be told apart, fainter as time passes."""
    hops = list(zip(graph.walk, graph.walk[1:], strict=False))[:MOST_HOPS]
    parts = []
    for i, (a, b) in enumerate(hops):
        if a == b:
            continue
        (ax, ay), (bx, by) = _place(a, count, _RADIUS), _place(b, count, _RADIUS)
        # to the right of the way from a to b
        cx, cy = (ax + bx) / 2 + (by - ay) * 0.16, (ay + by) / 2 - (bx - ax) * 0.16
        opacity = 1 - 0.75 * i / max(len(hops), 1)
        parts.append(
            f'<path class="across" opacity="{opacity:.2f}" d="M{ax:.1f} {ay:.1f}Q{cx:.1f} {cy:.1f} {bx:.1f} {by:.1f}"/>'
        )
        tx, ty = (ax + 2 * cx + bx) / 4, (ay + 2 * cy + by) / 4
        parts.append(f'<text class="muted" opacity="{opacity:.2f}" x="{tx:.1f}" y="{ty + 4:.1f}">{i + 1}</text>')
    return "".join(parts)


def _place(agent: int, count: int, radius: float) -> tuple[float, float]:
    angle = 2 * pi * agent / count - pi / 2
    return _SIZE / 2 + radius * cos(angle), _SIZE / 2 + radius * sin(angle)


def _point(agent: int, count: int) -> str:
    x, y = _place(agent, count, _RADIUS)
    return f"{x:.1f} {y:.1f}"


def _counted(count: int, what: str) -> str:
    return f"{human_count(count)} {what}{'' if count == 1 else 's'}"
