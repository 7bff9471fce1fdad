"""A user's own parts from Python files: blocks, losses, algorithms, codecs, schedules and metrics.

A config names one as `path/to/file.py:Name`. Reading a file runs it, with this process's rights: it is the user's own.
So are errors that come out of it: told in one line with file and line, without a traceback.
"""

import importlib.util
import inspect
import re
import sys
import traceback
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from crosshatch.errors import ConfigError, CrosshatchError, ModelError, one_line

# The name of a part inside a longer text, where a path with blanks or brackets stands in quotes.
_IN_TEXT = re.compile(r"""'([^']+):(\w+)'|"([^"]+):(\w+)"|([^\s|(),='":]+\.py):(\w+)""")
_MODULES: dict[str, ModuleType] = {}
_NAMES: dict[type[Any], str] = {}


@dataclass(frozen=True)
class PartKind:
    """What is named: `what` in words, under which `key` of a config, what a mistake in it raises, class or function."""

    what: str
    key: str
    error: type[CrosshatchError] = ConfigError
    sort: str = "class"


def is_own(name: object) -> bool:
    """Whether this names a part in a file, not one of those that come with the package.

    >>> is_own("celu.py:Celu"), is_own("tdcd")
    (True, False)
    """
    return isinstance(name, str) and ":" in name


def short_name(name: str) -> str:
    """The name of a part alone, without its file.

    >>> short_name("parts/lift.py:lift"), short_name("auc")
    ('lift', 'auc')
    """
    return name.rpartition(":")[2]


def moved(name: str, change: Callable[[str], str]) -> str:
    """The name of a part with its file changed.

    >>> moved("celu.py:Celu", lambda path: f"parts/{path}"), moved("tdcd", str.upper)
    ('parts/celu.py:Celu', 'tdcd')
    """
    path, colon, part = name.rpartition(":")
    return f"{change(path)}:{part}" if colon else name


def moved_in_text(text: str, change: Callable[[str], str], *, quoted: bool = False) -> str:
    """The same for all names in a text such as a codec's, in quotes where they need them, or always.

    >>> moved_in_text("ef(mine.py:Mine(3)) | half", lambda path: f"parts/{path}")
    'ef(parts/mine.py:Mine(3)) | half'
    """

    def write(match: re.Match[str]) -> str:
        path, part = [group for group in match.groups() if group is not None]
        name = f"{change(path)}:{part}"
        return name if _IN_TEXT.fullmatch(name) and not quoted else repr(name)

    return _IN_TEXT.sub(write, text)


def find_part(name: str, kind: PartKind, *, folder: Path | None = None) -> Any:
    """What a name speaks of; relative paths start in `folder`, by default the current one."""
    path, _, part = name.rpartition(":")
    module = _load((folder or Path()) / path, kind)
    found = getattr(module, part, None)
    if found is None:  # what a file has from elsewhere is not named
        known = [one for one, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        raise kind.error(
            f"{path} has no {kind.sort} {part!r}: write {kind.key} = '{path}:Name' with what is defined there "
            f"({', '.join(known) or 'nothing'})"
        )
    if isinstance(found, type):
        remember_name(found, f"{module.__file__}:{part}")
    return found


def loaded_files() -> tuple[ModuleType, ...]:
    """The files that were read so far: other processes do not find them by their names."""
    return tuple(_MODULES.values())


def find_settings_class(name: str, kind: PartKind) -> type[Any]:
    """The same for a class whose fields are keys of a config: a frozen dataclass."""
    found = find_part(name, kind)
    if not isinstance(found, type):
        raise kind.error(f"{name} is not a class: {kind.what} is a frozen dataclass, its fields are its settings")
    own = vars(found).get("__dataclass_params__")  # of the decorator above this very class
    if own is None or not own.frozen:
        raise kind.error(
            f"{name} is not a frozen dataclass: write @dataclass(frozen=True) above class {short_name(name)}"
        )
    return found


def require_methods(found: type[Any], name: str, kind: PartKind, methods: dict[str, tuple[str, ...]]) -> None:
    """Refuse a class that lacks one of these methods, or has it with fewer or more arguments; `self` is not counted."""
    for method, arguments in methods.items():
        function = next((vars(one)[method] for one in found.__mro__ if method in vars(one)), None)
        wanted = f"{method}({', '.join(('self', *arguments))})"
        if not callable(function):
            raise kind.error(f"{name} has no method {method}: {kind.what} needs {wanted}")
        if not takes(function, len(arguments) + 1):
            raise kind.error(f"{method} of {name} does not take what it is given: write it as {wanted}")


def takes(function: Callable[..., object], count: int) -> bool:
    """Whether a call with so many arguments by position is possible."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    return True


def remember_name(kind: type[Any], name: str) -> None:
    """Have a class called so in configs: it came from there, or stands for what did."""
    _NAMES[kind] = name


def name_of(kind: type[Any], what: str) -> str:
    """The name of a class in a config: its file, and what it is called there."""
    known = _NAMES.get(kind)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if known is None and (file is None or "." in kind.__qualname__):
        raise ConfigError(
            f"{what} {kind.__name__} is not in a file, so that no run directory can keep it: put the class into a "
            f"file, outermost, and name it as 'path/to/file.py:{kind.__name__}'"
        )
    return known or f"{Path(str(file)).resolve()}:{kind.__name__}"


@contextmanager
def building(name: str, kind: PartKind, why: str = "", *, done: str = "built") -> Iterator[None]:
    """Whatever a user's code raises while it is built or tried out is told in one line, with the line it came from."""
    try:
        yield
    except CrosshatchError:
        raise
    except Exception as error:
        path = str(Path(name.rpartition(":")[0]).resolve())
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        place = f" (line {lines[-1]})" if lines else ""
        raise kind.error(f"{name} could not be {done}{why}: {_kind_and_text(error)}{place}") from error


def _load(path: Path, kind: PartKind) -> ModuleType:
    """The module in a file; a file that was read before and has not changed is not run again."""
    if not path.is_file():
        raise kind.error(
            f"the file {path} of {kind.what} does not exist: write {kind.key} = 'path/to/file.py:ClassName'"
        )
    path = path.resolve()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise kind.error(f"the file {path} of {kind.what} cannot be read ({error.strerror}): check it") from None
    # Two files of the same name in different folders are two modules, and so are two states of one file.
    module_name = f"crosshatch_part_{path.stem}_{zlib.crc32(str(path).encode() + content):08x}"
    if module_name in _MODULES:
        return _MODULES[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None:
        raise kind.error(f"the file {path} of {kind.what} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses in the file look their module up there
    try:
        exec(compile(content, str(path), "exec"), vars(module))  # so that nothing is written beside the file
    except Exception as error:  # whatever the user's file raises while it is read
        del sys.modules[module_name]
        raise kind.error(f"the file {path} of {kind.what} could not be read: {_kind_and_text(error)}") from error
    _MODULES[module_name] = module
    return module


def _kind_and_text(error: Exception) -> str:
    text = one_line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def blaming(files: Collection[Path]) -> Iterator[None]:
    """Turn what is raised in one of these files, a call of `sys.exit` too, into a ModelError; leave the rest alone."""
    try:
        yield
    except CrosshatchError:
        raise
    except (Exception, SystemExit) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) in files]
        if not frames:
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        place = f"{frames[-1].filename}, line {frames[-1].lineno}"
        raise ModelError(f"the code in {place} failed with {what}: correct it there") from error
