"""Side rooms hang on the rest by a hook each: nothing else imports them, and each says what it is in a README."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pytest

from tests.architecture.modules import SOURCE, imports, modules


@dataclass(frozen=True)
class SideRoom:
    """The modules of a room, the folder with its README, and who may import them besides other side rooms.

    `settings` are a section of every config: anybody may read them.
    """

    modules: tuple[str, ...]
    readme: str
    hooks: tuple[str, ...]
    settings: tuple[str, ...] = ()


ROOMS = {
    "audits": SideRoom(("audit", "cli.auditing"), "audit", ("cli.app",)),
    "planning": SideRoom(("runs.planning", "cli.show_plan"), "runs/planning", ("cli.app",)),
    "public sets": SideRoom(("data.public_sets",), "data/public_sets", ("data.reading.sources", "cli.show")),
    "advice after divergence": SideRoom(("simulator.advice",), "simulator/advice", ("simulator.simulator",)),
    "encryption": SideRoom(  # a hook of the engine, and one of runs, which count what is told
        ("privacy", "simulator.encrypted", "protocol.encryption", "runs.leaking"),
        "privacy",
        ("simulator.assemble", "runs.prepare"),
        settings=("privacy.privacy_settings",),
    ),
    "recipes": SideRoom(("reproduce", "cli.reproducing"), "reproduce", ("cli.app",)),
    "studies": SideRoom(("studies", "cli.studying"), "studies", ("cli.app",)),
    "workers": SideRoom(("workers",), "workers", ("runs.train",)),
}
# More than one hook each: these may become fewer, and no others.
WOVEN_IN = {
    "transfer": SideRoom(
        ("task.losses.transfer", "task.blocks.class_mean", "protocol.class_means", "local.anchors"), "",
        ("local.problem", "parties", "simulator.cost", "simulator.simulator", "simulator.vertical",
         "task.blocks", "task.build_task", "task.losses"),
    ),
}  # fmt: skip
ALL = ROOMS | WOVEN_IN


def inside(name: str, places: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of these modules, or in one of these packages."""
    return any(f"{name}.".startswith(f"crosshatch.{place}.") for place in places)


@cache
def imported() -> dict[str, tuple[str, ...]]:
    """Of every module of the package by its name, what it imports."""
    return {module.name: tuple(name for _, name in imports(module)) for module in modules()}


def intruders(every: Mapping[str, Sequence[str]], room: SideRoom) -> list[str]:
    """Imports of the room by modules of the core that are none of its hooks."""
    side = tuple(place for one in ALL.values() for place in one.modules)
    return [
        f"{module} imports {name}"
        for module, names in every.items()
        if not inside(module, side) and not inside(module, room.hooks)
        for name in names
        if inside(name, room.modules) and not inside(name, room.settings)
    ]


@pytest.mark.parametrize("name", ALL)
def test_only_hooks_import_a_side_room(name: str) -> None:
    assert intruders(imported(), ALL[name]) == []


@pytest.mark.parametrize("name", ALL)
def test_every_hook_is_one(name: str) -> None:
    room = ALL[name]
    unused = [
        hook
        for hook in room.hooks
        if not any(
            inside(name, room.modules) and not inside(name, room.settings)
            for module, names in imported().items()
            if inside(module, (hook,))
            for name in names
        )
    ]
    assert unused == [], "a hook that imports nothing of the room is none: take it out of the list"


@pytest.mark.parametrize("name", [name for name, room in ALL.items() if room.readme])
def test_a_side_room_says_what_it_is(name: str) -> None:
    text = (SOURCE / "crosshatch" / ALL[name].readme / "README.md").read_text(encoding="utf-8")
    assert 8 <= len(text.splitlines()) <= 20
    assert "hook" in text


def test_rule_catches_an_intruder() -> None:
    found = intruders({"crosshatch.algorithms.tdcd": ["crosshatch.audit.attacks.audit_attacks"]}, ROOMS["audits"])
    assert len(found) == 1
