"""The codecs again, one number at a time in plain Python: slow, and with nothing in common with the package's own."""

from __future__ import annotations


def top_k(values: list[float], k: int) -> list[float]:
    """Largest magnitudes stay; of equal ones, the first."""
    order = sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))
    stay = set(order[:k])
    return [value if i in stay else 0.0 for i, value in enumerate(values)]


def quantise(values: list[float], levels: int) -> list[float]:
    """Each number to the nearest of the levels, found by looking at all of them (for few levels)."""
    least, greatest = min(values), max(values)
    grid = [least + (greatest - least) * level / (levels - 1) for level in range(levels)]
    return [min(grid, key=lambda point: abs(point - value)) for value in values]


def unpack_bits(data: bytes, count: int, width: int) -> list[int]:
    """Numbers from their documented layout: whole low bytes of each first, then the high bits, lowest first."""
    whole, rest = divmod(width, 8)
    numbers = [int.from_bytes(data[i * whole : (i + 1) * whole], "little") for i in range(count)]
    stream = int.from_bytes(data[count * whole :], "little")
    return [number | ((stream >> (i * rest)) & ((1 << rest) - 1)) << (8 * whole) for i, number in enumerate(numbers)]
