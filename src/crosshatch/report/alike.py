"""Which runs may be compared by cost: those with the same data, silos, number of clients and place of the labels."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from crosshatch.report.runs import Run, section_of
from crosshatch.report.units import human_count

_SHARED_EACH_STEP = re.compile(r"\bV\(1\)")


@dataclass(frozen=True)
class Setting:
    """What runs must have in common: twenty clients send more than two, whatever they run.

    `labels`: the silos that hold them, none while that is unknown. `data`: what is trained on and how silos divide it,
    to be compared and not to be read; `fingerprint`: the same by what was in the files, empty while that is unknown.
    """

    clients: int
    labels: tuple[str, ...]
    silos: int
    data: str
    fingerprint: str
    source: str


def setting_of(run: Run) -> Setting:
    """The setting of a run, as far as its directory tells."""
    silos, data = run.facts.federation.silos, section_of(run.config, "data")
    split = section_of(run.config, "federation").get("split")
    shapes = [(silo.name, silo.features, silo.samples) for silo in silos]
    source = str(data.get("name") or PurePath(str(data.get("path") or "")).stem)
    return Setting(
        clients=run.clients,
        labels=tuple(silo.name for silo in silos if silo.holds_labels),
        silos=len(silos),
        data=json.dumps([data, split, shapes, run.facts.federation.groups], sort_keys=True, default=str),
        fingerprint="" if run.fingerprint is None else run.fingerprint.digest,
        source=source,
    )


def tell_apart(settings: Mapping[Setting, str]) -> dict[Setting, str]:
    """For each of several settings what only it has, for the beginning of a clause: `with 20 clients`.

    The name of a run in each is for those that these words do not tell apart: other rows, or other columns.
    """
    words = {one: _words(one, list(settings)) for one in settings}
    times = Counter(words.values())
    return {
        one: text if times[text] == 1 else f"{text}{' and' if text else 'with'} the data of {settings[one]},"
        for one, text in words.items()
    }


def shared_words(settings: Sequence[Setting]) -> str:
    """What no two of these have in common, for the end of a sentence."""
    only_clients = len({(one.labels, one.data, one.fingerprint) for one in settings}) == 1
    return "as many clients" if only_clients else "the same data, clients and labels"


def is_baseline(run: Run) -> bool:
    """Whether the silos share after every step, as FedSGD does and every algorithm with Q = 1."""
    return run.algorithm == "fedsgd" or bool(_SHARED_EACH_STEP.search(run.facts.federation.tiers))


def _words(one: Setting, among: Sequence[Setting]) -> str:
    place = f"on {one.source}" if len({other.source for other in among}) > 1 and one.source else ""
    parts = []
    if len({other.silos for other in among}) > 1:
        parts.append(_counted(one.silos, "silo"))
    if len({other.clients for other in among}) > 1:
        parts.append(_counted(one.clients, "client"))
    if len({other.labels for other in among}) > 1 and one.labels:
        parts.append("shared labels" if len(one.labels) == one.silos else f"labels at {' and '.join(one.labels)}")
    return " ".join(text for text in (place, f"with {' and '.join(parts)}" if parts else "") if text)


def _counted(count: int, what: str) -> str:
    return f"{human_count(count)} {what}{'' if count == 1 else 's'}"
