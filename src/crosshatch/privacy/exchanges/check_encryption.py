"""Who is refused where derivatives, or transfer components, are to travel encrypted."""

from __future__ import annotations

from collections.abc import Mapping

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, ModelError
from crosshatch.local.layers import Chain
from crosshatch.local.read_chain import as_chain
from crosshatch.privacy.exchanges.cipher import Cipher
from crosshatch.protocol.batches import smallest_batch
from crosshatch.task.losses import TaylorLogistic
from crosshatch.task.task import Task

TIMES_AS_MANY = 16
"""A batch has at least so many times as many rows as a gradient has numbers per output.

A silo knows its samples X and learns X^T d: so many equations about the derivatives d of a batch. With as many of them
as rows it could solve them, and the sign of a derivative is the label. With fewer it still finds the part of d in the
span of its columns, on average one sixteenth of d's square here: about as telling as a correlation of a quarter.
"""

LEAST_ROWS = 512
"""Nor has a batch fewer rows than this: labels are bits, and of few rows exact sums have one solution alone."""


def check_encryption(
    data: FederatedData,
    task: Task,
    name: str,
    codecs: Mapping[str, AnyCodec],
    cipher: Cipher,
    *,
    accept_leakage: bool,
    encrypts: bool,
    continued: bool,
    batch_size: int | None,
    local_steps: int,
    draw: str | None = None,
) -> dict[int, Chain]:
    """Refuse what cannot be encrypted or would give labels away; the layers of the blocks that go by gradients.

    These are the linear blocks of silos without labels, or in a transfer task those of both silos.
    """
    asked, transfers = "privacy.encryption = 'paillier'", task.transfer is not None
    if not encrypts:
        raise ConfigError(
            f"{asked}: algorithm {name} does not use derivatives through gradients of one batch alone: "
            "use fedsgd or fedbcd"
        )
    if data.label_silo is None:
        raise ConfigError(
            f"{asked} is for labels that one silo holds, and here everybody has them: set federation.labels to its name"
        )
    if transfers and not isinstance(task.loss, TaylorLogistic):
        raise ModelError(
            f"{asked} in a transfer task with loss '{task.loss.name}': what is encrypted can be added up and "
            "multiplied by clear numbers, no more: set model.loss = 'taylor_logistic'"
        )
    if continued and not transfers:
        raise ConfigError(
            f"{asked} with algorithm.derivatives = 'continued': nobody can follow a derivative that it cannot read: "
            "set algorithm.derivatives = 'each_round'"
        )
    if task.head is not None and not transfers:
        raise ModelError(
            f"{asked} with model.fusion = 'head': the derivative behind a head is not that of a linear block: set "
            "model.fusion = 'sum'"
        )
    if coded := [exchange for exchange in codecs if transfers or exchange == "derivatives"]:
        raise ConfigError(f"{asked} with codecs.{coded[0]}: ciphertexts cannot be compressed: leave the codec out")
    from crosshatch.privacy.masked_gradients import gradient_slots  # both need gmpy2, which is an extra
    from crosshatch.privacy.transfer_gradients import transfer_slots

    rows = rows_of_batches(len(data.y_train), batch_size, draw, accept_leakage=accept_leakage)
    chains = {j: _chain(silo.name, task, j) for j, silo in enumerate(data.silos) if transfers or j != data.label_holder}
    for j, chain in chains.items():
        silo, point, least = data.silos[j], cipher.point, TIMES_AS_MANY * chain[0].size
        would, units = f"{chain[0].size} sums over the derivatives", ""
        if transfers:
            transfer_slots(point, rows + 1, chain[-1].outputs, len(chain), cipher.key_bits)  # refuses long ones
            least = least_rows(chain, labels=task.holds_head(j), local_steps=local_steps)
            would, units = "its gradients", ", hidden units or local steps" if len(chain) > 1 else ""
        else:
            gradient_slots(point, rows + 1, cipher.key_bits)  # refuses what does not fit
        point.encode(silo.train.double().numpy(force=True), f"a feature of silo '{silo.name}'")
        what = f"{asked}: silo '{silo.name}' would learn {would} of {rows} samples"
        if not accept_leakage:
            require_rows(rows, least, what, f"give the silo fewer features{units}")
    return chains


def rows_of_batches(samples: int, batch_size: int | None, draw: str | None, *, accept_leakage: bool) -> int:
    """How many rows the smallest batch has; drawing them anew is refused, where it is not accepted."""
    if draw == "partition" or batch_size is None:
        return smallest_batch(samples, batch_size)
    if not accept_leakage:
        raise ConfigError(
            "privacy.encryption = 'paillier' with algorithm.draw = 'anew': every new batch tells more "
            f"about the same labels: set algorithm.draw = 'partition', {or_accept()}"
        )
    return min(batch_size, samples)


def require_rows(rows: int, times: int, what: str, less: str) -> None:
    """Refuse a batch of fewer rows than `times`, or than any must have; `less` is how to need fewer."""
    least = max(LEAST_ROWS, times)
    if rows < least:
        why = f"{TIMES_AS_MANY} times as many" if times >= LEAST_ROWS else "the least"
        raise ConfigError(
            f"{what}, from which labels can be worked out: set algorithm.batch_size to at least {least} ({why}), "
            f"{less}, {or_accept()}"
        )


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


def or_accept() -> str:
    """The way out of every refusal that is about what leaks."""
    return "or accept that labels leak with privacy.accept_leakage = true"


def _chain(name: str, task: Task, silo: int) -> Chain:
    chain, most = as_chain(task.blocks[silo]), 1 if task.transfer is None else 2
    if chain is not None and len(chain) <= most and chain[-1].activation == "none":
        return chain
    if task.transfer is not None:
        raise ModelError(
            f"privacy.encryption in a transfer task needs blocks with at most one hidden layer, that of '{name}' is "
            f"another: set model.block = 'mlp' and one number in model.hidden"
        )
    raise ModelError(
        f"privacy.encryption needs a linear block in every silo without labels, that of '{name}' is not: set "
        f"model.block = 'linear', or model.blocks.{name} = {{ block = 'linear' }}"
    )
