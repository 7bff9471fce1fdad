"""A party's own share of the rows held out, in the folder of its process, and what the judge is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import msgspec
import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.parties.evaluation.held_out import clients_of_first
from crosshatch.parties.evaluation.with_evaluation import EvaluationPlan, holder_of
from crosshatch.parties.line import Name
from crosshatch.parties.party import Party
from crosshatch.runtime.store import write_whole
from crosshatch.simulator.client_metrics import client_called

_NUMBERS, _BRIEFING = "held_out.safetensors", "judge.json"


@dataclass(frozen=True)
class Briefing:
    """The best objective and that of weights of zero, for `suboptimality`.

    With `evaluate.per_client` also which client of each silo holds each test row: name, what each client is called,
    owners, values of a column that clients stand for.
    """

    optimum: tuple[float, float] | None = None
    silos: tuple[tuple[str, tuple[str, ...], tuple[int, ...], tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, data: FederatedData, optimum: tuple[float, float] | None, *, per_client: bool) -> Self:
        silos = tuple(
            (one.name, tuple(client_called(data, one, k) for k in range(one.clients)), tuple(held.tolist()),
             one.client_names)
            for one in data.silos if per_client and (held := one.test_owners) is not None
        )  # fmt: skip
        return cls(optimum, silos)


def write_held(home: Path, held: FederatedData, validation: int, members: Sequence[Name]) -> None:
    """What these parties, which live together, hold of the rows held out, validation rows first.

    Clients and agents have their own rows, those of the label's holder (labels shared: of the first silo) their labels;
    hubs know who of their silo holds which.
    """
    kept = {
        "validation": torch.tensor(validation),
        "samples": torch.tensor(len(held.y_train)),
        "like": held.y_train[:0],
    }
    for name in members:
        role, *numbers = name.split("-")
        if role == "hub" and numbers[0] == "0":
            kept[f"owners.{numbers[1]}"] = torch.as_tensor(held.silos[int(numbers[1])].owners)
        elif role == "agent" or (role == "client" and numbers[0] == "0"):
            silo = int(numbers[0] if role == "agent" else numbers[1])
            mine = np.arange(len(held.y_train))
            if role == "client":
                mine = np.flatnonzero(held.silos[silo].owners == int(numbers[2]))
            ids = torch.as_tensor(mine)
            kept |= {f"ids.{name}": ids, f"x.{name}": held.silos[silo].train[ids]}
            if silo == holder_of(held):
                kept[f"y.{name}"] = held.y_train[ids]
    write_whole(home / _NUMBERS, save({name: one.contiguous().clone() for name, one in kept.items()}))


def read_held(home: Path, data: FederatedData, dtype: torch.dtype) -> tuple[FederatedData, int]:
    """All rows held out, of which the parties of a folder know their own; how many of them are validation rows.

    `data` are the training data as the folder has them.
    """
    kept = load_file(home / _NUMBERS)
    samples, like = int(kept["samples"]), kept["like"]
    y = torch.zeros((samples, *like.shape[1:]), dtype=like.dtype)
    rows: dict[int, Tensor] = {}
    owners: dict[int, np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = {}
    for key, ids in kept.items():
        kind, _, name = key.partition(".")
        if kind == "owners":
            owners[int(name)] = ids.numpy()
        if kind != "ids":
            continue
        role, *numbers = name.split("-")
        silo = int(numbers[0] if role == "agent" else numbers[1])
        shape = data.silos[silo].train.shape[1:]
        rows.setdefault(silo, torch.zeros((samples, *shape), dtype=dtype))[ids] = kept[f"x.{name}"].to(dtype)
        if f"y.{name}" in kept:
            y[ids] = kept[f"y.{name}"]
        if f"owners.{silo}" not in kept and role == "client":
            mine, clients = int(numbers[2]), clients_of_first(data, silo)
            known = owners.setdefault(silo, np.full(samples, (mine + 1) % clients))
            known[ids.numpy()] = mine
    silos = []
    for j, silo_data in enumerate(data.silos):
        empty = torch.zeros((1, *silo_data.train.shape[1:]), dtype=dtype).expand(samples, *silo_data.train.shape[1:])
        silos.append(replace(
            silo_data, train=rows.get(j, empty), owners=owners.get(j, np.zeros(samples, dtype=np.int64)),
            clients=clients_of_first(data, j),
        ))  # fmt: skip
    held = replace(
        data, silos=tuple(silos), y_train=y, groups=None, group_shape=(), weighted=False, alone=None,
    )  # fmt: skip
    return held, int(kept["validation"])


def hold_out(
    folder: Path, houses: Mapping[Name, Sequence[Party]], plan: EvaluationPlan, judge: Path, briefing: Briefing
) -> None:
    """Every process gets its own share of the rows held out, and the folder of the `judge` what it has to know."""
    for house, members in houses.items():
        write_held(folder / house, plan.held, plan.validation, [party.name for party in members])
    write_whole(judge / _BRIEFING, msgspec.json.encode(briefing))


def read_briefing(folder: Path) -> Briefing | None:
    """Where the party of this folder judges."""
    path = folder / _BRIEFING
    return msgspec.json.decode(path.read_bytes(), type=Briefing) if path.is_file() else None
