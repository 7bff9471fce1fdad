"""Derivatives that travel encrypted: what the messages hold, and which federations are refused."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, ModelError
from crosshatch.local.layers import Layer
from crosshatch.local.read_chain import as_chain
from crosshatch.privacy.masked_gradients import gradient_slots
from crosshatch.privacy.privacy_settings import PrivacySettings
from crosshatch.protocol.batches import smallest_batch
from crosshatch.protocol.message_contents import Specs
from crosshatch.task.task import Task

TIMES_AS_MANY = 16
"""A batch has at least so many times as many rows as a gradient has numbers per output.

A silo knows its samples X and learns X^T d: so many equations about the derivatives d of a batch. With as many of them
as rows it could solve them, and the sign of a derivative is the label. With fewer it still finds the part of d in the
span of its columns, on average one sixteenth of d's square here: about as telling as a correlation of a quarter.
"""

LEAST_ROWS = 512
"""Nor has a batch fewer rows than this: labels are bits, and of few rows exact sums have one solution alone."""


def ciphertexts(settings: PrivacySettings, count: int) -> Specs:
    """So many of them: each is twice as long as the key."""
    return ((torch.uint8, (count, settings.key_bits // 4)),)


def plaintexts(settings: PrivacySettings, count: int) -> Specs:
    """So many decrypted numbers, each as long as the key."""
    return ((torch.uint8, (count, settings.key_bits // 8)),)


def require_held(data: FederatedData, asked: str) -> None:
    """Refuse to encrypt for labels that everybody has."""
    if data.label_silo is None:
        raise ConfigError(
            f"{asked} is for labels that one silo holds, and here everybody has them: set federation.labels to its name"
        )


def check_encryption(
    data: FederatedData,
    task: Task,
    name: str,
    codecs: Mapping[str, AnyCodec],
    settings: PrivacySettings,
    *,
    encrypts: bool,
    continued: bool,
    batch_size: int | None,
    draw: str | None = None,
) -> dict[int, Layer]:
    """Refuse what cannot be encrypted or would give labels away; the linear blocks of the silos without labels."""
    asked = f"privacy.encryption = '{settings.encryption}'"
    if not encrypts:
        raise ConfigError(
            f"{asked}: algorithm {name} does not use derivatives through gradients of one batch alone: "
            "use fedsgd or fedbcd"
        )
    require_held(data, asked)
    if continued:
        raise ConfigError(
            f"{asked} with algorithm.derivatives = 'continued': nobody can follow a derivative that it cannot read: "
            "set algorithm.derivatives = 'each_round'"
        )
    if task.head is not None:
        raise ModelError(
            f"{asked} with model.fusion = 'head': the derivative behind a head is not that of a linear block: set "
            "model.fusion = 'sum'"
        )
    if "derivatives" in codecs:
        raise ConfigError(f"{asked} with codecs.derivatives: ciphertexts cannot be compressed: leave the codec out")
    layers = {}
    rows = rows_of_batches(len(data.y_train), batch_size, draw, settings)
    gradient_slots(settings.point, rows + 1, settings.key_bits)  # refuses what does not fit
    for j, silo in enumerate(data.silos):
        if silo.name == data.label_silo:
            continue
        layers[j] = layer = _linear(silo.name, task, j)
        settings.point.encode(silo.train.double().numpy(force=True), f"a feature of silo '{silo.name}'")
        require_rows(
            rows, TIMES_AS_MANY * layer.size, settings,
            f"{asked}: silo '{silo.name}' would learn {layer.size} sums over the derivatives of {rows} samples",
            "give the silo fewer features",
        )  # fmt: skip
    return layers


def rows_of_batches(samples: int, batch_size: int | None, draw: str | None, settings: PrivacySettings) -> int:
    """How many rows the smallest batch has; drawing them anew is refused, where it is not accepted."""
    if draw == "partition" or batch_size is None:
        return smallest_batch(samples, batch_size)
    if not settings.accept_leakage:
        raise ConfigError(
            f"privacy.encryption = '{settings.encryption}' with algorithm.draw = 'anew': every new batch tells more "
            f"about the same labels: set algorithm.draw = 'partition', {or_accept()}"
        )
    return min(batch_size, samples)


def require_rows(rows: int, times: int, settings: PrivacySettings, what: str, less: str) -> None:
    """Refuse a batch of fewer rows than `times`, or than any must have; `less` is how to need fewer."""
    least = max(LEAST_ROWS, times)
    if rows < least and not settings.accept_leakage:
        why = f"{TIMES_AS_MANY} times as many" if times >= LEAST_ROWS else "the least"
        raise ConfigError(
            f"{what}, from which labels can be worked out: set algorithm.batch_size to at least {least} ({why}), "
            f"{less}, {or_accept()}"
        )


def or_accept() -> str:
    """The way out of every refusal that is about what leaks."""
    return "or accept that labels leak with privacy.accept_leakage = true"


def _linear(name: str, task: Task, silo: int) -> Layer:
    chain = as_chain(task.blocks[silo])
    if chain is None or len(chain) != 1 or chain[0].activation != "none":
        raise ModelError(
            f"privacy.encryption needs a linear block in every silo without labels, that of '{name}' is not: set "
            f"model.block = 'linear', or model.blocks.{name} = {{ block = 'linear' }}"
        )
    return chain[0]
