"""Which values and seeds a sweep tries, and what its runs are called: `--grid`, `--seeds`, `--pair` and `--random`."""

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from crosshatch.errors import ConfigError
from crosshatch.own_parts import moved_in_text
from crosshatch.runs.tables.overrides import parse_value

MOST_RUNS = 10_000
LONGEST_VALUE, LONGEST_NAME = 40, 150  # characters of a value in a name, and of a point's name in all
_OPENING, _CLOSING = "[{(", "]})"
# What would undo how a sweep names its runs and tells them apart, and what to write instead.
_OTHERWISE = {
    "run.seed": "seeds are given by --seeds",
    "run.name": "the runs are named after their values",
}


@dataclass(frozen=True)
class Axis:
    """A setting and the values it takes, as they were written."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Seeds:
    """Seeds of their own, or numbers to be `added` to the seed in the config."""

    numbers: tuple[int, ...] = (0,)
    added: bool = True

    def beside(self, seed: int) -> tuple[int, ...]:
        """The seeds where the config has `seed`.

        >>> Seeds((0, 1, 2)).beside(10), Seeds((3, 7), added=False).beside(10)
        ((10, 11, 12), (3, 7))
        """
        return tuple(seed + number if self.added else number for number in self.numbers)


def parse_grid(texts: Sequence[str], changes: Sequence[str] = (), option: str = "--grid") -> tuple[Axis, ...]:
    """The settings that vary, as an `option` gives them; `changes` are those set elsewhere, which must be others.

    >>> parse_grid(["algorithm.step_size=0.1,0.3", "model.hidden=[8],[16, 8]"])
    (Axis(key='algorithm.step_size', values=('0.1', '0.3')), Axis(key='model.hidden', values=('[8]', '[16, 8]')))
    """
    axes: list[Axis] = []
    fixed = {_key(text) for text in changes}
    for text in texts:
        place, key = f"{option} {text}", _key(text)
        values = split_values(text.partition("=")[2])
        if "=" not in text or "." not in key or not all(key.split(".")):
            raise ConfigError(f"{place}: write section.key=value,value, for example algorithm.step_size=0.1,0.3,1")
        if not all(values):
            raise ConfigError(f"{place}: a value is empty: write section.key=value,value without a comma too many")
        if key in _OTHERWISE:
            raise ConfigError(f"{place}: {_OTHERWISE[key]}: leave it out of the grid")
        if key in fixed or any(axis.key == key for axis in axes):
            raise ConfigError(f"{place}: {key} is set twice: give it once, by --grid or by --set")
        for i, value in enumerate(values):
            if any(_same(value, other) for other in values[:i]):
                raise ConfigError(f"{place}: the value {value} stands there twice: leave one out")
        axes.append(Axis(key, tuple(values)))
    return tuple(axes)


def split_values(text: str) -> list[str]:
    """The parts between commas that are neither in brackets nor in quotes.

    >>> split_values('0.1, {kind = "halving", value = 1, every = 5}, "a,b"')
    ['0.1', '{kind = "halving", value = 1, every = 5}', '"a,b"']
    """
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        depth += 0 if quote else (sign in _OPENING) - (sign in _CLOSING)
        if sign == "," and not quote and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def parse_seeds(text: str) -> Seeds:
    """How many seeds, or which.

    >>> parse_seeds("3"), parse_seeds("3,7,11")
    (Seeds(numbers=(0, 1, 2), added=True), Seeds(numbers=(3, 7, 11), added=False))
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise ConfigError(f"--seeds {text}: write how many, for example 5, or which, for example 3,7,11")
    numbers = tuple(int(part) for part in parts)
    if len(numbers) == 1:
        if not 1 <= numbers[0] <= MOST_RUNS:
            raise ConfigError(f"--seeds {text}: at least 1 and at most {MOST_RUNS:,}; which ones: for example 3,7,11")
        return Seeds(tuple(range(numbers[0])))
    if len(set(numbers)) < len(numbers):
        raise ConfigError(f"--seeds {text}: a seed stands there twice, which would repeat a run: leave one out")
    return Seeds(numbers, added=False)


def points(axes: Sequence[Axis], seeds: Seeds, together: Sequence[Sequence[Axis]] = ()) -> list[tuple[str, ...]]:
    """Every combination of values, the last setting varying fastest; the axes of a bundle go `together`.

    >>> points(parse_grid(["a.b=1,2"]), Seeds(), [parse_grid(["c.d=3,4", "e.f=5,6"])])
    [('1', '3', '5'), ('1', '4', '6'), ('2', '3', '5'), ('2', '4', '6')]
    """
    lines = [*([(value,) for value in axis.values] for axis in axes),
             *(list(zip(*(axis.values for axis in bundle), strict=True)) for bundle in together)]  # fmt: skip
    count = prod(len(line) for line in lines)
    if count * len(seeds.numbers) > MOST_RUNS:
        raise ConfigError(
            f"this sweep has {count * len(seeds.numbers):,} runs ({count:,} points x {len(seeds.numbers):,} seeds), at "
            f"most {MOST_RUNS:,} are run: take fewer values or seeds"
        )
    if count * len(seeds.numbers) == 1:
        raise ConfigError("this sweep has one run only: give several values by --grid, or several --seeds")
    return [tuple(itertools.chain.from_iterable(one)) for one in itertools.product(*lines)]


def short_keys(axes: Sequence[Axis]) -> tuple[str, ...]:
    """The settings without their sections, where that tells them apart."""
    last = [axis.key.rpartition(".")[2] for axis in axes]
    return tuple(short if last.count(short) == 1 else axis.key for short, axis in zip(last, axes, strict=True))


def point_names(axes: Sequence[Axis], found: Sequence[tuple[str, ...]]) -> list[str]:
    """Names for folders, one per point; those that come out alike, be it but for capitals, are numbered.

    >>> axes = parse_grid(["algorithm.step_size=0.1,0.3", "model.hidden=[16, 8]"])
    >>> point_names(axes, points(axes, Seeds()))
    ['step_size=0.1,hidden=16+8', 'step_size=0.3,hidden=16+8']
    """
    keys, names = short_keys(axes), []
    for values in found:  # without the folders of files of own parts
        briefly = (moved_in_text(value, lambda path: Path(path).name) for value in values)
        parts = (f"{_plain(key)}={_plain(value)}" for key, value in zip(keys, briefly, strict=True))
        names.append(",".join(parts)[:LONGEST_NAME])
    times = Counter(name.casefold() for name in names)
    seen: Counter[str] = Counter()
    for i, name in enumerate(names):
        seen[name.casefold()] += 1
        if times[name.casefold()] > 1:
            names[i] = f"{name},{seen[name.casefold()]}"
    return names


def run_name(point: str, seed: int) -> str:
    """The name of a point's run."""
    return f"{point},seed={seed}" if point else f"seed={seed}"


def _plain(value: str) -> str:
    """A value without the signs that folders cannot have."""
    listed = re.sub(r"\s*,\s*", "+", value)
    return re.sub(r"[^\w.+-]+", "_", re.sub(r"[\[\]{}()\"'\s]", "", listed), flags=re.ASCII).strip("_")[:LONGEST_VALUE]


def _key(text: str) -> str:
    return ".".join(part.strip() for part in text.partition("=")[0].split("."))


def _same(one: str, other: str) -> bool:
    """Whether two texts set the same: 0.1 and 0.10, but not 1 and true."""
    ours, theirs = parse_value(one), parse_value(other)
    return bool(ours == theirs) and isinstance(ours, bool) == isinstance(theirs, bool)


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
