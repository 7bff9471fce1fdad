"""What the runtime needs beyond the rest of the package, asked for before anything is started."""

from importlib.util import find_spec

from crosshatch.errors import ConfigError

NEW_TLS_ONLY = {"GRPC_SSL_CIPHER_SUITES": "ECDHE-PSK-CHACHA20-POLY1305:ECDHE-PSK-AES128-CBC-SHA"}
"""What has to be in the environment before anybody imports grpc, so that TLS 1.2 does not get in; see `secure`."""


def require_runtime(what: str) -> None:
    """Refuse where the extra is missing: `what` (a command) is what needs it."""
    missing = [name for name, module in (("grpcio", "grpc"), ("cryptography", "cryptography")) if not find_spec(module)]
    if missing:
        raise ConfigError(
            f"{what} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed: "
            "pip install -e '.[runtime]' in Crosshatch's folder"
        )
