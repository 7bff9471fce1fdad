"""Settings whose values go together: `--pair`, the first with the first; `--random`, drawn log-uniformly."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from crosshatch.errors import ConfigError
from crosshatch.sweeps.grid import MOST_RUNS, Axis, parse_grid

DRAWS = 10


@dataclass(frozen=True)
class Bundles:
    """What `--pair` and `--random` were given, and how many points `--draws` asks for; None: ten."""

    pairs: Sequence[str] = ()
    ranges: Sequence[str] = ()
    draws: int | None = None

    def parse(self, taken: Sequence[str]) -> tuple[tuple[Axis, ...], ...]:
        """One bundle for each option that was given; `taken` are settings that stand elsewhere."""
        paired = parse_grid(self.pairs, taken, "--pair")
        if len({len(axis.values) for axis in paired}) > 1:
            counts = ", ".join(f"{axis.key} has {len(axis.values)}" for axis in paired)
            raise ConfigError(f"--pair: the first value goes with the first, so all need as many: {counts}")
        if len(paired) == 1:
            raise ConfigError(f"--pair {self.pairs[0]}: it goes with nothing: give another --pair, or use --grid")
        drawn = self._drawn([*taken, *(f"{axis.key}=" for axis in paired)])
        return tuple(bundle for bundle in (paired, drawn) if bundle)

    def _drawn(self, taken: Sequence[str]) -> tuple[Axis, ...]:
        draws = DRAWS if self.draws is None else self.draws
        if self.draws is not None and not self.ranges:
            raise ConfigError(
                f"--draws {draws} without --random: nothing is drawn: add --random section.key=LOW..HIGH, or leave it"
            )
        if not 2 <= draws <= MOST_RUNS:
            raise ConfigError(f"--draws {draws}: at least 2 and at most {MOST_RUNS:,} points")
        texts = []
        for text in self.ranges:
            key, _, reach = text.partition("=")
            try:
                low, high = (float(part) for part in reach.split(".."))
            except ValueError:
                low, high = 0.0, 0.0
            if not 0 < low < high < math.inf:
                raise ConfigError(f"--random {text}: write section.key=LOW..HIGH with 0 < LOW < HIGH, as in 0.001..1")
            # a generator per setting, so that another setting beside it changes nothing
            source = random.Random(f"{draws} {key.strip()}")
            values = [10 ** source.uniform(math.log10(low), math.log10(high)) for _ in range(draws)]
            texts.append(f"{key}={','.join(f'{value:.6g}' for value in values)}")
        return parse_grid(texts, taken, "--random")
