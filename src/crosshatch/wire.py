"""What a message looks like on the wire, and so exactly how many bytes it is.

A message is a 4-byte little-endian header length, a msgpack header (run, round, exchange, use, tensors) and the
tensors' raw little-endian bytes, one after the other. Who sent it is the connection's business (a party is its
certificate), so the header carries no name and its length depends on the numbers in it only.
"""

import struct
from bisect import bisect
from functools import lru_cache
from math import prod

import msgspec
import numpy as np
import torch
from torch import Tensor

from crosshatch.errors import DataError

_DTYPES = {"f4": torch.float32, "f8": torch.float64, "f2": torch.float16, "i8": torch.int64, "u1": torch.uint8}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_LENGTH = struct.Struct("<I")
_MAX_HEADER = 65536
_LONGER = (128, 256, 2**16, 2**32)  # from these numbers on a header's integer takes more bytes


class TensorInfo(msgspec.Struct, array_like=True, frozen=True):
    """Type and shape of one tensor behind the header."""

    dtype: str
    shape: tuple[int, ...]


class Header(msgspec.Struct, array_like=True, frozen=True):
    """What a message is: with its sender, enough to make a retry harmless.

    `use` counts the uses of the exchange in the round before this one (of tokens, it is the token's number).
    """

    run: str
    round: int
    exchange: str
    use: int
    tensors: tuple[TensorInfo, ...]


def encode(run: str, round: int, exchange: str, tensors: tuple[Tensor, ...], *, use: int = 0) -> bytes:
    """The message as bytes.

    >>> message = encode("0badcafe", 3, "share", (torch.zeros(2, 5),))
    >>> len(message) == size(3, "share", ((torch.float32, (2, 5)),))
    True
    """
    infos = tuple(TensorInfo(_CODES[t.dtype], tuple(t.shape)) for t in tensors)
    header = msgspec.msgpack.encode(Header(run, round, exchange, use, infos))
    raw = [t.detach().cpu().contiguous().numpy().data for t in tensors]
    return b"".join([_LENGTH.pack(len(header)), header, *raw])


def decode(message: bytes) -> tuple[Header, tuple[Tensor, ...]]:
    """The header and tensors of a message; sizes are checked before memory is taken.

    The tensors lie in torch's own memory: elsewhere kernels may round differently.
    """
    if len(message) < _LENGTH.size:
        raise DataError(f"message of {len(message)} bytes: too short for a header, was it cut off?")
    (length,) = _LENGTH.unpack_from(message)
    if length > min(_MAX_HEADER, len(message) - _LENGTH.size):
        raise DataError(f"message header of {length} bytes in a message of {len(message)}: cut off or not ours")
    try:
        header = msgspec.msgpack.decode(message[_LENGTH.size : _LENGTH.size + length], type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"message header does not decode: {error}") from None
    offset = _LENGTH.size + length
    tensors = []
    for info in header.tensors:
        if info.dtype not in _DTYPES or not all(0 <= n < 2**63 for n in info.shape):
            raise DataError(f"message announces a tensor of type {info.dtype!r} and shape {info.shape}")
        dtype = _DTYPES[info.dtype]
        count = prod(info.shape)
        end = offset + count * dtype.itemsize
        if end > len(message):
            raise DataError(f"message announces {end} bytes and has {len(message)}: cut off?")
        flat = torch.empty(count, dtype=dtype)
        if count:
            flat.numpy().view(np.uint8)[:] = np.frombuffer(message, np.uint8, end - offset, offset)
        tensors.append(flat.reshape(info.shape))
        offset = end
    if offset != len(message):
        raise DataError(f"message has {len(message) - offset} bytes behind its last tensor")
    return header, tuple(tensors)


@lru_cache(maxsize=4096)
def as_long(number: int) -> int:
    """A number whose encoding is as long, the same for most: who asks `size` with it finds most sizes looked up."""
    return 0 if number < _LONGER[0] else _LONGER[bisect(_LONGER, number) - 1]


@lru_cache(maxsize=65536)
def size(round: int, exchange: str, tensors: tuple[tuple[torch.dtype, tuple[int, ...]], ...], *, use: int = 0) -> int:
    """Length of the message `encode` would write, without writing it; every run id has eight characters."""
    infos = tuple(TensorInfo(_CODES[dtype], shape) for dtype, shape in tensors)
    header = msgspec.msgpack.encode(Header("00000000", round, exchange, use, infos))
    return _LENGTH.size + len(header) + sum(dtype.itemsize * prod(shape) for dtype, shape in tensors)
