"""Codecs from a user's own Python file: found, built, and tried out before anything is sent with them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from inspect import isabstract
from typing import Any

import torch
from torch import Tensor

from crosshatch.codecs.chain import Chain
from crosshatch.codecs.codec import Codec, Draw
from crosshatch.codecs.feedback import AnyCodec, ErrorFeedback
from crosshatch.errors import ConfigError, meant
from crosshatch.own_parts import PartKind, building, find_settings_class, moved_in_text, name_of, short_name

_CODEC = PartKind("a codec", "codecs.share")
_SHAPES = ((1, 1), (3, 5), (2, 1), (0, 4))


def build_own(name: str, values: Sequence[Any], arguments: Mapping[str, Any]) -> Codec:
    """An instance of the class `name` speaks of, with the values of its first fields in order, and others by name."""
    found = find_settings_class(name, _CODEC)
    if not issubclass(found, Codec):
        raise ConfigError(f"{name} is not a codec: derive {short_name(name)} from crosshatch.codecs.Stage")
    if isabstract(found):
        raise ConfigError(f"{name} has no {' and no '.join(sorted(found.__abstractmethods__))}: a codec needs them")
    known = [field.name for field in fields(found)]  # type: ignore[arg-type]  # a dataclass, as was checked
    if len(values) > len(known):
        raise ConfigError(f"{name} is given {len(values)} arguments: {taken(known)}")
    for key in arguments:
        if key not in known:
            raise ConfigError(f"unknown argument {key!r} of {name}: {meant(key, known)}{taken(known).capitalize()}")
        if key in known[: len(values)]:
            raise ConfigError(f"{key} of {name} is given twice: give it once")
    with building(name, _CODEC):
        codec: Codec = found(*values, **arguments)
    with building(name, _CODEC, done="tried out"):
        _try_out(codec, name)
    return codec


def spell(codec: AnyCodec) -> str:
    """A codec as `parse_codec` reads it, files of a user's own included."""
    if isinstance(codec, Chain):
        return " | ".join(spell(part) for part in codec.parts)
    if isinstance(codec, ErrorFeedback):
        return f"ef({spell(codec.codec)}{', accumulate' if codec.mode == 'accumulate' else ''})"
    if type(codec).__module__.startswith(Codec.__module__.rpartition(".")[0]):
        return str(codec)
    name = moved_in_text(repr(name_of(type(codec), "the codec")), str)
    own: Any = codec
    given = ", ".join(f"{field.name}={getattr(own, field.name)!r}" for field in fields(own))
    return f"{name}({given})" if given else name


def taken(known: Sequence[str]) -> str:
    return f"it takes {' and '.join(known) or 'none'}"


def _try_out(codec: Codec, name: str) -> None:
    """What is written is as long as was said, and read again it is what the sender takes the receiver to have."""
    for shape in _SHAPES:
        for dtype in (torch.float32, torch.float64):
            tensor = _numbers(shape, dtype)
            draw = Draw(0, "trial", shape)
            data, arrived = codec.encode_and_roundtrip(tensor, draw=draw)
            what = f"{name} for a tensor of shape {shape} and type {str(dtype).removeprefix('torch.')}"
            if len(data) != codec.size(shape, dtype):
                raise ConfigError(
                    f"{what} writes {len(data)} bytes and says it takes {codec.size(shape, dtype)}: correct side_size, "
                    "kept or kind"
                )
            read = codec.decode(data, shape, dtype, draw=draw)
            if read.dtype != dtype or not torch.equal(read, arrived):
                raise ConfigError(f"{what} reads other numbers than it wrote: correct write, read or restore")
            if codec.lossless and not torch.equal(read, tensor):
                raise ConfigError(f"{what} loses something: keeps_all is true, correct it")


def _numbers(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=dtype).sub(count / 3).mul(0.37)).reshape(shape)
