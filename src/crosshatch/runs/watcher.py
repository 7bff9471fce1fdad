"""Who is told how a run goes, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crosshatch.errors import one_line

if TYPE_CHECKING:  # needs torch, which takes seconds to import
    from crosshatch.runs.prepare import Prepared


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `finished`, or stopped by a signal; `summary` is empty unless it finished.

    `losses`: the training loss before the first round and after the last. `advice`: what to change if it has grown.
    `why`: for a watcher, the error by which it ended.
    """

    path: Path
    finished: bool
    round: int
    summary: dict[str, Any] = field(default_factory=dict)
    was_finished: bool = False
    losses: tuple[float, float] | None = None
    advice: str = ""
    why: str = ""

    @property
    def state(self) -> Literal["finished", "stopped", "diverged", "failed"]:
        if "diverged" in self.summary:
            return "diverged"
        return "finished" if self.finished else "failed" if self.why else "stopped"


class Watcher:
    """Somebody to tell how a run goes. A class of your own inherits from it and has what it wants to hear of.

    An error that it raises ends the run, as any other would.

    >>> import tempfile
    >>> from crosshatch import read_config, train
    >>> class Listener(Watcher):
    ...     def evaluated(self, row):
    ...         print("round", row["round"])
    ...     def ended(self, outcome):
    ...         print(outcome.state)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "wine.toml")
    ...     written = path.write_text('data = {name = "wine"}')
    ...     config = read_config(path, ["algorithm.name=fedbcd", "run.rounds=20", "run.threads=1"])
    ...     outcome = train(config, out=Path(folder, "run"), watcher=Listener())
    round 0
    round 10
    round 20
    finished
    """

    def tell(self, text: str) -> None:
        """What is tried out or was chosen before the first round."""

    def begin(self, prepared: Prepared, path: Path) -> None:
        """Everything was checked, rounds follow; `path` is the run directory, which may not be there yet."""

    def advance(self, round: int) -> None:
        """So many rounds are done."""

    def under_way(self, sent: int, waited_for: tuple[str, float] | None) -> None:
        """Where parties are processes, now and then: bytes sent so far, who is waited for and how many seconds."""

    def evaluated(self, row: Mapping[str, Any]) -> None:
        """A line of metrics.jsonl, which is in the file already."""

    def warned(self, text: str) -> None:
        """The run goes on, though it has diverged or a tracker has failed."""

    def ended(self, outcome: Outcome) -> None:
        """The run that began is over, however it ended; all its files are written."""


def watched(watcher: Watcher, go: Callable[[], Outcome], so_far: Callable[[], Outcome]) -> Outcome:
    """Have a run go, and tell how it ended; `so_far` is what there is of it where it ends with an error."""
    try:
        outcome = go()
    except BaseException as error:
        watcher.ended(replace(so_far(), why=one_line(error) or type(error).__name__))
        raise
    watcher.ended(outcome)
    return outcome


def _to_all(name: str) -> Any:
    def tell(self: Watchers, *words: object) -> None:
        for one in self.watchers:
            getattr(one, name)(*words)

    return tell


@dataclass(frozen=True)
class Watchers(Watcher):
    """Several that are told the same, in order."""

    watchers: Sequence[Watcher]

    tell, begin, advance = _to_all("tell"), _to_all("begin"), _to_all("advance")
    under_way, evaluated = _to_all("under_way"), _to_all("evaluated")
    warned, ended = _to_all("warned"), _to_all("ended")
