"""Views that misled once: a rule each, on runs made to mislead."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from crosshatch.report.compare import find_arrival
from crosshatch.report.findings import AXES, level_all_reach, target_finding
from crosshatch.report.measures import Target, parse_target
from crosshatch.report.page import write_report
from crosshatch.report.page_tables import difference_table
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.runs import Run, read_runs
from tests.support.client_spreads import silos, spread

ROUND, BYTES = AXES[0], AXES[1]
TARGET = parse_target("auc=0.8")


def write(
    folder: Path, name: str, values: list[float], *, noise: float | None = None, seed: int = 0, **more: object
) -> Path:
    """A run with these AUCs, a round and a kilobyte each."""
    path = folder / name
    path.mkdir()
    rows = [{"round": r, "bytes": 1000 * r, "sim_seconds": float(r), "auc": auc} for r, auc in enumerate(values)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = {"name": name, "rounds": len(values) - 1, "test_rows": 94} | more
    summary |= {} if noise is None else {"noise": {"auc": noise}}
    (path / "summary.json").write_text(json.dumps(summary))
    (path / "config.toml").write_text(f'[algorithm]\nname = "{name.split("-")[0]}"\n[run]\nseed = {seed}\n')
    return path


def page(folder: Path, runs: list[Run]) -> str:
    write_report(runs, folder / "report.html")
    return (folder / "report.html").read_text()


def test_a_curve_by_itself_is_drawn_whole(tmp_path: Path) -> None:
    (run,) = read_runs([write(tmp_path, "jfl", [0.75, 0.77, 0.7, 0.65], noise=0.03)])
    text = page(tmp_path, [run])
    assert "where curves differ" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


@pytest.mark.parametrize(("noise", "said"), [(0.001, True), (0.05, False)])
def test_a_headline_needs_a_difference_beyond_the_noise(tmp_path: Path, noise: float, said: bool) -> None:
    """The one touches the target at round 2, the other at 4; a little above it they change places."""
    quick = write(tmp_path, "tdcd", [0.5, 0.7, 0.801, 0.801, 0.802, 0.803, 0.87], noise=noise)
    slow = write(tmp_path, "fedsgd", [0.5, 0.6, 0.7, 0.78, 0.84, 0.86, 0.87], noise=noise)
    found = target_finding(read_runs([quick, slow]), TARGET, BYTES)
    assert ("less than fedsgd" in found) == said
    assert ("within the noise" in found) == (not said)


def test_the_factor_stands_with_its_range(tmp_path: Path) -> None:
    quick = write(tmp_path, "tdcd", [0.5, 0.75, 0.85, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9], noise=0.04)
    slow = write(tmp_path, "fedsgd", [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.78, 0.81, 0.9], noise=0.04)
    found = target_finding(read_runs([quick, slow]), TARGET, BYTES)
    assert found == "tdcd reaches AUC 0.8 with 2 kB, 4x less than fedsgd (3x to 4x within the noise)"


def test_what_nobody_looked_at_is_no_headline(tmp_path: Path) -> None:
    """The one is looked at after every round, the other after ten: it may have been there as soon."""
    quick = write(tmp_path, "tdcd", [0.5, 0.9, 0.9])
    slow = write(tmp_path, "fedsgd", [0.5, 0.9])
    rows = [{"round": 10 * r, "bytes": 10_000 * r, "sim_seconds": 10.0 * r, "auc": 0.5 + 0.4 * r} for r in range(2)]
    (slow / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "less than" not in target_finding(read_runs([quick, slow]), TARGET, BYTES)


def test_seeds_that_overlap_are_no_headline(tmp_path: Path) -> None:
    quick = [write(tmp_path, f"tdcd-{s}", [0.5] * s + [0.9] * (9 - s), seed=s) for s in (1, 2, 6)]
    slow = [write(tmp_path, f"fedsgd-{s}", [0.5] * s + [0.9] * (9 - s), seed=s) for s in (4, 5, 7)]
    runs = pool_seeds(read_runs([*quick, *slow]))
    assert "a difference within the noise" in target_finding(runs, TARGET, BYTES)
    apart = pool_seeds(read_runs([*quick[:2], *slow[:2]]))
    assert "less than fedsgd" in target_finding(apart, TARGET, BYTES)


def test_titles_speak_of_curves(tmp_path: Path) -> None:
    """A point of a sweep has a run for each seed: neither it nor their mean is called a run."""
    paths = [write(tmp_path, f"{name}-{seed}", [0.5, 0.9], seed=seed) for name in ("tdcd", "jfl") for seed in (1, 2)]
    runs = pool_seeds(read_runs([*paths, write(tmp_path, "never", [0.5, 0.55])]))
    assert target_finding(runs, TARGET, ROUND) == "2 curves reach AUC 0.8 in 1 round; never does not"


def test_a_level_that_was_there_before_the_first_round_tells_nothing(tmp_path: Path) -> None:
    runs = read_runs([write(tmp_path, "tdcd", [0.5, 0.9]), write(tmp_path, "bad", [0.45, 0.47])])
    assert level_all_reach(runs, "auc") is None


def test_nothing_called_best_is_chosen_on_test_rows(tmp_path: Path) -> None:
    chosen = {"by": "validation_auc", "round": 3, "auc": 0.7512}
    runs = read_runs([
        write(tmp_path, "tdcd", [0.5, 0.8765, 0.8, 0.7512, 0.7], best_round=chosen),
        write(tmp_path, "fedsgd", [0.5, 0.8, 0.8, 0.7, 0.7], best_round=chosen),
    ])  # fmt: skip
    text = re.sub(r"<(script|style).*?</\1>", "", page(tmp_path, runs), flags=re.DOTALL)
    assert "0.8765" not in text  # its highest on the test rows
    assert "<span>chosen</span> 0.7512" in text
    assert "<span>chosen</span> 3" in text
    said = re.sub(r"<[^>]*>|best_model|best on the validation rows", " ", text)
    assert not re.search(r"\bbest\b", said)


def test_equal_rows_are_one(tmp_path: Path) -> None:
    paths = [write(tmp_path, f"tdcd-{s}", [0.5, 0.9], seed=s, threads=1, precision="float32") for s in range(12)]
    text = page(tmp_path, read_runs(paths))
    table = text.split("How it was run")[1].split("</table>")[0]
    assert table.count("<tr>") == 2
    assert "12 runs" in table


def test_cells_know_their_headings(tmp_path: Path) -> None:
    """On a narrow screen a row is a list, and nothing is cut."""
    clients = silos(auc=spread(0.7, 0.9))
    paths = [write(tmp_path, "tdcd", [0.5, 0.9], per_client=clients), write(tmp_path, "fedsgd", [0.5, 0.8])]
    text = page(tmp_path, read_runs(paths))
    assert "How clients differ" in text
    cells = re.findall(r"<td([^>]*)>", text)
    assert cells
    assert all("data-label=" in cell for cell in cells)


def test_bytes_that_all_went_one_way_are_no_picture(tmp_path: Path) -> None:
    one_way = write(tmp_path, "tdcd", [0.5, 0.9], bytes_by_link={"hub-hub across": {"bytes": 5, "messages": 2}})
    assert "Where the bytes went" not in page(tmp_path, read_runs([one_way]))
    both = {"client-hub up": {"bytes": 5}, "client-hub down": {"bytes": 7}}
    assert "Where the bytes went" in page(tmp_path, read_runs([write(tmp_path, "jfl", [0.5, 0.9], bytes_by_link=both)]))


def test_series_are_named_by_the_user_or_by_what_differs(tmp_path: Path) -> None:
    one, other = write(tmp_path, "tdcd", [0.5, 0.9]), write(tmp_path, "x", [0.5, 0.8])
    runs = read_runs([f"with the bank={one}", f"alone={other}"])
    assert [run.name for run in runs] == ["with the bank", "alone"]
    for path, steps in ((one, 1), (other, 5)):
        (path / "summary.json").write_text("{}".replace("{}", '{"name": "same"}'))
        (path / "config.toml").write_text(f"[algorithm]\nlocal_steps = {steps}\n")
    assert [run.name for run in read_runs([one, other])] == ["same (local_steps=1)", "same (local_steps=5)"]


def test_a_curve_that_touched_a_level_once_has_not_come_to_it(tmp_path: Path) -> None:
    """Where nobody names a target the page takes the level that all come to, by the mean of three evaluations."""
    once = write(tmp_path, "tdcd", [0.5, 0.6, 0.85, 0.6, 0.6, 0.7, 0.7, 0.7, 0.7], noise=0.01)
    slowly = write(tmp_path, "fedsgd", [0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9, 0.9, 0.9], noise=0.01)
    runs = read_runs([once, slowly])
    level = level_all_reach(runs, "auc")
    assert level is not None
    assert level.value == pytest.approx(0.7)  # not 0.85
    assert find_arrival(runs[0], level).round == 7  # type: ignore[union-attr]
    assert find_arrival(runs[1], level).round == 5  # type: ignore[union-attr]
    assert "at the mean of 3 evaluations" in page(tmp_path, runs)


def test_few_evaluations_are_taken_as_they_are(tmp_path: Path) -> None:
    runs = read_runs([write(tmp_path, "tdcd", [0.5, 0.7, 0.9]), write(tmp_path, "fedsgd", [0.5, 0.6, 0.8])])
    assert level_all_reach(runs, "auc") == Target("auc", 0.8, higher=True)


def test_what_one_silo_has_alone_is_no_level_for_federations(tmp_path: Path) -> None:
    """As on the page of a study, whose yardsticks are trained in one place."""
    alone = write(tmp_path, "central", [0.5, 0.55, 0.6], noise=0.001)
    quick = write(tmp_path, "tdcd", [0.5, 0.8, 0.9], noise=0.001)
    slow = write(tmp_path, "fedsgd", [0.5, 0.6, 0.85], noise=0.001)
    runs = read_runs([alone, quick, slow])
    assert level_all_reach(runs, "auc") == Target("auc", 0.85, higher=True)
    assert level_all_reach(runs[:2], "auc") == Target("auc", 0.6, higher=True)


def test_many_settings_of_few_runs_stand_below_each_other(tmp_path: Path) -> None:
    paths = [write(tmp_path, name, [0.5, 0.7]) for name in ("tdcd", "fedsgd")]
    for number, path in enumerate(paths):
        (path / "config.toml").write_text("[model]\n" + "".join(f"key{k} = {10 * k + number}\n" for k in range(7)))
    table = difference_table(read_runs(paths))
    assert table.count("<tr>") == 8  # a line per setting, and the names above
    assert "<th><code>model.key6</code></th>" in table
    assert re.findall(r"<td[^>]*>(\d+)</td>", table) == [str(10 * k + number) for k in range(7) for number in (0, 1)]
