"""The error tree: every mistake a user can make is one of these, said in one line.

A message names the rule, the value, the place and the remedy. The command line prints it and exits with code 2, or
with 1 where a run diverged.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral
from unicodedata import category


class CrosshatchError(Exception):
    """Anything Crosshatch refuses or gives up on; the root of the tree.

    >>> from crosshatch import TDCD
    >>> try:
    ...     TDCD(local_steps=0)
    ... except CrosshatchError as error:
    ...     print(error)
    algorithm.local_steps = 0: Q must be at least 1 and at most 1,000,000
    """


class ConfigError(CrosshatchError):
    """A setting is unknown, has the wrong type or contradicts another one.

    >>> from crosshatch import FedBCD
    >>> FedBCD(local_steps=5, order="random")
    Traceback (most recent call last):
    crosshatch.errors.ConfigError: algorithm.order = 'random': must be 'parallel' or 'sequential'
    """


class DataError(CrosshatchError):
    """A data set is absent, malformed or unfit for training.

    >>> from crosshatch import load_dataset
    >>> load_dataset("wines")
    Traceback (most recent call last):
    crosshatch.errors.DataError: data.name: unknown data set 'wines': did you mean 'wine'? (see `crosshatch datasets`)
    """


class PartitionError(CrosshatchError):
    """Columns or samples cannot be divided among silos and clients as asked.

    >>> from crosshatch import FederationSettings, federate, load_dataset
    >>> federate(load_dataset("wine"), FederationSettings(silos=20), seed=0)
    Traceback (most recent call last):
    crosshatch.errors.PartitionError: 20 silos for 13 columns: use at most 13 silos, so that each has one
    """


class ModelError(CrosshatchError):
    """A block, the fusion or the loss do not fit each other or the data.

    >>> from crosshatch import FederationSettings, ModelSettings, build_task, federate, load_dataset
    >>> data = federate(load_dataset("wine"), FederationSettings(silos=2), seed=0)
    >>> try:
    ...     build_task(data, ModelSettings(loss="squared"), seed=0)
    ... except ModelError as error:
    ...     print(error)
    loss 'squared' is for regression labels, the data has multiclass ones: use 'cross_entropy'
    """


class TrainingError(CrosshatchError):
    """Training went wrong while running, for example a loss that is no longer finite.

    >>> import torch
    >>> from crosshatch import Quantise
    >>> try:
    ...     Quantise(8).encode(torch.tensor([1.0, float("inf")]))
    ... except TrainingError as error:
    ...     print(error)
    values to be sent are no longer finite, training diverged: lower algorithm.step_size
    """


class DivergenceError(TrainingError):
    """Training diverged: its loss grew too far, or its numbers are no longer finite. A run's summary says so.

    >>> from crosshatch import FedSGD, FederationSettings, ModelSettings, Simulator, build_task, federate, load_dataset
    >>> data = federate(load_dataset("diabetes"), FederationSettings(silos=2), seed=0)
    >>> simulator = Simulator(data, build_task(data, ModelSettings(), seed=0), FedSGD(step_size=1e30), seed=0)
    >>> try:
    ...     for _ in range(3):
    ...         simulator.run_round()
    ... except DivergenceError as error:
    ...     print(str(error).partition(":")[0])
    round 2
    """


class MessageError(CrosshatchError):
    """What another party sent cannot be right: cut off, changed on its way, or not what is due. It names the party.

    >>> from crosshatch.runtime.envelope import Opener
    >>> Opener(longest=lambda key: 1000).open(b"")
    Traceback (most recent call last):
    crosshatch.errors.MessageError: no envelope (Input data was truncated)
    """


class RunError(CrosshatchError):
    """A run directory cannot be written, read or resumed.

    >>> from crosshatch import read_run
    >>> read_run("nowhere")
    Traceback (most recent call last):
    crosshatch.errors.RunError: nowhere is not a directory: name a run directory, as written by `crosshatch train --out`
    """


@contextmanager
def saying_where(place: object, kind: type[CrosshatchError] = CrosshatchError) -> Iterator[None]:
    """Errors of a kind name the place first: what refuses a value need not know where it was written.

    >>> with saying_where("codecs.share"):
    ...     raise ConfigError("a chain has at least one part")
    Traceback (most recent call last):
    crosshatch.errors.ConfigError: codecs.share: a chain has at least one part
    """
    try:
        yield
    except kind as error:
        raise type(error)(f"{place}: {error}") from error.__cause__


def meant(given: object, known: Iterable[str]) -> str:
    """A question for whoever wrote something that is not known; empty where nothing is like it.

    Capitals do not count.

    >>> meant("fedBCD", ["fedavg", "fedbcd"]), meant("nonsense", ["fedavg"])
    ("did you mean 'fedbcd'? ", '')
    """
    lower = {name.lower(): name for name in known}
    close = get_close_matches(str(given).lower(), lower, n=1)
    return f"did you mean '{lower[close[0]]}'? " if close else ""


_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")


@contextmanager
def in_python_words() -> Iterator[None]:
    """Errors name arguments as Python has them: `seeds`, where the command line has `--seeds`.

    >>> with in_python_words():
    ...     raise ConfigError("--seeds 0: at least 1")
    Traceback (most recent call last):
    crosshatch.errors.ConfigError: seeds 0: at least 1
    """
    others = {"set": "changes", "random": "ranges", "pair": "pairs"}
    try:
        yield
    except CrosshatchError as error:
        text = _OPTION.sub(lambda found: others.get(found[1], found[1].replace("-", "_")), str(error))
        if text == str(error):
            raise
        raise type(error)(text) from error.__cause__


def one_line(error: BaseException) -> str:
    """What an error says, be it another library's, without its line breaks."""
    return " ".join(str(error).split())


def visible(text: str) -> str:
    """A text for a terminal, with the signs that would steer it, or turn its order, spelled out.

    >>> visible("a \x1b[31mred\x1b[0m name"), visible("two\\nlines")
    ('a \\\\x1b[31mred\\\\x1b[0m name', 'two\\nlines')
    """
    steers = (sign for sign in set(text) - {"\n", "\t"} if category(sign) in ("Cc", "Cf"))
    return text if text.isprintable() else text.translate({ord(sign): repr(sign)[1:-1] for sign in steers})


def first_few(names: Sequence[str], most: int = 8) -> str:
    """The first of some names, for a message."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def require_whole(place: str, value: object, *, least: int | None = None, remedy: str = "") -> None:
    """Refuse what is not a whole number (True and 2.0 are none), and of counts what is below the least or huge."""
    hint = f" ({remedy})" if remedy else ""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ConfigError(f"{place} = {value!r}: must be a whole number{hint}")
    if least is not None and value < least:
        raise ConfigError(f"{place} = {value}: must be at least {least}{hint}")
    if least is not None and int(value) >= 2**63:
        raise ConfigError(f"{place} = {value}: that is more than a computer counts{hint}")
