"""What the label's holder decrypts for silos: counted in the ledger, over all runs on the same labels, and capped.

A silo computes what it has decrypted, of whatever rows it likes. So every gradient counts for each label of its batch,
in other divisions and splits too, and is on the disk before the silo is told anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from crosshatch.errors import MessageError
from crosshatch.privacy.leakage.equations import GivenEquations
from crosshatch.privacy.leakage.ledger_file import Ledger, open_ledger
from crosshatch.protocol.batches import Ids


@dataclass
class CountedReads:
    """The count of one run, which others that write into the same ledger share; `most` per batch is where it ends."""

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
