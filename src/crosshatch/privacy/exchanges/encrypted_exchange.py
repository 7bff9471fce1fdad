"""`share_derivatives` under encryption: derivatives go out as ciphertexts, masked gradients come back and return read.

Silos are one party each here, so that every message is from hub to hub. What parties compute is charged to their
clocks, under every network: one of these has messages that take no time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.local.layers import Layer
from crosshatch.local.problem import LossInputs
from crosshatch.local.solve import solve
from crosshatch.privacy.exchanges.cipher import Cipher
from crosshatch.privacy.exchanges.ciphertexts import Ciphertexts, DecryptedGradients
from crosshatch.privacy.fixed_point import Whole
from crosshatch.privacy.masked_gradients import gradient, gradient_slots
from crosshatch.protocol.batches import Ids
from crosshatch.simulator.accounting.legs import HubLeg
from crosshatch.simulator.accounting.links import Links
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.sharing import Asked, Frozen

CountRead = Callable[[str, Ids], None]
"""Told for which silo a gradient of a batch with these samples is about to be decrypted; may refuse."""


def nobody_counts(silo: str, ids: Ids) -> None:
    """Where no ledger is kept."""


@dataclass(frozen=True)
class Sums:
    """Over the labels of a batch; `fresh`: others in every round.

    `read`: numbers that are decrypted per round, in so many `gradients`.
    """

    count: int
    read: int
    fresh: bool = False
    gradients: int = 1


@dataclass
class EncryptedExchange:
    """The exchanges of a federation whose silos, but the label's holder, have linear blocks."""

    data: FederatedData
    layers: dict[int, Layer]  # by silo, the holder's left out
    links: Links
    cipher: Cipher
    ciphertexts: Ciphertexts
    hear: Callable[[Mapping[int, Tensor], Batch, int, int], None] | None = None  # the gradients, holder and use
    count: CountRead = nobody_counts
    scores_in_clear: ClassVar[bool] = True
    solve = staticmethod(solve)  # the holder's steps as in clear, the others' along their gradients

    def told(self, local_steps: int) -> dict[int, Sums]:  # noqa: ARG002 - of a linear block all steps tell the same
        """What silos without labels learn of a batch."""
        return {j: Sums(layer.size, layer.size) for j, layer in self.layers.items()}

    def exchange(self, frozen: Frozen, known: Mapping[int, LossInputs], batch: Batch, asked: Asked) -> Frozen:
        """What silos know after it: the holder what others sent it, each other receiver its gradient."""
        holder, receivers, down, _ = asked
        asking = [j for j in receivers if j != holder]
        require_one_batch(batch)
        if asking:
            sent = known[asking[0]].derivative  # with a sum, one serves all
            assert sent is not None
            point = self.cipher.point
            numbers = sent.double().numpy(force=True)
            derivatives = point.encode(numbers, "a derivative of the loss", trained=down.round > 0)
            features = {j: self._features(j, batch) for j in asking}
            found = self.ciphertexts.exchange(derivatives, features, self._count(batch))
            self._send(found, asking, derivatives.shape, asked)
            gradients = {
                j: _flat(gradient(found.gradients[j], point, *derivatives.shape), self.layers[j]).to(sent)
                for j in asking
            }
            if self.hear is not None:
                self.hear(gradients, batch, holder, down.use)
            unread = {j: rows for j, rows in frozen.derivatives.items() if j not in asking}
            frozen = replace(frozen, derivatives=unread, gradients={**frozen.gradients, **gradients})
        return frozen

    def _count(self, batch: Batch) -> Callable[[int], None]:
        return lambda silo: self.count(self.data.silos[silo].name, batch.parts[0])

    def _features(self, silo: int, batch: Batch) -> Whole:
        """A silo's samples (n, d), with ones behind them where the block has a bias."""
        train = self.data.silos[silo].train
        x = train if batch.all_in_order else train.index_select(0, torch.from_numpy(batch.parts[0]))
        rows = x.flatten(1).double().numpy(force=True)
        if self.layers[silo].bias:
            rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
        return self.cipher.point.encode(rows, f"a feature of silo '{self.data.silos[silo].name}'")

    def _send(self, found: DecryptedGradients, asking: Sequence[int], shape: tuple[int, ...], asked: Asked) -> None:
        """Three messages per silo, and what parties compute between them."""
        (rows, outputs), holder, down = shape, asked.holder, asked.down
        cipher, slots = self.cipher, gradient_slots(self.cipher.point, rows, self.cipher.key_bits)
        packed = [slots.plaintexts(self.layers[j].size) for j in asking]
        self.links.compute(holder, found.encrypt)
        derivatives = [cipher.ciphertexts(rows * outputs)] * len(asking)
        self.links.send(None, HubLeg(down, "down", [holder], asking, derivatives))
        for j in asking:
            self.links.compute(j, found.multiply[j])
        up, back = (asked.next_call(exchange, down.round) for exchange in ("masked_gradients", "read_gradients"))
        self.links.send(None, HubLeg(up, "up", asking, [holder], [cipher.ciphertexts(n) for n in packed]))
        self.links.compute(holder, found.decrypt)
        self.links.send(None, HubLeg(back, "down", [holder], asking, [cipher.plaintexts(n) for n in packed]))


def require_one_batch(batch: Batch) -> None:
    """Refuse a round of several batches."""
    if len(batch.parts) > 1:
        raise ConfigError("privacy.encryption is for rounds of one batch: use fedsgd or fedbcd")


def _flat(means: np.ndarray[tuple[int, ...], np.dtype[np.float64]], layer: Layer) -> Tensor:
    """A gradient (outputs, columns) as the block's parameters lie: all weights, then the bias."""
    weights, bias = means[:, : layer.inputs], means[:, layer.inputs :]
    return torch.as_tensor(np.concatenate([weights.ravel(), bias.ravel()]))
