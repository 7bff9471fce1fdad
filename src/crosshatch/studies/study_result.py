"""What a study came to: every method with its costs and metrics, and the differences that a decision hangs on.

And in sentences: first what is certain, then what is not, each with its figure.
"""

from dataclasses import dataclass
from statistics import fmean

from crosshatch.report.measures import metric_title
from crosshatch.report.units import human_bytes, human_count, human_number
from crosshatch.studies.intervals import FEWEST_OF_A_CLASS, FEWEST_ROWS, Interval, JudgedMethods
from crosshatch.studies.study_course import MethodRuns

ALL_COLUMNS = "boosted trees, all columns"
YARDSTICKS = "yardsticks"  # the folder with their scores


def boosted_alone(silo: str) -> str:
    """What the yardstick on the columns of one silo is called."""
    return f"boosted trees, {silo} alone"


@dataclass(frozen=True)
class StudyResult:
    """`made` has the methods in order, those without runs too. `base` is the silo that a federation has to beat.

    It is the one with the labels or, where all have them, the one that was best alone on the validation rows; `metric`
    is the one that sentences speak of, `higher` whether more of it is better; `without` says which yardsticks there
    are not, and why.
    """

    made: tuple[MethodRuns, ...]
    judged: JudgedMethods
    metrics: tuple[str, ...]
    metric: str
    higher: bool
    base: str
    others: tuple[str, ...]
    seeds: int
    validation_rows: int
    validation_added: bool
    chosen_by: str
    without: tuple[str, ...] = ()

    @property
    def federation(self) -> MethodRuns:
        """The config's own method."""
        return self.made[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """All that was judged, yardsticks last."""
        return tuple(self.judged.values)

    def made_by(self, name: str) -> MethodRuns | None:
        """The runs of a method; None of a yardstick."""
        return next((one for one in self.made if one.method.name == name), None)

    def gain(self, one: str, other: str) -> Interval | None:
        """How much better the one is than the other; None where one of them came to nothing."""
        if one not in self.judged.values or other not in self.judged.values:
            return None
        found = self.judged.difference(one, other, self.metric)
        return found if self.higher else -found

    def contribution(self, silo: str) -> Interval | None:
        """How much worse the federation is when a silo's rows are shuffled."""
        found = self.judged.loses(self.federation.method.name, silo, self.metric)
        return found if found is None or self.higher else -found

    @property
    def silos(self) -> tuple[str, ...]:
        """Those whose contribution is known."""
        return tuple(self.judged.lost.get(self.federation.method.name, {}))


def cost(made: MethodRuns, key: str) -> float:
    """Round, bytes or simulated seconds up to the round that was chosen, or the wall time of all; mean over seeds."""
    return fmean((run.summary if key == "wall_seconds" else run.summary["best_round"])[key] for run in made.runs)


_TOO_FEW = (
    f" Of fewer than {FEWEST_ROWS} test rows, or fewer than {FEWEST_OF_A_CLASS} of a class, intervals are too narrow "
    "to be believed: no difference counts as shown."
)


@dataclass(frozen=True)
class Conclusion:
    """`headline`: whether the columns of the others are worth anything. `certain`, `uncertain` and `how` follow it."""

    headline: str
    certain: tuple[str, ...]
    uncertain: tuple[str, ...]
    how: str


def verdict(result: StudyResult) -> Conclusion:
    """Of a study that is done."""
    own, base = result.federation.method.name, f"{result.base} alone"
    said: list[tuple[str, bool]] = []
    joint = result.gain("central", base)
    missing = next((name for name in ("central", base) if name not in result.names), "")
    headline = (
        f"What the columns of {' and '.join(result.others)} add cannot be told: {missing} was not compared"
        if joint is None
        else _worth(result, joint)
    )
    for one, other, phrase in (
        (own, base, f"{own} is {{}} {base}"),
        (own, "central", f"{own} ends {{}} central, which has all columns in one place"),
        (own, "fedsgd", f"{own} ends {{}} FedSGD"),
        (own, boosted_alone(result.base), f"{own} is {{}} {boosted_alone(result.base)}"),
        ("central", ALL_COLUMNS, f"central, this model on all columns, is {{}} {ALL_COLUMNS}"),
    ):
        found = result.gain(one, other) if one != other else None
        if found is not None:
            said.append((phrase.format(_apart(result, found)) + _sure(found), found.shown))
    made, plain = result.federation, next((made for made in result.made if made.method.kind == "fedsgd"), None)
    if made.runs:  # what both send up to the rounds that were chosen for them
        besides = f", FedSGD {_spent(plain)}" if plain is not None and plain.runs else ""
        said.append((f"{own} takes {_spent(made)}{besides}", True))
    failed = tuple(f"{made.method.name} was not compared, {made.why}." for made in result.made if made.why)
    failed += tuple(f"{why}." for why in result.without)
    for silo in result.silos:
        if (found := result.contribution(silo)) is not None:
            size = f"{_number(found.value)} {metric_title(result.metric)}" if found.value >= 0 else "nothing"
            said.append((f"{own} loses {size} when {silo}'s rows are shuffled{_sure(found)}", found.shown))
    certain = tuple(f"{text}." for text, sure in said if sure)
    uncertain = tuple(f"{text}." for text, sure in said if not sure)
    return Conclusion(headline, certain, (*uncertain, *failed), _how(result))


def _worth(result: StudyResult, joint: Interval) -> str:
    title = metric_title(result.metric)
    whose = f"the columns of {' and '.join(result.others)}"
    if joint.shown and joint.low > 0:
        more = f"{_number(joint.low)} to {_number(joint.high)} {title}"
        return f"T{whose[1:]} add {more} to what {result.base} has alone"
    if joint.shown:
        less = f"{_number(-joint.high)} to {_number(-joint.low)} {title} less than {result.base} has alone"
        return f"With {whose} there is {less}"
    return (
        f"It is not shown that {whose} add anything to what {result.base} has alone: the difference in {title} is "
        f"{_range(joint)}"
    )


def _apart(result: StudyResult, found: Interval) -> str:
    title = metric_title(result.metric)
    size = f"{_number(abs(found.value))} {title}"
    if found.value == 0:
        return "level with"
    return f"{size} {'better' if found.value > 0 else 'worse'} than"


def _sure(found: Interval) -> str:
    return f" ({_range(found)})" if found.shown else f", not shown to differ ({_range(found)})"


def _spent(made: MethodRuns) -> str:
    return f"{human_count(cost(made, 'round'))} rounds and {human_bytes(cost(made, 'bytes'))}"


def _how(result: StudyResult) -> str:
    added = ", which the study put aside" if result.validation_added else ""
    first = " with the first seed" if result.seeds > 1 else ""
    return (
        f"All were trained and tested on the same rows. Step sizes were chosen{first}, and rounds with each seed, by "
        f"{result.chosen_by} on {human_count(result.validation_rows)} validation rows{added}. Intervals hold 95% of "
        f"{human_count(result.judged.draws)} draws of the {human_count(result.judged.rows)} test rows with "
        f"replacement, the same for all, of the mean over {result.seeds} seed{'s' if result.seeds > 1 else ''}; "
        f"other training rows are not in them.{'' if result.judged.enough else _TOO_FEW}"
    )


def _range(found: Interval) -> str:
    return f"{_signed(found.low)} to {_signed(found.high)}"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{_number(abs(value))}"


def _number(value: float) -> str:
    """Three decimals of what lies between 0 and 1, as is usual for these, one digit of less; else four digits.

    >>> _number(0.0441), _number(0.00012), _number(12.3456)
    ('0.044', '0.0001', '12.35')
    """
    if value >= 1:
        return human_number(value)
    return f"{value:.3f}" if value == 0 or value >= 0.0005 else f"{value:.0e}" if value < 1e-5 else f"{value:.1g}"
