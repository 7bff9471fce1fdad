"""What a study compares, as configs: every silo alone on the joint rows, all columns in one place, FedSGD, the method.

All take as many gradient steps as the config's own method does: central training Q per round, FedSGD in Q times as many
rounds. What only concerns how a federation is divided or sends (clients, codecs, network, privacy) is the method's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from crosshatch.data.build import federate
from crosshatch.data.data_settings import SampleSplit
from crosshatch.data.federated import FederatedData
from crosshatch.data.identity.fingerprint import Fingerprint
from crosshatch.errors import ConfigError, CrosshatchError, DataError
from crosshatch.network import ConstantNetwork
from crosshatch.privacy.privacy_settings import PrivacySettings
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import algorithm_name, decode_algorithm
from crosshatch.runs.identity.run_data import read_data
from crosshatch.runs.prepare import assemble
from crosshatch.schedules import Constant
from crosshatch.task.build_task import build_task
from crosshatch.task.directions import VALIDATION, directions
from crosshatch.task.losses import Loss

VALIDATION_SHARE = 0.2
Kind = Literal["alone", "central", "fedsgd", "federation"]


@dataclass(frozen=True)
class StudiedMethod:
    """One of those compared. `config` has its step size as the user wrote it, `given` where that is one to try."""

    name: str
    kind: Kind
    config: Config
    silo: str = ""
    given: str | None = None

    def at(self, step: str) -> Config:
        """With a step size, as one writes it."""
        if step == self.given:
            return self.config
        config = self.config
        algorithm = config.algorithm.with_step_size(Constant(float(step)))
        auto, measured = (
            tuple(key for key in keys if key != "step_size") for keys in (config.auto, config.measured)
        )  # fmt: skip
        return replace(config, algorithm=algorithm, auto=auto, measured=measured)


def methods(config: Config, silos_with_columns: tuple[str, ...]) -> tuple[StudiedMethod, ...]:
    """All that a study of this config compares; its own method is the last."""
    if config.algorithm.central:
        raise ConfigError("algorithm.name = 'central' is no federation: a study adds central training by itself")
    if config.federation.common is not None:
        raise ConfigError(
            "federation.common: a study compares on rows that all silos have, transfer has others: leave it"
        )
    config = _judged_by_validation_rows(config)
    steps = config.algorithm.local_steps
    batch = config.algorithm.batch_size
    central = _in_one_place(config, {"name": "central", "local_steps": steps, "batch_size": batch, "batches": "fresh"})
    found = [StudiedMethod(f"{silo} alone", "alone", _only(central, silo), silo) for silo in silos_with_columns]
    found.append(StudiedMethod("central", "central", central))
    name = algorithm_name(config.algorithm)
    if name != "fedsgd":
        plain = _in_one_place(config, {"name": "fedsgd", "batch_size": batch})
        rounds = replace(plain.run, rounds=plain.run.rounds * steps, checkpoint_every=None)
        evaluate = replace(plain.evaluate, every=plain.evaluate.every * steps)
        found.append(StudiedMethod("fedsgd", "fedsgd", replace(plain, run=rounds, evaluate=evaluate)))
    own = replace(config, privacy=replace(config.privacy, ledger=None))
    return (*found, StudiedMethod(name, "federation", own, given=_written_step(config)))


def _written_step(config: Config) -> str | None:
    """The step size of the config's own method, to be tried among others; None where it is to be found anyhow."""
    if "step_size" in (*config.auto, *config.measured):
        return None
    step = config.algorithm.step_size
    number = step.value if isinstance(step, Constant) else step
    return f"{number:g}" if isinstance(number, int | float) else "as given"


def _judged_by_validation_rows(config: Config) -> Config:
    """With validation rows, which choose round and step size, and with scores kept."""
    data = config.data if config.has_validation_rows else replace(config.data, validation=VALIDATION_SHARE)
    evaluate = config.evaluate
    measured = [name.removeprefix(VALIDATION) for name in directions(evaluate.higher_is_better) if VALIDATION in name]
    if evaluate.best_by not in (None, *measured):
        raise ConfigError(f"evaluate.best_by = '{evaluate.best_by}' is no metric: choose one of {', '.join(measured)}")
    metrics = (
        evaluate.metrics if evaluate.metrics is None or "loss" in evaluate.metrics else (*evaluate.metrics, "loss")
    )
    evaluate = replace(
        evaluate, metrics=metrics, best_by=evaluate.best_by or "loss", keep_scores=True, per_client=False
    )
    run = replace(config.run, stop_at_targets=False, patience=None, track=(), record_messages=False)
    return replace(config, data=data, evaluate=evaluate, run=run)


def _in_one_place(config: Config, table: Mapping[str, Any]) -> Config:
    """With another algorithm, by its table, on silos that have one client each."""
    algorithm, _, _ = decode_algorithm({key: value for key, value in table.items() if value is not None})
    silos = config.federation.silos
    if isinstance(silos, tuple):
        silos = tuple(replace(silo, clients=None, sizes=None, samples=None) for silo in silos)
    federation = replace(
        config.federation, silos=silos, clients=1, groups=1, branches=1, samples=SampleSplit(),
        group_samples=SampleSplit(),
    )  # fmt: skip
    return replace(
        config, algorithm=algorithm, federation=federation, codecs={}, network=ConstantNetwork(),
        privacy=PrivacySettings(), measure_step=False, auto=(), measured=(),
    )  # fmt: skip


def _only(config: Config, silo: str) -> Config:
    blocks = {name: changes for name, changes in config.model.blocks.items() if name == silo}
    federation = replace(config.federation, only=(silo,))
    return replace(config, federation=federation, model=replace(config.model, blocks=blocks))


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
    if own is not None:  # refuse a method that this federation cannot have, whatever its step size
        try:
            assemble(own.at("1e-9"), dataset, fingerprint)
        except CrosshatchError:  # perhaps of a step size that is not the config's own
            assemble(own.config, dataset, fingerprint)
    return data, build_task(data, config.model, seed=config.run.seed).loss, fingerprint
