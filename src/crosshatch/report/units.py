"""Bytes, seconds, counts and measured values as people read them."""

import math
from collections.abc import Callable, Mapping, Sequence

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def three_digits(value: float) -> str:
    """Three significant digits without an exponent or trailing zeros; all digits of larger whole parts.

    >>> three_digits(3.14159), three_digits(20.04), three_digits(1234.5)
    ('3.14', '20', '1234')
    """
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def human_bytes(count: float) -> str:
    """Decimal units, as networks are sold: 1 kB is 1000 B.

    >>> human_bytes(0), human_bytes(3_140_000), human_bytes(999_999)
    ('0 B', '3.14 MB', '1 MB')
    """
    value = float(count)
    for prefix in _PREFIXES:
        # 999.6 would be written as 1000: it belongs to the next unit
        if abs(value) < 999.5 or prefix == _PREFIXES[-1]:
            return f"{three_digits(value) if prefix else round(value)} {prefix}B"
        value /= 1000
    raise AssertionError("the last unit takes everything")


def human_seconds(seconds: float) -> str:
    """
    >>> human_seconds(0.0123), human_seconds(42), human_seconds(200), human_seconds(7500), human_seconds(100_000)
    ('12.3 ms', '42 s', '3 min 20 s', '2 h 05 min', '1 d 4 h')
    >>> human_seconds(1e11), human_seconds(1e30)
    ('3,169 years', '3.17e+22 years')
    """
    if not math.isfinite(seconds):
        return human_number(seconds)
    if seconds == 0:
        return "0 s"
    if seconds < 0.9995:
        return f"{three_digits(seconds * 1000)} ms"
    if seconds < 59.95:
        return f"{three_digits(seconds)} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(seconds / 3600)
    if hours < 10_000 * 24:
        return f"{hours // 24} d {hours % 24} h"
    years = seconds / (365.25 * 86_400)
    return f"{years:.3g} years" if years >= 1e6 else f"{round(years):,} years"


def human_count(count: float) -> str:
    """
    >>> human_count(1234567)
    '1,234,567'
    """
    return f"{round(count):,}" if math.isfinite(count) else human_number(count)


def human_number(value: float) -> str:
    """A measured value with four significant digits.

    >>> human_number(0.78125), human_number(12.0), human_number(float("nan"))
    ('0.7812', '12', 'not a number')
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    return f"{value:.4g}"


def human_factor(factor: float) -> str:
    """How many times as much, for sentences; one decimal only where it matters.

    >>> human_factor(1.44), human_factor(9.3), human_factor(1530.2)
    ('1.4x', '9x', '1,530x')
    """
    return f"{three_digits(round(factor, 1))}x" if factor < 2.95 else f"{round(factor):,}x"


def with_deviation(value: float, deviation: float | None) -> str:
    """A mean, and how far its values lie from it; the deviation with two digits. None: a single value.

    >>> with_deviation(0.78125, 0.01234), with_deviation(0.78125, None)
    ('0.7812 \N{PLUS-MINUS SIGN} 0.012', '0.7812')
    """
    return human_number(value) + ("" if deviation is None else f" \N{PLUS-MINUS SIGN} {deviation:.2g}")


def human_range(words: Callable[[float], str], values: Sequence[float]) -> tuple[str, str] | None:
    """From where to where values go, in `words`; None where there is nothing between.

    >>> human_range(human_bytes, [4e6, 1e6, 2e6]), human_range(human_bytes, [1e6, 1e6]), human_range(human_bytes, [])
    (('1 MB', '4 MB'), None, None)
    """
    return (words(min(values)), words(max(values))) if len(set(values)) > 1 else None


def workers_line(workers: Mapping[str, float]) -> str:
    """How many workers there were, and how the time of a run was spent.

    >>> workers_line({"workers": 2, "threads": 1, "computing": 6.0, "waiting": 0.5, "moving": 1.0, "driver": 1.0})
    '2 workers with 1 thread each: 75% computing (6% waiting for the slowest), 12% moving, 12% driver'
    """
    spent = {name: workers.get(name, 0.0) for name in ("computing", "moving", "driver")}
    share = {name: f"{seconds / max(1e-9, sum(spent.values())):.0%}" for name, seconds in spent.items()}
    waiting = f"{workers.get('waiting', 0.0) / max(1e-9, sum(spent.values())):.0%}"
    count, threads = int(workers.get("workers", 0)), int(workers.get("threads", 1))
    who = f"{count} {'worker' if count == 1 else 'workers'}" if count else "pieces in this process"
    return (
        f"{who} with {threads} {'thread' if threads == 1 else 'threads'}{' each' if count > 1 else ''}: "
        f"{share['computing']} computing ({waiting} waiting for the slowest), {share['moving']} moving, "
        f"{share['driver']} driver"
    )
