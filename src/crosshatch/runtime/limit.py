"""Up to which round the parties of a process go: the last one of the run, or earlier where somebody asks for a stop."""

from threading import Condition


class Limit:
    """Asked before each round. To stop parties of several processes after the same round, all are held where they are.

    Each says the round that it will have ended then, and all are told to go until the latest of these.

    >>> limit = Limit(10)
    >>> limit.may_begin(0), limit.hold()
    (True, 1)
    >>> limit.until(2)
    >>> limit.may_begin(1), limit.may_begin(2), limit.end
    (True, False, 2)
    """

    def __init__(self, rounds: int) -> None:
        self.end = self._rounds = rounds
        self._decided = True
        self._begun = 0
        self._news = Condition()

    def start_at(self, round: int) -> None:
        """A party here goes on from this round: those before are over."""
        with self._news:
            self._begun = max(self._begun, round)

    def may_begin(self, round: int) -> bool:
        """Whether this round is to be run; waits while that is not decided."""
        with self._news:
            self._news.wait_for(lambda: round < self.end or self._decided)
            if round >= self.end:
                return False
            self._begun = max(self._begun, round + 1)
            return True

    def hold(self) -> int:
        """Begin no round that nobody here has begun; how many rounds will be over then."""
        with self._news:
            if self._decided and self.end == self._rounds:
                self.end, self._decided = min(self._begun, self._rounds), False
            return self.end

    def until(self, round: int) -> None:
        """So many rounds, then the end."""
        with self._news:
            self.end, self._decided = min(round, self._rounds), True
            self._news.notify_all()
