"""Put an encrypted exchange together, where a run asks for one; gmpy2 is needed then and not before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm, declared
from crosshatch.privacy.privacy_settings import PrivacySettings
from crosshatch.simulator.accounting.links import Links
from crosshatch.task.task import Task

if TYPE_CHECKING:  # needs gmpy2, which is an extra
    from crosshatch.simulator.encrypted.encrypted_exchange import EncryptedExchange
    from crosshatch.simulator.encrypted.encrypted_transfer import EncryptedTransfer


def encrypted_exchange(
    data: FederatedData,
    task: Task,
    algorithm: Algorithm,
    codecs: Mapping[str, AnyCodec],
    settings: PrivacySettings,
    links: Links,
    *,
    threads: int,
) -> EncryptedExchange | EncryptedTransfer | None:
    """None where nothing is encrypted; a refusal where it cannot be."""
    if not settings.encrypts:
        return None
    require_gmpy2()
    from crosshatch.protocol.encryption import check_encryption
    from crosshatch.simulator.encrypted.ciphertexts import CostsAlone, RealCiphertexts
    from crosshatch.simulator.encrypted.encrypted_exchange import EncryptedExchange

    known, real = declared(algorithm), settings.ciphertexts == "real"
    names = tuple(silo.name for silo in data.silos)
    chains = check_encryption(
        data, task, type(algorithm).__name__, codecs, settings, encrypts=known.encrypts,
        continued=known.continues_derivatives, batch_size=known.batch_size, draw=known.draw,
        local_steps=algorithm.local_steps,
    )  # fmt: skip
    if task.transfer is not None:
        from crosshatch.simulator.encrypted.encrypted_transfer import EncryptedTransfer
        from crosshatch.simulator.encrypted.transfer_ciphertexts import RealTransfer, TransferCosts

        told = RealTransfer(settings, threads, names) if real else TransferCosts(settings, threads)
        return EncryptedTransfer(data, task, chains, links, settings, told)
    layers = {j: chain[0] for j, chain in chains.items()}
    ciphertexts = RealCiphertexts(settings, threads, names) if real else CostsAlone(settings, threads)
    return EncryptedExchange(data, layers, links, settings, ciphertexts)


def require_gmpy2() -> None:
    """Refuse to encrypt where its library is not installed."""
    try:
        import gmpy2  # noqa: F401
    except ImportError:
        raise ConfigError(
            "privacy.encryption needs gmpy2, which is not installed: pip install -e '.[privacy]' in Crosshatch's folder"
        ) from None
