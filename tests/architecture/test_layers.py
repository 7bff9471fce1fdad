"""Imports point downwards only, same-layer imports make no circle, and the two engines are strangers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

from tests.architecture.modules import Module, imports, modules

# Outermost first. A name stands for the module or the whole package; "" is crosshatch/__init__.py, which re-exports.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("", "__main__", "audit", "cli", "report", "reproduce", "runs", "studies", "sweeps", "testing"),
    ("privacy", "workers"),
    ("simulator", "parties", "runtime"),
    ("predict",),
    ("algorithms",),
    ("exchanges",),
    ("protocol",),
    ("channels",),
    ("local",),
    ("task", "transfer", "topology", "partition", "codecs", "network", "meter", "wire", "schedules", "theory", "data"),
    ("graphs",),
    ("trees", "seeds", "private_randomness", "plain_data", "own_parts", "ray_connection", "errors"),
)
STRANGERS = (("simulator", "runtime"), ("simulator", "parties"))
# A party has no clock, thread, socket or dice of its own: whoever runs it brings them.
WITHOUT = {"parties": ("time", "datetime", "threading", "asyncio", "socket", "grpc", "random", "secrets", "pickle")}
# The steps at one party know nothing of parties: only of what is computed.
ONLY: dict[str, frozenset[str]] = {"local": frozenset(("local", "task", "trees", "seeds", "errors"))}
DEPTH = {part: depth for depth, layer in enumerate(LAYERS) for part in layer}

# Too slow to import before `crosshatch --help` has answered.
HEAVY = ("torch", "sklearn", "scipy", "polars", "networkx")


def part_of(name: str, parts: frozenset[str]) -> str:
    """The part of the package a dotted name lives in: `crosshatch.task.losses.Squared` is in `task`.

    A name that is no part, as in `from crosshatch import TDCD`, comes from crosshatch/__init__.py itself.
    """
    pieces = name.split(".")
    return pieces[1] if len(pieces) > 1 and pieces[1] in parts else ""


def forbidden(module: Module, parts: frozenset[str]) -> list[str]:
    """One line for every import of the module that points upwards or at a stranger."""
    own = part_of(module.name, parts)
    complaints = []
    for line, name in imports(module):
        if name.split(".")[0] != "crosshatch":
            continue
        other = part_of(name, parts)
        if DEPTH.get(other, 0) < DEPTH.get(own, 0):
            complaints.append(f"{module.place}:{line}: '{own}' is below '{other or 'crosshatch'}' and imports it")
        if own in ONLY and other not in ONLY[own]:
            complaints.append(f"{module.place}:{line}: '{own}' is about one party's steps and imports '{other}'")
        if any(own != other and {own, other} == set(pair) for pair in STRANGERS):
            complaints.append(f"{module.place}:{line}: '{own}' and '{other}' must not know each other")
    return complaints + [
        f"{module.place}:{line}: '{own}' does without '{name}'"
        for line, name in imports(module)
        if name.split(".")[0] in WITHOUT.get(own, ())
    ]


def circles(every: tuple[Module, ...]) -> list[str]:
    """Groups of modules that import each other, whichever way round."""
    names = {module.name for module in every}
    graph = nx.DiGraph()
    for module in every:
        for _, name in imports(module):
            target = name if name in names else name.rpartition(".")[0]
            if target in names and target != module.name:
                graph.add_edge(module.name, target)
    return [" <-> ".join(sorted(group)) for group in nx.strongly_connected_components(graph) if len(group) > 1]


def parts_of(every: tuple[Module, ...]) -> frozenset[str]:
    """The modules and packages directly below crosshatch."""
    return frozenset(module.name.split(".")[1] for module in every if module.name != "crosshatch")


def test_every_module_is_in_a_layer() -> None:
    homeless = sorted(parts_of(modules()) - DEPTH.keys())
    assert not homeless, f"give these a place in LAYERS: {homeless}"


def test_imports_point_downwards() -> None:
    every = modules()
    complaints = [line for module in every for line in forbidden(module, parts_of(every))]
    assert not complaints, "\n".join(complaints)


def test_contributors_are_told_of_parts_that_exist() -> None:
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = page.split("| layer, outermost first | what |")[1].split("\n\n")[0].splitlines()[2:]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == parts_of(modules()) - {"__main__"}


def test_no_circles() -> None:
    assert not circles(modules())


def test_command_line_starts_light() -> None:
    if "cli" not in parts_of(modules()):
        pytest.skip("there is no command line yet")
    program = "import sys, crosshatch.cli; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert not loaded.intersection(HEAVY), "import these inside the commands that need them"


def module(name: str, text: str) -> Module:
    """A module that is not on disk, to try the rules on."""
    return Module(name, Path("/").joinpath(*name.split(".")).with_suffix(".py"), text)


PARTS = frozenset(DEPTH) - {""}


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("crosshatch.task.losses", "from crosshatch.algorithms.tdcd import TDCD", "'task' is below 'algorithms'"),
        ("crosshatch.task.losses", "from ..algorithms import tdcd", "'task' is below 'algorithms'"),
        ("crosshatch.task.losses", "def f():\n    import crosshatch.simulator", "'task' is below 'simulator'"),
        ("crosshatch.trees", "from crosshatch import TDCD", "'trees' is below 'crosshatch'"),
        ("crosshatch.runtime.client", "from crosshatch import simulator", "must not know each other"),
        ("crosshatch.simulator.engine", "import crosshatch.runtime.hub", "must not know each other"),
        ("crosshatch.local.loop", "from crosshatch.wire import encode", "about one party's steps and imports 'wire'"),
        ("crosshatch.parties.hub", "from threading import Lock", "does without 'threading.Lock'"),
        ("crosshatch.parties.hub", "from crosshatch.simulator import state", "must not know each other"),
        ("crosshatch.protocol.walks", "from crosshatch.simulator import best", "'protocol' is below 'simulator'"),
    ],
)
def test_rule_catches(name: str, text: str, complaint: str) -> None:
    (found,) = forbidden(module(name, text), PARTS)
    assert complaint in found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("crosshatch.algorithms.tdcd", "from crosshatch.exchanges import Federation\nimport torch"),
        ("crosshatch.simulator.engine", "from .strategy import pick\nfrom crosshatch import errors"),
        ("crosshatch.network", "from crosshatch.meter import Meter"),
        ("crosshatch.cli.main", "from crosshatch import TDCD"),
    ],
)
def test_rule_allows(name: str, text: str) -> None:
    assert forbidden(module(name, text), PARTS) == []


def test_rule_finds_circles() -> None:
    pair = (module("crosshatch.a", "from crosshatch.b import f"), module("crosshatch.b", "from crosshatch import a"))
    assert circles(pair) == ["crosshatch.a <-> crosshatch.b"]
