"""The equations that a run gives about labels nobody else knows, with what was given before; too many are refused.

What the holder of the labels decrypts for silos is counted in the ledger, over all runs on the same labels, and capped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crosshatch.data.identity.row_ids import Digester
from crosshatch.errors import ConfigError, MessageError
from crosshatch.privacy.exchanges.check_encryption import LEAST_ROWS, TIMES_AS_MANY, or_accept
from crosshatch.privacy.leakage.equations import MOST, Count, GivenEquations, Telling, closest, count
from crosshatch.privacy.leakage.ledger_file import Ledger, open_ledger
from crosshatch.protocol.batches import DividedBatches, Ids
from crosshatch.runs.config import Config, encode_config
from crosshatch.runs.leaking.exposed_rows import MOST_NAMES, Exposed, batches_of
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.vertical.federation import SimulatedFederation

if TYPE_CHECKING:  # needs gmpy2, which is an extra
    from crosshatch.privacy.exchanges.encrypted_exchange import EncryptedExchange, Sums
    from crosshatch.privacy.exchanges.encrypted_transfer import EncryptedTransfer


@dataclass
class CountedReads:
    """The count of one run, which others that write into the same ledger share; `most` per batch is where it ends.

    A silo computes what it has decrypted, of whatever rows it likes. So every gradient counts for each label of its
    batch, in other divisions and splits too, and is on the disk before the silo is told anything.
    """

    ledger: Ledger  # as it was read last
    given: GivenEquations
    most: int | None
    _rows: dict[str, Ids] = field(default_factory=dict)  # of this run, by the batches of all runs that they were in
    _seen: int = 0

    def of_batches(self, silo: str) -> Ids:
        """How many gradients were decrypted for a silo, by batch (k,): those of the label that was in most of them."""
        own, given = self.given, self.ledger.given
        for one in (own, *given) if not self._rows else given[self._seen :]:
            places = one.rows.places_in(own.rows)
            for batch, digest in enumerate(one.digests):
                self._rows.setdefault(digest, places[(one.batch_of == batch) & (places >= 0)])
        self._seen = len(given)
        of_rows = np.zeros(len(own.rows), np.int64)
        for digest, rows in self._rows.items():
            of_rows[rows] += self.ledger.read[silo, digest]
        found = np.zeros(own.batches, np.int64)
        np.maximum.at(found, own.batch_of, of_rows)
        return found

    def count(self, silo: str, ids: Ids) -> None:
        """One more, of the batch with these samples; a MessageError where there were as many as may be."""
        batch = int(self.given.batch_of[ids[0]])
        with open_ledger(self.ledger.path, self.ledger.key, write=True, known=self.ledger) as ledger:
            if self.most is not None and self.of_batches(silo)[batch] >= self.most:
                raise MessageError(
                    f"silo '{silo}' asked for a gradient to be decrypted, and had {self.most} of this batch, which is "
                    "all that privacy.reads_per_batch allows over the life of its labels"
                )
            ledger.count(silo, self.given.digests[batch])


@dataclass(frozen=True)
class Leakage:
    """What a run gives of the labels that one silo holds, and all runs before it did."""

    config: Config
    exposed: Exposed
    given: GivenEquations
    read: Mapping[str, Sums] = field(default_factory=dict)  # by silo, what the holder decrypts for it per round

    @property
    def before(self) -> Count:
        """What earlier runs gave."""
        return count(self.given.rows, self.exposed.earlier)

    @property
    def after(self) -> Count:
        """The same with this run."""
        return count(self.given.rows, (*self.exposed.earlier, self.given))

    def require_within(self) -> None:
        """Refuse what tells too much, unless that is accepted."""
        self._require_few_reads(0, {})
        if self.config.privacy.accept_leakage or not self.given.equations:
            return
        labels, ledger = len(self.given.rows), self.config.privacy.ledger
        place = "privacy.encryption" if ledger is None else f"privacy.ledger = '{ledger}'"
        if self.after.too_many:
            raise ConfigError(
                f"{place}: with this run {self.after.equations} equations about {labels} labels would be given away, "
                f"{self.before.equations} of them before it, at most {int(labels * MOST)} (one per {TIMES_AS_MANY} "
                f"labels) may be over the life of these labels: {self._remedy}, {or_accept()}"
            )
        apart = closest(self.given.rows, self.exposed.earlier)
        least = max(LEAST_ROWS, TIMES_AS_MANY * max((one.sums for one in self.given.told), default=0))
        if apart is not None and apart < least and not self.given.clear:
            raise ConfigError(
                f"{place}: {apart} rows are in this run and not in an earlier one, or the other way round, so that "
                f"sums over them alone would be known, at least {least} must differ: use the rows of the earlier run, "
                f"{or_accept()}"
            )

    def _reads(self, silo: str) -> int:
        """Gradients of one batch that are decrypted for a silo over the run; of any rows, where it cheats."""
        return -(-self.config.run.rounds // self.given.batches) * self.read[silo].gradients

    def _require_few_reads(self, first: int, before: Mapping[str, Ids]) -> None:
        """Refuse rounds from the `first` on that read more than may be, with what was read `before` of each batch."""
        most = self.config.privacy.reads_per_batch
        if most is None:
            return
        rounds = range(first, self.config.run.rounds)
        times = np.bincount([self._batch_in(r) for r in rounds], minlength=self.given.batches)
        for silo, sums in self.read.items():
            with_these = times * sums.gradients + before.get(silo, 0)
            if with_these.max() > most:
                worst = int(with_these.argmax())
                raise ConfigError(
                    f"privacy.reads_per_batch = {most}: {len(rounds)} rounds on {self.given.batches} batches read "
                    f"{times[worst] * sums.gradients} gradients of a batch for silo '{silo}', and "
                    f"{with_these[worst] - times[worst] * sums.gradients} were read before: set run.rounds lower, or "
                    "allow as many"
                )

    def _batch_in(self, round: int) -> int:
        algorithm = self.config.algorithm
        if self.given.batches == 1:
            return 0
        assert algorithm.division_seed is not None
        assert algorithm.batch_size is not None
        source = DividedBatches(self.config.run.seed, algorithm.division_seed)
        return int(self.given.batch_of[source.ids(round, 0, algorithm.batch_size, len(self.given.rows))[0]])

    @property
    def _remedy(self) -> str:
        if self.given.clear:
            return "set privacy.encryption = 'paillier'"
        if any(one.clear for one in self.exposed.earlier):
            return "an earlier run had them in clear, use other labels"
        return "use the algorithm.batch_size of earlier runs or a larger one, give silos fewer features"

    def record(self, simulator: Simulator) -> None:
        """Write it into the ledger, before anything is told; looked at again, since others may have written.

        From here on the ledger counts what is decrypted in the simulator's rounds to come.
        """
        path, key = self.config.privacy.ledger, self.exposed.key
        if path is None or key is None:
            return
        with open_ledger(Path(path), key, write=True) as ledger:
            now = replace(self, exposed=replace(self.exposed, earlier=tuple(ledger.given)))
            now.require_within()
            reads = CountedReads(ledger, self.given, self.config.privacy.reads_per_batch)
            now._require_few_reads(simulator.round, {silo: reads.of_batches(silo) for silo in self.read})
            if now.after.equations > now.before.equations:
                ledger.append(self.given, self.config.name)
        encrypted = _encrypted(simulator)
        if encrypted is not None:
            encrypted.count = reads.count

    def table(self) -> dict[str, Any]:
        """For summary.json and plans."""
        given, privacy = self.given, self.config.privacy
        silos = {
            one.silo: {
                "sums_per_batch": one.sums * one.times,
                "batches": given.batches,
                "equations": one.sums * one.times * given.batches,
                "numbers_read": self.read[one.silo].read * self.config.run.rounds,
                "reads_per_batch": self._reads(one.silo),
            }
            for one in given.told
        }
        found: dict[str, Any] = {
            "labels": len(given.rows),
            "in_clear": given.clear,
            "rows_per_batch": int(given.sizes.min()),
            "silos": silos,
            "equations": given.equations,
            "before": self.before.equations,
            "with_all_runs": self.after.equations,
            "most": int(len(given.rows) * MOST),
            "accepted": privacy.accept_leakage,
            "too_many": self.after.too_many,
            "left_out": list(self.exposed.names[:MOST_NAMES]),
            "rows_left_out": len(self.exposed.names),
        }
        return found if privacy.ledger is None else found | {"ledger": privacy.ledger}


def count_leakage(config: Config, simulator: Simulator, exposed: Exposed) -> Leakage:
    """What the run of a config tells silos without labels, whatever becomes of it."""
    rows, algorithm = exposed.rows, config.algorithm
    whole = np.zeros(len(rows), np.uint32)
    encrypted = _encrypted(simulator)
    if encrypted is None:
        clear = not algorithm.central
        return Leakage(config, exposed, GivenEquations(rows, whole, (), exposed.left_out, clear=clear))
    batches = batches_of(algorithm, len(rows))
    batch_of = whole.copy()
    for number, batch in enumerate(batches):
        batch_of[batch] = number
    anew = algorithm.draw != "partition" and algorithm.batch_size is not None
    told: list[Telling] = []
    read: dict[str, Sums] = {}
    for silo, sums in encrypted.told(algorithm.local_steps).items():
        fresh = anew or sums.fresh
        name = simulator.data.silos[silo].name
        read[name] = sums
        columns = _columns(simulator, silo, exposed, (_course(config),) if fresh else ())
        told.append(Telling(name, columns, sums.count, -(-config.run.rounds // len(batches)) if fresh else 1))
    return Leakage(config, exposed, GivenEquations(rows, batch_of, tuple(told), exposed.left_out), read)


def _encrypted(simulator: Simulator) -> EncryptedExchange | EncryptedTransfer | None:
    federation = simulator.federation
    found: Any = federation.encrypted if isinstance(federation, SimulatedFederation) else None  # known by its hook
    return found  # type: ignore[no-any-return]


def _columns(simulator: Simulator, silo: int, exposed: Exposed, more: Iterable[str]) -> str:
    """A digest of what a silo multiplies the derivatives with; without a ledger nobody compares it."""
    if exposed.key is None:
        return ""
    x = simulator.data.silos[silo].train.float().cpu().contiguous().numpy()
    return Digester(exposed.key.secret).of("columns", str(x.shape), x.tobytes(), *more)


def _course(config: Config) -> str:
    """What decides the numbers of every round: a run of the same settings tells the same again."""
    tables = encode_config(config)
    kept = {name: tables.get(name) for name in ("data", "federation", "model", "algorithm", "optimiser")}
    kept["run"] = {name: tables["run"].get(name) for name in ("seed", "precision")}
    return blake2b(msgspec.json.encode(kept, order="deterministic"), digest_size=16).hexdigest()
