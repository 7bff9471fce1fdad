"""Agents on a graph as an inline SVG: edges, and how often each agent was visited.

Agents stand on a circle in their order, which shows a path, a ring or a random graph for what it is.
"""

from __future__ import annotations

from html import escape
from math import cos, pi, sin

from crosshatch.report.summary_file import FederationShape, GraphShape
from crosshatch.report.units import human_count

MOST_AGENTS = 60

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
        agents.append(
            f'<circle class="hub" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"><title>{escape(hint)}</title></circle>'
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
        f'aria-label="{escape(graph_title(shape, graph))}">{edges}{"".join(agents)}</svg>'
    )


def graph_title(shape: FederationShape, graph: GraphShape) -> str:
    """What the picture shows, for example `20 agents, 76 edges, 10 tokens and a server`."""
    parts = [_counted(len(shape.silos), "agent"), _counted(len(graph.edges), "edge")]
    if graph.tokens:
        parts.append(_counted(graph.tokens, "token"))
    text = ", ".join(parts) + (" and a server" if graph.server else "")
    return text + ("; agents as large as visited" if graph.visits and len(shape.silos) <= MOST_AGENTS else "")


def _place(agent: int, count: int, radius: float) -> tuple[float, float]:
    angle = 2 * pi * agent / count - pi / 2
    return _SIZE / 2 + radius * cos(angle), _SIZE / 2 + radius * sin(angle)


def _point(agent: int, count: int) -> str:
    x, y = _place(agent, count, _RADIUS)
    return f"{x:.1f} {y:.1f}"


def _counted(count: int, what: str) -> str:
    return f"{human_count(count)} {what}{'' if count == 1 else 's'}"
