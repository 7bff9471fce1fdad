"""The data of a study and the loss of its model, read once for what is computed beside the runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crosshatch.data.build import federate, load_dataset
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.runs.config import Config
from crosshatch.studies.methods import VALIDATION_SHARE
from crosshatch.task.build_task import build_task
from crosshatch.task.losses import Loss


def prepare_study(config: Config, folder: Path | None) -> tuple[FederatedData, Loss]:
    """All columns of all rows, validation rows among them, and what the model is trained by."""
    settings = config.data if config.has_validation_rows else replace(config.data, validation=VALIDATION_SHARE)
    data = federate(
        load_dataset(settings, folder, federation=config.federation), config.federation, seed=config.run.seed
    )
    if len(data.silos) < 2:
        raise ConfigError(
            "a study asks what silos have together that one has not, and there is one: name several silos"
        )
    return data, build_task(data, config.model, seed=config.run.seed).loss
