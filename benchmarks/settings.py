"""What the accuracy and communication experiments share: sets, silos, models, and validation rows to tune on.

A tenth of the training rows is held out as validation rows, by which step sizes and stopping rounds are chosen; the
test rows choose nothing. Both go through the silos' preparation, which is fitted on the remaining training rows.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.data.dataset import Samples
from crosshatch.data.federated import FederatedData
from crosshatch.data.split import split_rows
from crosshatch.errors import TrainingError
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import ModelSettings
from crosshatch.task.directions import HIGHER_IS_BETTER
from crosshatch.task.metrics import evaluate

VALIDATION = 0.1


@dataclass(frozen=True)
class Setting:
    """A data set divided among silos and clients, with the model trained on it."""

    name: str
    data: DataSettings
    federation: FederationSettings
    model: ModelSettings
    metric: str
    batch_size: int

    @property
    def higher(self) -> bool:
        """Whether a larger metric is better."""
        return HIGHER_IS_BETTER[self.metric]

    def better(self, one: float, other: float) -> bool:
        """Whether metric `one` is better than `other`; NaN never is, and everything is better than NaN."""
        if math.isnan(one):
            return False
        return math.isnan(other) or (one > other if self.higher else one < other)


CREDIT = DataSettings(name="credit_default", categorical=("SEX", "EDUCATION", "MARRIAGE"), clip=5.0)
BANK_AND_PAYMENTS = FederationSettings(
    silos=(
        SiloSettings("bank", groups=("demographic_limit",)),
        SiloSettings("payments", groups=("pay_status", "bill_amount", "pay_amount")),
    ),
    clients=5,
)
CREDIT_LOGISTIC = Setting(
    "credit_logistic", CREDIT, BANK_AND_PAYMENTS, ModelSettings("linear", l2=1e-4), metric="auc", batch_size=2000
)
CREDIT_MLP = Setting(
    "credit_mlp", CREDIT, BANK_AND_PAYMENTS, ModelSettings("mlp", hidden=(64,)), metric="auc", batch_size=2000
)
SUPERCONDUCTIVITY = Setting(
    "superconductivity",
    # Compounds measured more than once stay on one side: this column is all but unique to a compound.
    DataSettings(name="superconductivity", split_by="wtd_mean_atomic_mass"),
    FederationSettings(
        silos=(
            SiloSettings("mass", groups=("composition", "atomic_mass", "fie")),
            SiloSettings("size", groups=("atomic_radius", "Density")),
            SiloSettings("electron", groups=("ElectronAffinity", "FusionHeat")),
            SiloSettings("heat", groups=("ThermalConductivity", "Valence")),
        ),
        clients=5,
    ),
    ModelSettings("linear", l2=0.01),
    metric="rmse",
    batch_size=500,
)
PHYSIONET = Setting(
    "physionet2012",
    DataSettings(name="physionet2012", impute="mean", indicators=True, clip=4.0),
    FederationSettings(
        silos=tuple(SiloSettings(name, groups=(name,)) for name in ("vitals", "laboratory", "respiratory_fluid")),
        clients=5,
    ),
    ModelSettings("lstm", hidden=(16,)),
    metric="auc",
    batch_size=1000,
)
MNIST = Setting(
    "mnist",
    DataSettings(name="mnist"),
    FederationSettings(silos=2, split="halves", clients=5),
    ModelSettings("cnn", channels=16),  # a quarter of the papers' width, and of the time
    metric="accuracy",
    batch_size=1000,
)


@dataclass(frozen=True)
class Held:
    """A federation whose `data.test` holds the `validation` rows first, and behind them the test rows."""

    data: FederatedData
    validation: int


def hold_out(setting: Setting, folder: Path | None, *, seed: int) -> Held:
    """Load the set, put validation rows aside, and divide the rest; the clients' shares depend on `seed`."""
    dataset = load_dataset(setting.data, folder)
    together = None
    if setting.data.split_by is not None:
        assert isinstance(dataset.train.x, pl.DataFrame)
        together = dataset.train.x[setting.data.split_by].to_numpy()
    stratify = dataset.target != "regression"
    rest, aside = split_rows(dataset.train.y, VALIDATION, seed=1, stratify=stratify, together=together)
    both = _join(dataset.train.take(aside), dataset.test)
    data = federate(
        replace(dataset, train=dataset.train.take(rest), test=both),
        setting.federation,
        setting.data.preparation,
        seed=seed,
    )
    return Held(data, len(aside))


def hold_out_of_test(
    data: DataSettings, federation: FederationSettings, folder: Path | None, *, seed: int, part: float = 0.5
) -> Held:
    """As `hold_out`, but a part of the test rows becomes the validation rows, so that groups keep their full size.

    Pieces of one recording stay on one side. The rows chosen do not depend on `seed`.
    """
    dataset = load_dataset(data, folder)
    recording = dataset.test.extra.get("recording")
    together = None if isinstance(recording, pl.DataFrame) else recording
    rest, aside = split_rows(dataset.test.y, part, seed=1, stratify=True, together=together)
    ordered = replace(dataset, test=dataset.test.take(np.concatenate([aside, rest])))
    return Held(federate(ordered, federation, data.preparation, seed=seed), len(aside))


def _join(one: Samples, other: Samples) -> Samples:
    y = np.concatenate([one.y, other.y])
    if isinstance(one.x, pl.DataFrame):
        assert isinstance(other.x, pl.DataFrame)
        return Samples(pl.concat([one.x, other.x]), y)
    return Samples(np.concatenate([one.x, other.x]), y)


def measure(simulator: Simulator, held: Held, metric: str, part: str, *, limit: int | None = None) -> float:
    """The metric on the "validation" rows (or the first `limit` of them) or the "test" rows; NaN if it diverged."""
    rows = (
        slice(0, min(held.validation, limit or held.validation))
        if part == "validation"
        else slice(held.validation, None)
    )
    data = simulator.data
    try:
        scores = simulator.scores([silo.test[rows] for silo in data.silos])
        return evaluate([metric], scores, data.y_test[rows], simulator.task.loss)[metric]
    except TrainingError:
        return math.nan


def data_folder(given: Path | None) -> Path | None:
    """The folder of the data sets: as given, else from the environment."""
    found = os.environ.get("CROSSHATCH_DATA")
    return given if given is not None or not found else Path(found)
