"""The parts of summary.json that a report shows, checked for type; unknown keys are left alone."""

from typing import Any

import msgspec

from crosshatch.task.measuring.decisions import Decisions


class Traffic(msgspec.Struct, frozen=True):
    """What went over one kind of link in one direction."""

    bytes: float = 0
    messages: float = 0


class SiloReport(msgspec.Struct, frozen=True):
    name: str
    clients: int = 1
    features: int = 0
    samples: int = 0
    parameters: int = 0
    holds_labels: bool = False


class GraphShape(msgspec.Struct, frozen=True):
    """Agents on a graph, by their numbers; `visits` is how often each was visited."""

    edges: tuple[tuple[int, int], ...] = ()
    tokens: int = 0
    server: bool = False
    visits: tuple[int, ...] = ()


class FederationShape(msgspec.Struct, frozen=True):
    """Silos side by side; `groups` of them under one server. Clients and samples are counted over all groups."""

    silos: tuple[SiloReport, ...] = ()
    tiers: str = ""
    groups: int = 1
    graph: GraphShape | None = None


class Diverged(msgspec.Struct, frozen=True):
    """Where a run diverged: the round at which it was noticed, and what was noticed."""

    round: int = 0
    why: str = ""


class WorstClient(msgspec.Struct, frozen=True):
    """A client as settings of the network call it; the value of a column that it stands for, where clients are such."""

    client: str
    samples: int = 0
    value: float = 0.0
    value_of_column: str = ""


class ClientSpread(msgspec.Struct, frozen=True):
    """A metric over the clients of a silo."""

    min: float
    lower_quartile: float
    median: float
    upper_quartile: float
    max: float
    mean: float
    deviation: float = 0.0
    clients: int = 0
    worst: tuple[WorstClient, ...] = ()


class SiloClients(msgspec.Struct, frozen=True):
    """Of a silo's clients some were measured, each by itself; the others have too few test samples.

    Those with one label among theirs are left out of metrics that compare labels.
    """

    clients: int = 0
    measured: int = 0
    too_small: int = 0
    one_label: int = 0
    metrics: dict[str, ClientSpread] = {}


class PerClient(msgspec.Struct, frozen=True):
    """Metrics by client, after a round."""

    round: int = 0
    silos: dict[str, SiloClients] = {}


class Leaked(msgspec.Struct, frozen=True):
    """Equations about labels that one silo holds: of the run, before it and together, and how many are allowed."""

    labels: int = 0
    equations: int = 0
    before: int = 0
    with_all_runs: int = 0
    most: int = 0
    rows_per_batch: int = 0
    in_clear: bool = False
    accepted: bool = False
    too_many: bool = False
    rows_left_out: int = 0
    ledger: str = ""


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
    computing_seconds: float | None = None
    wall_seconds: float | None = None
    real_seconds: float | None = None
    bytes_by_link: dict[str, Traffic] = {}
    bytes_by_exchange: dict[str, float] = {}
    targets: dict[str, Any] = {}
    strategy: dict[str, str] | str = {}
    federation: FederationShape = FederationShape()
    per_client: PerClient = PerClient()
    leakage: Leaked | None = None
    noise: dict[str, float] = {}
    decisions: Decisions | None = None
    best_round: dict[str, Any] = {}
    seed: int | None = None
    threads: int | None = None
    workers: dict[str, float] = {}
    precision: str | None = None
    versions: dict[str, str] = {}
