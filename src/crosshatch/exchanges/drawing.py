"""How an algorithm's rounds come by their samples: drawn anew, or batches of one division of all samples."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from crosshatch.errors import ConfigError, require_whole
from crosshatch.exchanges.algorithm import Algorithm
from crosshatch.exchanges.declared import AnyOf, Draw, declared
from crosshatch.exchanges.planned import Planned
from crosshatch.protocol.batches import BatchSource, DividedBatches, SeededBatches

_SEED_BITS = 63  # as many as a whole number in TOML has beside its sign


@dataclass(frozen=True, kw_only=True)
class DrawsBatches(Planned):
    """What every algorithm that draws samples may be told about it.

    `draw`: "anew" for every round, or "partition": all samples are divided once, by `division_seed`, into as many
    batches of at least `batch_size` samples as there can be, which rounds take in a new order per epoch.
    """

    draw: Draw | None = None
    division_seed: int | None = None


def with_division(algorithm: AnyOf, *, encrypts: bool = False) -> AnyOf:
    """The algorithm with everything settled about its draws; left open they are anew, under encryption a partition.

    A division without a seed gets a random one, which is to be kept: what many divisions of the same samples tell of
    their labels adds up. It is never derived from the run's seed or from data.
    """
    known = declared(algorithm)
    if known.draw not in (None, "anew", "partition"):
        raise ConfigError(f"algorithm.draw = {known.draw!r}: must be 'anew' or 'partition'")
    divided = known.draw == "partition" or (known.draw is None and encrypts)
    if known.division_seed is not None:
        require_whole("algorithm.division_seed", known.division_seed, least=0)
        if not divided:
            raise ConfigError(
                f"algorithm.division_seed = {known.division_seed} has no effect on samples drawn anew: leave it out, "
                "or set algorithm.draw = 'partition'"
            )
    if not divided or not isinstance(known, DrawsBatches):
        return algorithm
    if known.fraction is not None:
        raise ConfigError(
            f"algorithm.draw = 'partition' with algorithm.fraction = {known.fraction}: a fraction draws clients, not "
            "samples: leave one of them out"
        )
    seed = known.division_seed
    if seed is None and known.batch_size is not None:
        seed = secrets.randbits(_SEED_BITS)
    return known.with_settings(draw="partition", division_seed=seed)  # type: ignore[return-value]  # of its own class


def batch_source(algorithm: Algorithm, *, seed: int, group: int = 0) -> BatchSource:
    """Where the batches of an algorithm come from whose draws are settled."""
    known = declared(algorithm)
    if known.draw != "partition" or known.division_seed is None:
        return SeededBatches(seed)
    parts = algorithm.local_steps if known.fresh_batches else 1
    return DividedBatches(seed, known.division_seed, group, parts)
