"""The data of a study and the loss of its model, read once for what is computed beside the runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crosshatch.data.build import federate
from crosshatch.data.dataset import Dataset
from crosshatch.data.federated import FederatedData
from crosshatch.data.identity.fingerprint import Fingerprint
from crosshatch.errors import ConfigError, CrosshatchError, DataError
from crosshatch.runs.config import Config
from crosshatch.runs.identity.run_data import read_data
from crosshatch.runs.prepare import assemble
from crosshatch.studies.methods import VALIDATION_SHARE, StudiedMethod
from crosshatch.task.build_task import build_task
from crosshatch.task.losses import Loss


def prepare_study(
    config: Config, folder: Path | None, own: StudiedMethod | None = None
) -> tuple[FederatedData, Loss, Fingerprint | None]:
    """All columns of all rows, validation rows among them, what the model is trained by, and whose rows these are.

    `own` is the method that the study is about: it is refused here where each of its runs would be.
    """
    settings = config.data if config.has_validation_rows else replace(config.data, validation=VALIDATION_SHARE)
    dataset, fingerprint = read_data(replace(config, data=settings), folder)
    data = federate(dataset, config.federation, seed=config.run.seed)
    if len(data.silos) < 2:
        raise ConfigError(
            "a study asks what silos have together that one has not, and there is one: name several silos"
        )
    for part, y in (("test", data.y_test), ("validation", data.y_validation)):
        if data.target == "binary" and y is not None and bool((y == y[0]).all()):
            raise DataError(
                f"all {len(y)} {part} rows are of one class, by which nothing can be told: use a larger "
                f"data.{'test_fraction' if part == 'test' else 'validation'}, or more rows of the rarer class"
            )
    if own is not None:
        _require_method(own, dataset, fingerprint)
    return data, build_task(data, config.model, seed=config.run.seed).loss, fingerprint


def _require_method(own: StudiedMethod, dataset: Dataset, fingerprint: Fingerprint | None) -> None:
    """Refuse a method that this federation cannot have, whatever its step size."""
    try:
        assemble(own.at("1e-9"), dataset, fingerprint)
    except CrosshatchError:  # perhaps of a step size that is not the config's own
        assemble(own.config, dataset, fingerprint)
