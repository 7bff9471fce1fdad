"""TOML as people may write it: whatever cannot be read is one kind of error."""

import tomllib
from typing import Any


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML file.

    >>> read_toml("x = " + 5000 * "[")
    Traceback (most recent call last):
    tomllib.TOMLDecodeError: too many brackets within each other
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("too many brackets within each other") from None
    except ValueError:  # Python's own limit
        raise tomllib.TOMLDecodeError("a number has too many digits") from None
