"""Threads of which one runs at a time: whoever resumes one waits until it pauses or ends, so every run is the same."""

from collections.abc import Callable
from threading import Lock, Thread


class StrandEnded(BaseException):
    """Raised inside a strand that is to end where it paused; nothing catches it by accident."""


class Strand:
    """A piece of work that can pause in the middle.

    >>> said: list[str] = []
    >>> strand = Strand(lambda: (said.append("one"), strand.pause(), said.append("two")))
    >>> strand.resume(), said, strand.over
    (None, ['one'], False)
    >>> strand.resume(), said, strand.over
    (None, ['one', 'two'], True)
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self._work, self._go, self._back = work, _shut(), _shut()
        self._ending, self.over = False, False
        self.error: BaseException | None = None
        self._thread: Thread | None = None

    def resume(self) -> None:
        """Let it run until it pauses or is over; what it raised is in `error`."""
        assert not self.over
        if self._thread is None:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._go.release()
        self._back.acquire()
        if self.over:
            self._thread.join()

    def pause(self) -> None:
        """Called inside: go back to whoever resumed it."""
        self._back.release()
        self._go.acquire()
        if self._ending:
            raise StrandEnded

    def end(self) -> None:
        """Called outside, of one that has paused, has not begun or is over: nothing of its work is done any more."""
        self._ending = True
        if self._thread is None:
            self.over = True
        elif not self.over:
            self.resume()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # whoever resumed it decides what to do about it
            self.error = error
            if isinstance(error, KeyboardInterrupt):
                raise
        self.over = True
        self._back.release()


def _shut() -> Lock:
    """To be opened by whoever hands the turn over."""
    lock = Lock()
    lock.acquire()
    return lock
