"""A transfer task under encryption: which tasks are refused, and what gradients tell."""

from __future__ import annotations

from collections.abc import Mapping

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, ModelError
from crosshatch.local.layers import Chain
from crosshatch.local.read_chain import as_chain
from crosshatch.privacy.privacy_settings import PrivacySettings
from crosshatch.privacy.transfer_gradients import transfer_slots
from crosshatch.protocol.encryption import (
    TIMES_AS_MANY,
    require_held,
    require_rows,
    rows_of_batches,
)
from crosshatch.task.losses import TaylorLogistic
from crosshatch.task.task import Task


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
    draw: str | None = None,
) -> dict[int, Chain]:
    """Refuse what cannot be encrypted or would give labels away; the layers of both silos' blocks."""
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
    rows = rows_of_batches(len(data.y_train), batch_size, draw, settings)
    chains = {j: _layers(silo.name, task, j) for j, silo in enumerate(data.silos)}
    for j, silo in enumerate(data.silos):
        chain = chains[j]
        transfer_slots(settings.point, rows + 1, chain[-1].outputs, len(chain), settings.key_bits)  # refuses long ones
        settings.point.encode(silo.train.double().numpy(force=True), f"a feature of silo '{silo.name}'")
        require_rows(
            rows, least_rows(chain, labels=task.holds_head(j), local_steps=local_steps), settings,
            f"{asked}: silo '{silo.name}' would learn its gradients of {rows} samples",
            "give the silo fewer features" + (", hidden units or local steps" if len(chain) > 1 else ""),
        )  # fmt: skip
    return chains


def label_sums(chain: Chain, *, local_steps: int) -> int:
    """Sums over the labels of a batch that a round tells the side without labels, which knows the class mean.

    Through one layer they are as many as its columns, the same in all local steps and rounds. With a hidden layer every
    step has new ones: as many as the first layer and one output have parameters.
    """
    columns = [layer.inputs + layer.bias for layer in chain]
    if len(chain) == 1:
        return columns[0]
    return local_steps * (chain[0].outputs * columns[0] + columns[1])


def least_rows(chain: Chain, *, labels: bool, local_steps: int) -> int:
    """How many samples there must be in a batch, so that gradients do not tell what the other side hides of them.

    `TIMES_AS_MANY` for every sum over them. The side with labels reads its own sums of every encrypted number: through
    one layer as many as it has columns and one more, by the labels' signs; with a hidden layer as many in every step as
    it has parameters, of samples with as many encrypted numbers as embeddings are wide.
    """
    if not labels:
        return TIMES_AS_MANY * label_sums(chain, local_steps=local_steps)
    if len(chain) == 1:
        return TIMES_AS_MANY * (chain[0].inputs + chain[0].bias + 1)
    return -(-TIMES_AS_MANY * local_steps * sum(layer.size for layer in chain) // chain[-1].outputs)


def _layers(name: str, task: Task, silo: int) -> Chain:
    chain = as_chain(task.blocks[silo])
    if chain is None or len(chain) > 2 or chain[-1].activation != "none":
        raise ModelError(
            f"privacy.encryption in a transfer task needs blocks with at most one hidden layer, that of '{name}' is "
            f"another: set model.block = 'mlp' and one number in model.hidden"
        )
    return chain
