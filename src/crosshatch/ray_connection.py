"""Ray, with the extra `ray`: a cluster that somebody started, or one of this machine alone, bound to loopback."""

import os
import socket
from importlib.util import find_spec
from typing import Any

from crosshatch.errors import RunError, one_line

_KNOCK_SECONDS = 5.0
_CLIENT = "ray://"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ON_LOOPBACK = ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # or Ray takes the machine's address in the network instead
_REMEDY = "start one by `ray start --head` and give its address, or auto"
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}


def find_ray(asked: str, *, here: bool = False) -> Any:
    """The library; a RunError says who `asked` for it where it is not installed. `here`: for this machine alone."""
    if here:  # Ray reads it once, when it is imported
        os.environ.setdefault(*_ON_LOOPBACK)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # as this process: Ray itself has them give way to others
    try:
        import ray
    except ImportError:
        raise _not_installed(asked) from None
    return ray


def require_ray(address: str | None) -> None:
    """Refuse at once what others would notice later: no Ray to start here, or nobody who answers at this address."""
    if address is None:
        if find_spec("ray") is None:
            raise _not_installed("run.workers")
    elif address != "auto":
        _knock(find_ray("--ray"), address)


def _not_installed(asked: str) -> RunError:
    return RunError(f"{asked} needs Ray, which is not installed: pip install -e '.[ray]' in Crosshatch's folder")


def connect(ray: Any, address: str) -> None:
    """Join the cluster at this address."""
    if address != "auto":
        _knock(ray, address)
    try:
        ray.init(address, **_QUIET)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise RunError(f"--ray {address}: {one_line(error)}: {_REMEDY}") from None


def start_here(ray: Any, cores: int) -> None:
    """A cluster of this machine that ends with this process; nobody else can reach it."""
    if ray.is_initialized():
        raise RunError(
            "run.workers: this process is on a Ray cluster already: leave run.workers out, or call ray.shutdown()"
        )
    try:
        ray.init("local", num_cpus=cores, include_dashboard=False, _node_ip_address=_LOOPBACK[0], **_QUIET)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise RunError(f"run.workers: Ray did not start ({one_line(error)}): use run.workers = 0") from None

    bound = {node["NodeManagerAddress"] for node in ray.nodes()}
    if bound != {_LOOPBACK[0]}:  # others could reach it, and have it run what they like
        ray.shutdown()
        setting = "=".join(_ON_LOOPBACK)
        raise RunError(f"run.workers: Ray is bound to {', '.join(bound)}: set {setting} in the environment")


def _knock(ray: Any, address: str) -> None:
    """Refuse an address at which nobody listens: Ray itself would try again for many minutes."""
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    host = host.strip("[]")
    if not host or not (port.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
        raise RunError(f"--ray {address}: an address is HOST:PORT or auto: {_REMEDY}")
    if host in _LOOPBACK and not address.startswith(_CLIENT):
        host = ray.util.get_node_ip_address()  # where Ray looks for it
    try:
        socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()
    except OSError as error:
        setting = "=".join(_ON_LOOPBACK)
        bound = f"; one bound to {_LOOPBACK[0]} needs {setting} in the environment, here and where it is started"
        raise RunError(
            f"--ray {address}: no cluster answers at {host}:{port} ({one_line(error)}): {_REMEDY}{bound}"
        ) from None
