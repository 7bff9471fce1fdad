"""Side rooms hang on the rest by a hook each: nothing else imports them, the core not even by way of others.

Each says what it is in a README.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    "theory beyond step sizes": SideRoom(
        ("theory.bounds", "theory.anticipation"), "theory", ("runs.choosing.anticipated",)
    ),
    "public sets": SideRoom(("data.public_sets",), "data/public_sets", ("data.sources", "cli.show")),
    "advice after divergence": SideRoom(("simulator.advice",), "simulator/advice", ("simulator.simulator",)),
    "encryption": SideRoom(  # the engine has a protocol for it; runs ask what operations cost and what is told
        ("privacy", "runs.leaking"), "privacy", ("runs.prepare",), settings=("privacy.privacy_settings",)
    ),
    "recipes": SideRoom(("reproduce", "cli.reproducing"), "reproduce", ("cli.app",)),
    "studies": SideRoom(("studies", "cli.studying"), "studies", ("cli.app",)),
    "transfer": SideRoom(("transfer",), "transfer", ("task.build_task", "testing.transfer_federations")),
    "workers": SideRoom(("workers",), "workers", ("runs.train",)),
}
# Both engines and what they are made of. People meet them through the faces, which hang side rooms on.
CORE = ("simulator", "parties", "runtime", "predict", "algorithms", "exchanges", "protocol", "channels", "local",
        "task", "codecs", "partition", "topology", "network", "meter", "wire", "schedules")  # fmt: skip
FACES = ("simulator.simulator", "data.build", "data.sources", "task.build_task")


def inside(name: str, places: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of these modules, or in one of these packages."""
    return any(f"{name}.".startswith(f"crosshatch.{place}.") for place in places)


@cache
def imported() -> dict[str, tuple[str, ...]]:
    """Of every module of the package by its name, what it imports."""
    return {module.name: tuple(name for _, name in imports(module)) for module in modules()}


def reached(every: Mapping[str, Sequence[str]], start: Iterable[str]) -> dict[str, str]:
    """What modules import, and what that imports, all the way: each with a module that imports it."""
    found, todo = dict[str, str](), [(name, "") for name in start]
    while todo:
        name, by = todo.pop()
        while name and name not in every:  # a name inside a module
            name = name.rpartition(".")[0]
        if name in ("", "crosshatch") or name in found:
            continue
        found[name] = by
        todo += [(other, name) for other in every[name]]
    return found


def intruders(every: Mapping[str, Sequence[str]], room: SideRoom) -> list[str]:
    """Imports of the room by modules of the core that are none of its hooks."""
    side = tuple(place for one in ROOMS.values() for place in one.modules)
    return [
        f"{module} imports {name}"
        for module, names in every.items()
        if not inside(module, side) and not inside(module, room.hooks)
        for name in names
        if inside(name, room.modules) and not inside(name, room.settings)
    ]


@pytest.mark.parametrize("name", ROOMS)
def test_only_hooks_import_a_side_room(name: str) -> None:
    assert intruders(imported(), ROOMS[name]) == []


def test_the_core_does_without_side_rooms() -> None:
    side = tuple(place for room in ROOMS.values() for place in room.modules)
    every = imported()
    core = [name for name in every if inside(name, CORE) and not inside(name, (*side, *FACES))]
    found = reached(every, core)
    assert len(found) > len(core)
    assert {name: by for name, by in found.items() if inside(name, (*side, *FACES))} == {}


@pytest.mark.parametrize("name", ROOMS)
def test_every_hook_is_one(name: str) -> None:
    room = ROOMS[name]
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


@pytest.mark.parametrize("name", ROOMS)
def test_a_side_room_says_what_it_is(name: str) -> None:
    text = (SOURCE / "crosshatch" / ROOMS[name].readme / "README.md").read_text(encoding="utf-8")
    assert 8 <= len(text.splitlines()) <= 20
    assert "hook" in text


def test_rule_catches_an_intruder() -> None:
    found = intruders({"crosshatch.algorithms.tdcd": ["crosshatch.audit.attacks.audit_attacks"]}, ROOMS["audits"])
    assert len(found) == 1


def test_rule_catches_an_intruder_at_the_end_of_a_chain() -> None:
    every = {"crosshatch.local.loop": ["crosshatch.data.new.rows"], "crosshatch.data.new": ["crosshatch.audit.run.Run"]}
    assert reached(every | {"crosshatch.audit.run": []}, ["crosshatch.local.loop"]) == {
        "crosshatch.local.loop": "",
        "crosshatch.data.new": "crosshatch.local.loop",
        "crosshatch.audit.run": "crosshatch.data.new",
    }
