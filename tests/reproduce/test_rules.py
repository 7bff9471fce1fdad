"""Every recipe's rule: numbers in the paper's favour hold, contrary ones do not, a target nobody reaches is not run."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from crosshatch.errors import RunError
from crosshatch.reproduce.all_recipes import RECIPES
from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.judging.rules import OUT_OF_REACH, Factor, below, check, judge
from crosshatch.reproduce.recipes.fedbcd.credit_demonstration import B
from tests.reproduce.made_rows import CONTRARY, FAVOURABLE, UNREACHED, Numbers, rows

IDS = list(RECIPES)


@pytest.mark.parametrize("recipe", IDS)
def test_numbers_in_the_papers_favour_hold(recipe: str) -> None:
    judged = judge(RECIPES[recipe].rules(rows(FAVOURABLE[recipe])))
    assert [one.name for one in judged.checks if one.outcome != "passes"] == []
    assert judged.verdict == "holds"


@pytest.mark.parametrize("recipe", IDS)
def test_contrary_numbers_do_not_hold(recipe: str) -> None:
    judged = judge(RECIPES[recipe].rules(rows(CONTRARY[recipe])))
    assert [one.name for one in judged.checks if one.main and one.outcome != "fails"] == []
    assert judged.verdict == "does not hold"


@pytest.mark.parametrize("recipe", IDS)
def test_what_nobody_reaches_is_not_run(recipe: str) -> None:
    judged = judge(RECIPES[recipe].rules(rows(UNREACHED[recipe])))
    assert (judged.verdict, judged.why) == ("not run", OUT_OF_REACH)


@pytest.mark.parametrize("recipe", IDS)
def test_two_seeds_are_refused(recipe: str) -> None:
    with pytest.raises(RunError, match="2 seeds, and a verdict needs 3 at least"):
        rows(FAVOURABLE[recipe], seeds=2)


def test_both_divisions_of_table_2_are_judged_where_both_were_run() -> None:
    ours = dict(FAVOURABLE["fedbcd-table2"])
    other = {(f"{setting}, {B}", what): value for (setting, what), value in CONTRARY["fedbcd-table2"].items()}
    checks = RECIPES["fedbcd-table2"].rules(rows(ours | other))
    assert {one.outcome for one in checks if B in one.words and one.main} == {"fails"}
    assert {one.outcome for one in checks if B not in one.words} == {"passes"}
    assert len(checks) == 2 * len(RECIPES["fedbcd-table2"].rules(rows(ours)))


def one_check(left: tuple[float, ...], right: tuple[float, ...], *, main: bool = True) -> object:
    made = Rows((Row("a", "rounds", left), Row("b", "rounds", right)))
    names = {"a": ("a", "rounds"), "b": ("b", "rounds")}
    return check("1", "a below b", made, names, lambda n: below(n["a"], n["b"]), main=main)


def test_true_of_the_means_and_of_two_thirds_of_the_seeds() -> None:
    outcomes = [
        getattr(one_check(left, right), "outcome")  # noqa: B009 - of an object on purpose
        for left, right in (
            ((1, 1, 9), (5, 5, 7)),  # two of three seeds, and the means
            ((1, 9, 9), (50, 5, 5)),  # the means alone
            ((1, 1, 90), (5, 5, 5)),  # two seeds, not the means
            ((1, 1, inf), (5, 5, 5)),  # one never arrives: nor does the mean
            ((5, 5, 5), (9, 9, inf)),
            ((inf, 5, 5), (inf, 9, 9)),  # two infinite means
        )
    ]
    assert outcomes == ["passes", "fails", "fails", "fails", "passes", "undecided"]


def test_seeds_are_paired() -> None:
    with pytest.raises(RunError, match="4 seeds where a has 3"):
        Rows((Row("a", "rounds", (1.0, 2.0, 3.0)), Row("b", "rounds", (1.0, 2.0, 3.0, 4.0))))


def test_some_main_checks_make_a_part() -> None:
    numbers: Numbers = {**FAVOURABLE["fedbcd-table1-lr"], ("FedBCD-s, Q = 5", "rounds to the higher AUC"): 390.0}
    assert judge(RECIPES["fedbcd-table1-lr"].rules(rows(numbers))).verdict == "holds in part"


def cnn_factors(slow: float) -> list[Factor]:
    """Of the paper's numbers, but for the rounds of FedSGD, which ran 60."""
    numbers = {**FAVOURABLE["fedbcd-table1-cnn"], ("FedSGD", "rounds that were run"): 60.0}
    papers = {key: Row(*key, (value,) * 3, value) for key, value in numbers.items()}
    slowest = replace(papers["FedSGD", "rounds"], ours=(slow,) * 3)
    return RECIPES["fedbcd-table1-cnn"].factors(Rows(tuple({**papers, ("FedSGD", "rounds"): slowest}.values())))


def test_factors_are_of_the_papers_ratio() -> None:
    found = cnn_factors(46.0)
    assert [(one.ours == one.paper, one.near) for one in found] == [(True, True)] * 2
    assert found[1].paper == pytest.approx(5.75)


def test_a_factor_of_what_was_not_reached_is_a_bound() -> None:
    found = cnn_factors(inf)
    assert [(one.ours, one.near, one.at_least) for one in found] == [(60 / 16, False, True), (60 / 8, False, True)]
