"""Put an encrypted exchange together, where a run asks for one; gmpy2 is needed then and not before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm, declared
from crosshatch.privacy.exchanges.check_encryption import check_encryption
from crosshatch.privacy.exchanges.cipher import Cipher
from crosshatch.simulator.accounting.links import Links
from crosshatch.task.task import Task

if TYPE_CHECKING:  # needs gmpy2, which is an extra
    from crosshatch.privacy.exchanges.encrypted_exchange import EncryptedExchange
    from crosshatch.privacy.exchanges.encrypted_transfer import EncryptedTransfer


def encrypted_exchange(
    data: FederatedData,
    task: Task,
    algorithm: Algorithm,
    codecs: Mapping[str, AnyCodec],
    links: Links,
    threads: int,
    *,
    cipher: Cipher,
    real: bool,
    accept_leakage: bool,
) -> EncryptedExchange | EncryptedTransfer:
    """With `real` ciphertexts or their costs alone; a refusal where it cannot be."""
    require_gmpy2()
    from crosshatch.privacy.exchanges.ciphertexts import CostsAlone, RealCiphertexts
    from crosshatch.privacy.exchanges.encrypted_exchange import EncryptedExchange

    known, names = declared(algorithm), tuple(silo.name for silo in data.silos)
    chains = check_encryption(
        data, task, type(algorithm).__name__, codecs, cipher, accept_leakage=accept_leakage, encrypts=known.encrypts,
        continued=known.continues_derivatives, batch_size=known.batch_size, draw=known.draw,
        local_steps=algorithm.local_steps,
    )  # fmt: skip
    if task.transfer is not None:
        from crosshatch.privacy.exchanges.encrypted_transfer import EncryptedTransfer
        from crosshatch.privacy.exchanges.transfer_ciphertexts import RealTransfer, TransferCosts

        told = RealTransfer(cipher, threads, names) if real else TransferCosts(cipher, threads)
        return EncryptedTransfer(data, task, chains, links, cipher, told)
    layers = {j: chain[0] for j, chain in chains.items()}
    ciphertexts = RealCiphertexts(cipher, threads, names) if real else CostsAlone(cipher, threads)
    return EncryptedExchange(data, layers, links, cipher, ciphertexts)


def require_gmpy2() -> None:
    """Refuse to encrypt where its library is not installed."""
    try:
        import gmpy2  # noqa: F401
    except ImportError:
        raise ConfigError(
            "privacy.encryption needs gmpy2, which is not installed: pip install -e '.[privacy]' in Crosshatch's folder"
        ) from None
