"""The file of a run directory that says which data the run was made on; reading it needs neither torch nor a key."""

from pathlib import Path

import msgspec

from crosshatch.data.identity.fingerprint import Fingerprint
from crosshatch.errors import RunError

FINGERPRINT = "fingerprint.json"


def fingerprint_text(fingerprint: Fingerprint) -> bytes:
    return msgspec.json.encode(fingerprint) + b"\n"


def read_fingerprint(path: Path) -> Fingerprint | None:
    """That of the run in a directory; None where it was made without one, or with one in another form."""
    file = path / FINGERPRINT
    try:
        return msgspec.json.decode(file.read_bytes(), type=Fingerprint)
    except (FileNotFoundError, msgspec.ValidationError):
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(
            f"{file} cannot be read ({error}): restore it, or remove it if nothing shall be said of the run's data"
        ) from None
