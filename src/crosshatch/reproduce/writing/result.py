"""result.json as a value: what was asked, measured, judged and found to differ. result.schema.json describes it."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from crosshatch.errors import RunError

NAME, SCHEMA = "result.json", Path(__file__).with_name("result.schema.json")


@dataclass(frozen=True)
class Ours:
    """A number per seed; null: not reached. Mean and deviation are null where they are not finite."""

    mean: float | None
    deviation: float | None
    seeds: tuple[float | None, ...]


@dataclass(frozen=True)
class ResultRow:
    """A setting of the table, what was measured, the paper's number and ours."""

    setting: str
    what: str
    reading: str
    paper: float | None
    ours: Ours


@dataclass(frozen=True)
class ResultCheck:
    """A comparison with its numbers, a number per seed each, and where it is true."""

    name: str
    words: str
    main: bool
    outcome: str
    of_means: bool | None
    by_seed: tuple[bool | None, ...]
    numbers: dict[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class ResultFactor:
    """A ratio of ours beside the paper's; near: within a factor of 1.5. `at_least`: it is not smaller than ours."""

    reading: str
    name: str
    ours: float
    paper: float
    near: bool
    at_least: bool


@dataclass(frozen=True)
class TriedValue:
    """A value that was tried: with how many seeds it arrived, and what counted, summed over these."""

    value: float
    arrived: int
    score: float | None


@dataclass(frozen=True)
class ResultSearch:
    """The search for a method's value, all of it."""

    runs: str
    method: str
    setting: str
    choose: str
    tried: tuple[TriedValue, ...]
    own: float
    at_edge: bool
    common: float | None


@dataclass(frozen=True)
class Reading:
    """How a reading of the step size was judged."""

    verdict: str
    why: str
    checks: tuple[ResultCheck, ...]


@dataclass(frozen=True)
class Made:
    """By what, where and when; `rules` is a digest of all that decides a verdict, `rules_first` whether it is the same
    as when the first run began."""

    command: str
    versions: dict[str, str]
    commit: str
    began_at_commit: str
    rules: str
    rules_first: bool
    machine: str
    date: str
    processor_seconds: float


@dataclass(frozen=True)
class RecipeResult:
    """All about one recipe. The verdict is that of the reading "own"."""

    id: str
    paper: str
    place: str
    shows: str
    profile: str
    verdict: str
    why: str
    seeds: dict[str, tuple[int, ...]]
    rows: tuple[ResultRow, ...]
    readings: dict[str, Reading]
    factors: tuple[ResultFactor, ...]
    search: tuple[ResultSearch, ...]
    same: tuple[str, ...]
    differs: dict[str, str]
    note: str
    runs: tuple[str, ...]
    made: Made


def read_result(path: Path | str) -> RecipeResult:
    """The result in a file or in a recipe's folder.

    >>> read_result("nowhere")
    Traceback (most recent call last):
    crosshatch.errors.RunError: no result nowhere/result.json: run `crosshatch reproduce run` first
    """
    path = Path(path)
    file = path if path.suffix == ".json" else path / NAME
    if not file.is_file():
        raise RunError(f"no result {file}: run `crosshatch reproduce run` first")
    try:
        return msgspec.json.decode(file.read_bytes(), type=RecipeResult)
    except msgspec.DecodeError as error:
        raise RunError(f"{file} is not a result ({error}): make it anew by `crosshatch reproduce page`") from None


def schema() -> dict[str, object]:
    """The JSON schema of a result, as it ships in result.schema.json."""
    found: dict[str, object] = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(RecipeResult)))
    return found
