"""What launched processes have stored, and the engine it is held against."""

from __future__ import annotations

from pathlib import Path

import torch

from crosshatch.meter import Meter
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.packed_state import unpack
from crosshatch.parties.seeing_all import model_of, total
from crosshatch.runs.choosing.auto import PRECISIONS
from crosshatch.runs.config import Config
from crosshatch.runs.launching.process_plan import ProcessPlan
from crosshatch.runs.prepare import prepare
from crosshatch.runtime.store import Store
from crosshatch.testing.parties.engine import PartyByParty

Weights = tuple[torch.Tensor, ...]


def engine_of(config: Config) -> PartyByParty:
    """The parties of a config in memory, before their first round."""
    simulator = prepare(config, folder=None).simulator
    return PartyByParty(
        simulator.data, simulator.task, simulator.algorithm, seed=config.run.seed, codecs=config.codecs,
        precision=PRECISIONS[config.run.precision], steps="solved",
    )  # fmt: skip


def stored(out: Path, parties: dict[str, Party], round: int) -> tuple[Weights, Meter]:
    """The model and the meter that the processes of a run have stored of a round."""
    for name, party in parties.items():
        home = out / "parties" / party.house
        written = Store(home / name).read(round)
        assert written is not None
        party.load(unpack(written, run=ProcessPlan.read(home).run, party=name).value)
    return model_of(parties), total(party.meter for party in parties.values())
