"""What the runtime needs beyond the rest of the package, asked for before anything is started."""

from __future__ import annotations

from importlib.util import find_spec

from crosshatch.errors import ConfigError


def require_runtime(what: str) -> None:
    """Refuse where the extra is missing: `what` (a command) is what needs it."""
    missing = [name for name, module in (("grpcio", "grpc"), ("cryptography", "cryptography")) if not find_spec(module)]
    if missing:
        raise ConfigError(
            f"{what} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed: "
            "pip install '.[runtime]' in Crosshatch's folder"
        )
