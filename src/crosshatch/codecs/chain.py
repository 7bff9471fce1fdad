"""Codecs one after the other."""

from dataclasses import dataclass

from crosshatch.codecs.codec import Codec, Stage
from crosshatch.codecs.quantise import Quantise
from crosshatch.errors import ConfigError


@dataclass(frozen=True, init=False)
class Chain(Codec):
    """Each codec encodes what the one before it leaves: after top-k, only the numbers kept are quantised.

    >>> import torch
    >>> from crosshatch.codecs import TopK
    >>> codec = Chain(TopK(0.01), Quantise(128))
    >>> codec.size((2000, 256), torch.float32), TopK(0.01).size((2000, 256), torch.float32)
    (9968, 25960)
    """

    parts: tuple[Stage, ...]

    def __init__(self, *parts: Stage) -> None:
        """At least two codecs; quantisation last, because it leaves no numbers."""
        if len(parts) < 2:
            raise ConfigError(f"a chain needs at least two codecs, got {len(parts)}: use a single one by itself")
        for part in parts:
            if not isinstance(part, Stage):
                raise ConfigError(f"a chain holds single codecs, not {part}: join chains, put error feedback around it")
        for part in parts[:-1]:
            if isinstance(part, Quantise):
                raise ConfigError(f"{part} must come last in a chain: it leaves levels, not numbers to encode")
        object.__setattr__(self, "parts", parts)

    def __str__(self) -> str:
        return " | ".join(str(part) for part in self.parts)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.parts
