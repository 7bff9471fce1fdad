"""One more value beyond an edge of those tried, where the edge was best: what lies beyond may be better still."""

from collections.abc import Sequence
from dataclasses import replace

from crosshatch.errors import ConfigError, CrosshatchError
from crosshatch.sweeps.course import SweepOutcome
from crosshatch.sweeps.grid import Axis, point_names
from crosshatch.sweeps.sweep import LACKING, Point, Sweep


def beyond(values: Sequence[str], chosen: str) -> str | None:
    """The value that goes on where the chosen one is the least or the largest of positive numbers; None where not.

    It is as many times the edge as that is of its neighbour.

    >>> beyond(["0.1", "0.3", "1"], "1"), beyond(["0.1", "0.3", "1"], "0.3"), beyond(["5", "10"], "10")
    ('3.3', None, '20')
    """
    try:
        numbers = sorted(float(value) for value in values)
        at = float(chosen)
    except ValueError:
        return None
    if len(numbers) < 2 or numbers[0] <= 0 or at not in (numbers[0], numbers[-1]):
        return None
    edge, neighbour = (numbers[0], numbers[1]) if at == numbers[0] else (numbers[-1], numbers[-2])
    further = edge * edge / neighbour
    if all(value.strip().isdecimal() for value in values):
        return None if round(further) in (0, *numbers) else str(round(further))
    return f"{further:.2g}"


MOST_TIMES = 20


def require_edges(sweep: Sweep, times: int) -> None:
    """Refuse to widen too often, what is halved, or what has no edge: names, or a single number."""
    if not 0 <= times <= MOST_TIMES:
        raise ConfigError(f"--widen {times}: at least 0 and at most {MOST_TIMES}")
    if times and sweep.halving:
        raise ConfigError("--widen tries values beyond those that won, and --halving ends losers early: leave one out")
    own = sweep.axes[: sweep.single]
    if times and not any(beyond(axis.values, value) for axis in own for value in axis.values):
        raise ConfigError(
            f"--widen {times} goes on beyond the least or the largest of the numbers of a --grid, and no setting of "
            "this one has two positive numbers: give some, or leave --widen out"
        )


def widened(sweep: Sweep, outcome: SweepOutcome) -> Sweep | None:
    """The sweep with one more point for each setting at whose edge the chosen point is; None where there is none."""
    best = outcome.best
    if best is None or sweep.config_at is None:
        return None
    known = {point.values for point in sweep.points}
    axes, further = list(sweep.axes), []
    for place, axis in enumerate(sweep.axes[: sweep.single]):
        tried = dict.fromkeys(point.values[place] for point in sweep.points)
        value = beyond([one for one in tried if one != LACKING], best.point.values[place])
        if value is None:
            continue
        values = tuple(value if at == place else one for at, one in enumerate(best.point.values))
        if values not in known:
            axes[place] = Axis(axis.key, (*axis.values, value))
            further.append(values)
    if not further:
        return None
    made = []
    for name, values in zip(point_names(sweep.axes, further), further, strict=True):
        try:
            made.append(Point(name, values, sweep.config_at(values)))
        except CrosshatchError as error:
            made.append(Point(name, values, None, str(error)))
    return replace(sweep, axes=tuple(axes), points=(*sweep.points, *made))
