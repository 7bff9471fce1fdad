"""A watcher that breaks a run at a round."""

from __future__ import annotations

from crosshatch.runs.watcher import Watcher


class BreakAt(Watcher):
    """Ends the run after so many rounds as a mistake in the program would."""

    def __init__(self, round: int) -> None:
        self.round = round

    def advance(self, round: int) -> None:
        if round == self.round:
            raise ZeroDivisionError("by accident")
