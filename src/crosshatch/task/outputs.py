"""What a module returned, held against what it promised: one row per sample, always as wide, in the samples' precision.

A module may keep the promise for some numbers of samples only, so every call is looked at, not just a first one.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from crosshatch.data.notes import counted
from crosshatch.errors import ModelError


@dataclass(frozen=True)
class Promise:
    """Whose module it is, and how many outputs per sample it has (None: any number)."""

    place: str
    width: int | None = None

    def check(self, out: object, x: Tensor) -> Tensor:
        """The outputs (n, e) of the module for samples x (n, ...), or a ModelError."""
        if not isinstance(out, Tensor) or out.dim() != 2 or out.shape[0] != x.shape[0]:
            found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            hint = " (a squeeze() takes a dimension of size 1 away)" if len(x) == 1 and isinstance(out, Tensor) else ""
            raise ModelError(
                f"{self.place} returned {found} for {counted(len(x), 'sample')}: return a row of outputs each{hint}"
            )
        if self.width is not None and out.shape[1] != self.width:
            raise ModelError(
                f"{self.place} returned {out.shape[1]} outputs per sample for {len(x)} samples and {self.width} for "
                "others: return as many for any number of samples"
            )
        if out.dtype != x.dtype:
            raise ModelError(
                f"{self.place} returned numbers of type {_name(out)} for samples of type {_name(x)} (run.precision): "
                "return those of its input, for example by making its constants with dtype=x.dtype"
            )
        return out


_PROMISED: WeakKeyDictionary[nn.Module, Promise] = WeakKeyDictionary()
_NOTHING = Promise("a block")


def expect(module: nn.Module, promise: Promise) -> None:
    """From now on `checked` knows what to hold this module's outputs against."""
    _PROMISED[module] = promise


def checked(module: nn.Module, out: object, x: Tensor) -> Tensor:
    return _PROMISED.get(module, _NOTHING).check(out, x)


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
