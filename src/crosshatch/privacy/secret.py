"""What must not leave a party by accident: it is not printed, stored or sent."""

from __future__ import annotations

from typing import NoReturn


class Secret:
    """A base for keys and masks: no `repr` with numbers in it, no pickle, and no copy, which pickle's protocol makes.

    >>> class Mask(Secret):
    ...     number = 42
    >>> Mask()
    <Mask, not shown>
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, not shown>"

    def __reduce__(self) -> NoReturn:
        """Refuse, as Python does with what cannot be pickled."""
        raise TypeError(f"a {type(self).__name__} is secret: it can be neither pickled nor copied")
