"""The training rows of a run whose labels one silo holds: who they are, how they are divided, which are left out."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from crosshatch.data.common_samples import common_rows
from crosshatch.data.dataset import Dataset
from crosshatch.data.federated import FederatedData, keep_samples
from crosshatch.data.identity.fingerprint import Fingerprint
from crosshatch.data.identity.owner_key import OwnerKey, owner_key
from crosshatch.data.identity.row_ids import row_digests
from crosshatch.data.identity.take_fingerprint import take_fingerprint
from crosshatch.errors import ConfigError
from crosshatch.privacy.exchanges.check_encryption import or_accept
from crosshatch.privacy.leakage.equations import GivenEquations
from crosshatch.privacy.leakage.ledger_file import open_ledger, same_training_rows
from crosshatch.privacy.leakage.lone_rows import lone_rows, rows_to_keep
from crosshatch.privacy.leakage.row_keys import RowKeys
from crosshatch.protocol.batches import Ids, divide
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import AnyAlgorithm

MOST_NAMES = 5


@dataclass(frozen=True)
class Exposed:
    """Rows (n,) whose labels somebody may learn of, those that were left out of training, and what came before."""

    rows: RowKeys
    left_out: RowKeys
    names: tuple[str, ...] = ()  # of the rows that are left out
    earlier: tuple[GivenEquations, ...] = ()
    key: OwnerKey | None = field(default=None, repr=False)


def settle_rows(
    config: Config,
    dataset: Dataset,
    data: FederatedData,
    fingerprint: Fingerprint | None,
    *,
    seed_given: bool,
    keep: bool,
) -> tuple[Config, FederatedData, Exposed | None]:
    """The config with its division's seed, the data without the rows that would be alone, and who the rows are.

    A ledger knows the seed of labels that were divided before; `keep`: a new one is written there. None where nobody
    holds labels alone, or nothing is encrypted or counted.
    """
    ledger = config.privacy.ledger
    if ledger is not None and data.label_silo is None:
        raise ConfigError(
            f"privacy.ledger = '{ledger}' counts what is told of the labels that one silo holds, and here everybody "
            "has them: set federation.labels to its name, or leave the ledger out"
        )
    if data.label_silo is None or not (config.privacy.encrypts or ledger is not None):
        return config, data, None
    if ledger is None:
        numbers = np.arange(len(data.y_train), dtype=np.uint64)
        config, data, exposed = _leave_out(config, data, Exposed(*(RowKeys("", {"values": numbers}),) * 2), dataset)
        return config, data, exposed
    key = owner_key()
    labels = (fingerprint or take_fingerprint(dataset, config.federation, key)).labels
    rows = _row_keys(config, dataset, labels, key)
    with open_ledger(Path(ledger), key, write=keep) as book:
        algorithm = config.algorithm
        if algorithm.division_seed is not None and not seed_given:
            known = book.seeds.get(labels)
            if known is not None:
                config = replace(config, algorithm=algorithm.with_settings(draw="partition", division_seed=known))
            elif keep:
                book.keep_seed(labels, algorithm.division_seed)
        exposed = Exposed(rows, rows, earlier=tuple(book.given), key=key)
    return _leave_out(config, data, exposed, dataset)


def left_out_note(exposed: Exposed) -> str:
    """A line that names the rows that are left out."""
    named, more = ", ".join(exposed.names[:MOST_NAMES]), len(exposed.names) - MOST_NAMES
    rows = "row is" if len(exposed.names) == 1 else "rows are"
    return (
        f"{len(exposed.names)} {rows} left out of training, each alone in a direction of its batch, where its label "
        f"would show: {named}" + (f" and {more} more" if more > 0 else "")
    )


def batches_of(algorithm: AnyAlgorithm, rows: int) -> tuple[Ids, ...]:
    """How so many rows are divided; all of them are one batch where each round draws its own."""
    seed, size = algorithm.division_seed, algorithm.batch_size
    if algorithm.draw != "partition" or seed is None or size is None or size > rows:
        return (np.arange(rows),)
    return divide(rows, size, seed=seed)


def _leave_out(
    config: Config, data: FederatedData, exposed: Exposed, dataset: Dataset
) -> tuple[Config, FederatedData, Exposed]:
    everybody = np.arange(len(exposed.rows))
    kept = everybody
    if config.privacy.encrypts and not config.privacy.accept_leakage:
        kept = _kept(config, data, exposed, dataset)
    if len(kept) < len(everybody):
        data = keep_samples(data, kept)
    gone = np.setdiff1d(everybody, kept)
    names = tuple(_names(config, dataset, gone))
    exposed = replace(exposed, rows=exposed.rows.take(kept), left_out=exposed.rows.take(gone), names=names)
    return config, data, exposed


def _kept(config: Config, data: FederatedData, exposed: Exposed, dataset: Dataset) -> Ids:
    others = [silo for silo in data.silos if silo.name != data.label_silo]
    columns = [silo.train.flatten(1).double().numpy(force=True) for silo in others]

    def divided(rows: int) -> tuple[Ids, ...]:
        return batches_of(config.algorithm, rows)

    before = same_training_rows(exposed.rows, [one for one in exposed.earlier if not one.clear])
    if not before:
        return rows_to_keep(columns, divided)
    kept = np.flatnonzero(exposed.rows.places_in(before[0].rows) >= 0)
    alone = lone_rows([x[kept] for x in columns], divided(len(kept)))
    if len(alone):
        named = ", ".join(_names(config, dataset, kept[alone])[:MOST_NAMES])
        raise ConfigError(
            f"privacy.ledger = '{config.privacy.ledger}': {len(alone)} rows ({named}) would be alone in a direction of "
            "their batch, so that their labels show, and cannot be left out, since earlier runs had them: take the "
            f"batches and columns of the earlier runs, {or_accept()}"
        )
    return kept


def _row_keys(config: Config, dataset: Dataset, labels: str, key: OwnerKey) -> RowKeys:
    samples = dataset.train
    kinds = {} if samples.ids is None else {"id": row_digests(samples, key)}
    numbers = np.arange(len(samples)) if samples.numbers is None else samples.numbers
    kinds |= {"place": numbers.astype(np.uint64), "values": row_digests(replace(samples, ids=None), key)}
    return RowKeys(labels, kinds).take(_used(config, dataset))


def _used(config: Config, dataset: Dataset) -> Ids:
    """Which of the training samples are those of the federation."""
    common, samples = config.federation.common, len(dataset.train)
    return np.arange(samples) if common is None else common_rows(samples, common, seed=config.run.seed)


def _names(config: Config, dataset: Dataset, rows: Ids) -> list[str]:
    """Ids, or places in the source."""
    chosen = dataset.train.take(_used(config, dataset)[rows])
    if chosen.ids is not None:
        return [f"id {one}" for one in chosen.ids.tolist()]
    return [f"row {one}" for one in (rows if chosen.numbers is None else chosen.numbers).tolist()]
