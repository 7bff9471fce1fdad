"""The parts of summary.json that a report shows, checked for type; unknown keys are left alone."""

from __future__ import annotations

from typing import Any

import msgspec


class Traffic(msgspec.Struct, frozen=True):
    """What went over one kind of link in one direction."""

    bytes: float = 0
    messages: float = 0


class SiloShape(msgspec.Struct, frozen=True):
    name: str
    clients: int = 1
    features: int = 0
    samples: int = 0
    parameters: int = 0
    holds_labels: bool = False


class GraphShape(msgspec.Struct, frozen=True):
    """Agents on a graph, by their numbers; `visits` is how often each was visited, `walk` how the first token began."""

    edges: tuple[tuple[int, int], ...] = ()
    tokens: int = 0
    server: bool = False
    visits: tuple[int, ...] = ()
    walk: tuple[int, ...] = ()


class FederationShape(msgspec.Struct, frozen=True):
    """Silos side by side; `groups` of them under one server. Clients and samples are counted over all groups."""

    silos: tuple[SiloShape, ...] = ()
    tiers: str = ""
    groups: int = 1
    graph: GraphShape | None = None


class SiloCost(msgspec.Struct, frozen=True):
    """Local steps in a silo: one on the largest share of a batch, and all of the run."""

    samples: int = 0
    step_flops: int = 0
    step_memory: int = 0
    run_flops: int = 0


class Diverged(msgspec.Struct, frozen=True):
    """Where a run diverged: the round at which it was noticed, and what was noticed."""

    round: int = 0
    why: str = ""


class Summary(msgspec.Struct, frozen=True):
    """Every field has a default, so that a run of an older or newer version can still be shown."""

    name: str = ""
    algorithm: str = ""
    rounds: int | None = None
    iterations: int | None = None
    diverged: Diverged | None = None
    bytes: float | None = None
    messages: float | None = None
    sim_seconds: float | None = None
    wall_seconds: float | None = None
    bytes_by_link: dict[str, Traffic] = {}
    bytes_by_exchange: dict[str, Traffic | float] = {}
    targets: dict[str, Any] = {}
    strategy: dict[str, str] | str = {}
    federation: FederationShape = FederationShape()
    cost: dict[str, SiloCost] = {}
    seed: int | None = None
    threads: int | None = None
    precision: str | None = None
    versions: dict[str, str] = {}
