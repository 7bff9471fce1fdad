"""A transfer task under encryption: what the messages hold, and which tasks are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, ModelError
from crosshatch.local.layers import Chain
from crosshatch.local.read_chain import as_chain
from crosshatch.privacy.privacy_settings import PrivacySettings
from crosshatch.privacy.transfer_gradients import transfer_slots
from crosshatch.protocol.encryption import TIMES_AS_MANY, ciphertexts, plaintexts, require_held
from crosshatch.protocol.message_contents import Specs
from crosshatch.task.losses import TaylorLogistic
from crosshatch.task.task import Task


@dataclass(frozen=True)
class TransferContents:
    """The messages about a batch of so many rows, between silos with these blocks."""

    settings: PrivacySettings
    rows: int
    chains: Mapping[int, Chain]

    @property
    def width(self) -> int:
        """Of the embeddings."""
        return self.chains[0][-1].outputs

    @property
    def components(self) -> Specs:
        """A ciphertext per number of the rows, and of the half of a symmetric matrix."""
        return ciphertexts(self.settings, self.rows * self.width + self.width * (self.width + 1) // 2)

    def masked(self, silo: int) -> Specs:
        """A silo's gradient, packed."""
        return ciphertexts(self.settings, self._plaintexts(silo))

    def read(self, silo: int) -> Specs:
        """The same, decrypted."""
        return plaintexts(self.settings, self._plaintexts(silo))

    def _plaintexts(self, silo: int) -> int:
        chain, settings = self.chains[silo], self.settings
        slots = transfer_slots(settings.point, self.rows, self.width, len(chain), settings.key_bits)
        return slots.plaintexts(sum(layer.size for layer in chain))


def check_encrypted_transfer(
    data: FederatedData,
    task: Task,
    name: str,
    codecs: Mapping[str, AnyCodec],
    settings: PrivacySettings,
    *,
    encrypts: bool,
    batch_size: int | None,
    local_steps: int,
) -> dict[int, Chain]:
    """Refuse what cannot be encrypted or would hide nothing; the layers of both silos' blocks."""
    asked = f"privacy.encryption = '{settings.encryption}'"
    if not encrypts:
        raise ConfigError(f"{asked} in a transfer task is not for algorithm {name}: use fedsgd or fedbcd")
    require_held(data, asked)
    if not isinstance(task.loss, TaylorLogistic):
        raise ModelError(
            f"{asked} in a transfer task with loss '{task.loss.name}': what is encrypted can be added up and "
            "multiplied by clear numbers, no more: set model.loss = 'taylor_logistic'"
        )
    if codecs:
        raise ConfigError(f"{asked} with codecs.{next(iter(codecs))}: ciphertexts cannot be compressed: leave it out")
    rows = len(data.y_train) if batch_size is None else min(batch_size, len(data.y_train))
    chains = {j: _layers(silo.name, task, j) for j, silo in enumerate(data.silos)}
    for j, silo in enumerate(data.silos):
        chain = chains[j]
        transfer_slots(settings.point, rows, chain[-1].outputs, len(chain), settings.key_bits)  # refuses what is long
        settings.point.encode(silo.train.double().numpy(force=True), f"a feature of silo '{silo.name}'")
        least = least_rows(chain, labels=task.holds_head(j), local_steps=local_steps)
        if rows < least:
            raise ConfigError(
                f"{asked}: from its gradients of {rows} samples silo '{silo.name}' could work out what the other hides "
                f"of them: set algorithm.batch_size to at least {least}, or give the silo fewer features"
                + (", hidden units or local steps" if len(chain) > 1 else "")
            )
    return chains


def least_rows(chain: Chain, *, labels: bool, local_steps: int) -> int:
    """How many samples there must be in a batch, so that gradients do not tell what the other side hides of them.

    Through one layer a side learns, in all local steps together, as many sums over the samples as it has columns, of
    every hidden number (with labels one more, by their signs): then `TIMES_AS_MANY` samples are asked for. With a
    hidden layer every step tells as many sums as it has parameters. So many samples that these do not reach what is
    hidden are asked for: of the side with labels all embeddings; of the other, which gets to know the class mean with
    the model, the labels alone, over which an output's parameters and those of the first layer are sums.
    """
    columns = [layer.inputs + layer.bias for layer in chain]
    if len(chain) == 1:
        return TIMES_AS_MANY * (columns[0] + labels)
    width = chain[-1].outputs
    first = chain[0].outputs * columns[0]
    if labels:
        return local_steps * (first + width * columns[1]) // width + 1
    return local_steps * (first + columns[1]) + 1


def _layers(name: str, task: Task, silo: int) -> Chain:
    chain = as_chain(task.blocks[silo])
    if chain is None or len(chain) > 2 or chain[-1].activation != "none":
        raise ModelError(
            f"privacy.encryption in a transfer task needs blocks with at most one hidden layer, that of '{name}' is "
            f"another: set model.block = 'mlp' and one number in model.hidden"
        )
    return chain
