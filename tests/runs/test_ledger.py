"""Runs that count what they tell of labels: by hand, added up, resumed, on another split, in clear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crosshatch import read_config, read_run, write_report
from crosshatch.cli import main
from crosshatch.errors import ConfigError
from crosshatch.runs.planning.plan import make_plan
from tests.support.ledgers import CONFIG, leakage, table

THREE = CONFIG.replace('{ name = "b"', '{ name = "c", columns = ["kind"] }, { name = "b"')
TRANSFER = CONFIG.replace('labels = "b"', 'labels = "b"\ncommon = 1200').replace(
    "[algorithm]", '[model]\nfusion = "transfer"\nloss = "taylor_logistic"\noutputs = 3\n[algorithm]'
)
ACCEPT = "privacy.accept_leakage=true"


@pytest.mark.parametrize(
    ("text", "changes", "silos", "equations"),
    [
        # 1,600 rows are three batches of 533 or 534; four columns and a bias each
        (CONFIG, [], {"a": (5, 3)}, 15),
        (CONFIG, ["algorithm.batch_size=801"], {"a": (5, 1)}, 5),
        # another silo with the two values of one column, and a bias
        (THREE, [], {"a": (5, 3), "c": (3, 3)}, 24),
        # three classes: three outputs, each with four columns and a bias
        (CONFIG, ["data.label=three"], {"a": (15, 3)}, 45),
        # samples drawn anew in four rounds: 4 x 5, whatever the batch
        (CONFIG, ["algorithm.draw=anew", ACCEPT], {"a": (20, 1)}, 20),
        # transfer, one layer: four columns and a bias in two batches of 600
        (TRANSFER, [], {"a": (5, 2)}, 10),
        # two hidden units: 2 x 5 + 3 sums in each of two steps, four rounds on two batches are two per batch
        (TRANSFER, ["model.block=mlp", "model.hidden=[2]", ACCEPT], {"a": (52, 2)}, 104),
        # the same with as many rounds as batches stays below one per 16 of 1,200, but not with 16 rows per sum
        (TRANSFER, ["model.block=mlp", "model.hidden=[1]", "run.rounds=2"], {"a": (14, 2)}, 28),
    ],
)
def test_equations_by_hand(
    text: str, changes: list[str], silos: dict[str, tuple[int, int]], equations: int, tmp_path: Path
) -> None:
    found = leakage(tmp_path, "run", *changes, text=text)
    assert {name: (one["sums_per_batch"], one["batches"]) for name, one in found["silos"].items()} == silos
    assert found["equations"] == found["with_all_runs"] == equations
    assert (found["before"], found["in_clear"], found["accepted"]) == (0, False, ACCEPT in changes)
    assert found["most"] == found["labels"] // 16


def test_numbers_that_the_holder_reads(tmp_path: Path) -> None:
    """Whatever rows a silo sends: five per round; in a transfer all 19 parameters in each of two steps."""
    assert leakage(tmp_path, "run")["silos"]["a"]["numbers_read"] == 5 * 4
    two = leakage(tmp_path, "two", "model.block=mlp", "model.hidden=[2]", ACCEPT, "run.rounds=3", text=TRANSFER)
    assert two["silos"]["a"]["numbers_read"] == (2 * 5 + 3 * 3) * 2 * 3


def test_the_holder_says_how_often_it_reads_a_batch_and_refuses_more(tmp_path: Path) -> None:
    """Four rounds on three batches: one of these twice; in a transfer of two batches twice, in each of two steps."""
    assert leakage(tmp_path, "run", "privacy.reads_per_batch=2")["silos"]["a"]["reads_per_batch"] == 2
    with pytest.raises(ConfigError, match=r"reads_per_batch = 1: 4 rounds on 3 batches read 2 gradients of a batch"):
        leakage(tmp_path, "more", "privacy.reads_per_batch=1", ACCEPT)
    changes = ["model.block=mlp", "model.hidden=[2]", ACCEPT]
    assert leakage(tmp_path, "two", *changes, text=TRANSFER)["silos"]["a"]["reads_per_batch"] == 4


def test_runs_add_up_and_the_same_division_does_not(tmp_path: Path) -> None:
    """15 equations; the same again with other weights and rounds; 5 of all rows; 10 of two batches."""
    totals = [
        leakage(tmp_path, str(number), *changes)["with_all_runs"]
        for number, changes in enumerate(
            [
                [],
                ["run.rounds=6", "algorithm.step_size=0.3", "algorithm.local_steps=4"],
                ["algorithm.batch_size=1600"],
                ["algorithm.batch_size=800"],
            ]
        )
    ]
    assert totals == [15, 15, 20, 30]
    seeds = {read_config(tmp_path / name / "config.toml").algorithm.division_seed for name in "023"}
    assert len(seeds) == 1
    lines = (tmp_path / "labels.ledger").read_text().splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert [kind for kind in kinds if kind != "read"] == ["division", "given", "given", "given"]
    assert kinds.count("read") == 4 + 6 + 4 + 4


def test_a_sweep_adds_up_and_what_is_beyond_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """100 equations may be given of 1,600 labels: 15 + 10 + 5 are, and 75 more under new divisions are not."""
    table(tmp_path)
    (tmp_path / "one.toml").write_text(CONFIG)
    sets = [
        "--grid",
        "algorithm.batch_size=512,800,1600",
        "--jobs",
        "1",
        "--choose",
        "last train_loss",
        "--out",
        str(tmp_path / "sweep"),
    ]
    with pytest.raises(SystemExit, match="0"):
        main(["sweep", str(tmp_path / "one.toml"), *sets, "--quiet"])
    assert leakage(tmp_path, "after")["before"] == 30
    for seed in range(1, 5):
        assert leakage(tmp_path, f"seed {seed}", f"algorithm.division_seed={seed}")["equations"] == 15
    before = (tmp_path / "labels.ledger").read_bytes()
    capsys.readouterr()
    more = ["--set", "algorithm.division_seed=5", "--out", str(tmp_path / "more"), "--quiet"]
    with pytest.raises(SystemExit) as ended:
        main(["train", str(tmp_path / "one.toml"), *more])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert (
        "with this run 105 equations about 1600 labels would be given away, 90 of them before it, at most 100" in said
    )
    assert "privacy.accept_leakage = true" in said
    assert (tmp_path / "labels.ledger").read_bytes() == before
    assert not (tmp_path / "more").exists()
    accepted = leakage(tmp_path, "more", "algorithm.division_seed=5", ACCEPT)
    assert (accepted["with_all_runs"], accepted["too_many"], accepted["accepted"]) == (105, True, True)


def test_a_resumed_run_is_not_counted_twice(tmp_path: Path) -> None:
    text = TRANSFER.replace("loss =", 'block = "mlp"\nhidden = [2]\nloss =')
    assert leakage(tmp_path, "run", ACCEPT, "run.rounds=2", text=text)["equations"] == 52
    again = leakage(tmp_path, "again", ACCEPT, "run.rounds=2", text=text)
    assert (again["before"], again["with_all_runs"]) == (52, 52)  # the same numbers
    longer = leakage(tmp_path, "run", ACCEPT, text=text, resume=True)
    assert (longer["before"], longer["with_all_runs"]) == (52, 104)


def test_a_crash_after_the_ledger_was_written_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("crosshatch.runs.train._run", crash)
        with pytest.raises(KeyboardInterrupt):
            leakage(tmp_path, "crashed")
    found = leakage(tmp_path, "again")
    assert (found["before"], found["with_all_runs"]) == (15, 15)


@pytest.mark.parametrize("changes", [["data.split_seed=3"], ["data.split_seed=3", "data.leave_out=['c5', 'kind']"]])
@pytest.mark.parametrize("ids", [True, False])
def test_another_split_of_the_same_rows_is_noticed(changes: list[str], ids: bool, tmp_path: Path) -> None:
    text = (
        CONFIG.replace("[federation]", 'leave_out = ["kind"]\n[federation]') if "leave_out" in changes[-1] else CONFIG
    )
    text = text if ids else text.replace('id = "id"\n', "")
    if len(changes) > 1:
        text = text.replace('"c4", "c5"', '"c4"')
    leakage(tmp_path, "first", text=text)
    found = leakage(tmp_path, "second", *changes, text=text)
    assert found["before"] == 15  # every batch has rows that are in both
    assert found["with_all_runs"] == 30


def test_rows_that_are_taken_out_afterwards_would_be_told(tmp_path: Path) -> None:
    """The sums over all 1,500 rows, less those over all but one."""
    table(tmp_path)
    header, *rows = (tmp_path / "table.csv").read_text().splitlines()
    (tmp_path / "test.csv").write_text("\n".join([header, *rows[1500:]]))
    (tmp_path / "table.csv").write_text("\n".join([header, *rows[:1500]]))
    text = CONFIG.replace("[federation]", 'test_path = "test.csv"\n[federation]')
    leakage(tmp_path, "first", text=text)
    (tmp_path / "table.csv").write_text("\n".join([header, *rows[:77], *rows[78:1500]]))
    with pytest.raises(ConfigError, match="1 rows are in this run and not in an earlier one, or the other way round"):
        leakage(tmp_path, "second", text=text)
    assert leakage(tmp_path, "second", ACCEPT, text=text)["before"] == 10


def test_a_run_in_clear_gives_all_labels(tmp_path: Path) -> None:
    clear = ["privacy.encryption=none"]
    text = CONFIG.replace("[privacy.seconds]\nencrypt = 0.001\n", "")
    with pytest.raises(ConfigError, match="with this run 1600 equations about 1600 labels would be given away"):
        leakage(tmp_path, "refused", *clear, text=text)
    found = leakage(tmp_path, "clear", *clear, ACCEPT, text=text)
    assert (found["in_clear"], found["equations"], found["with_all_runs"]) == (True, 1600, 1600)
    with pytest.raises(ConfigError, match="an earlier run had them in clear, use other labels"):
        leakage(tmp_path, "encrypted")
    shared = text.replace('labels = "b"', 'labels = "shared"')
    with pytest.raises(ConfigError, match=r"privacy.ledger = .* here everybody has them"):
        leakage(tmp_path, "shared", *clear, text=shared)


def test_a_row_that_is_alone_is_named_and_left_out_for_good(tmp_path: Path) -> None:
    table(tmp_path, rare=(11,))
    text = CONFIG.replace('"c3"]', '"c3", "kind"]').replace("[federation]", "split_seed = 1\n[federation]")
    found = leakage(tmp_path, "run", text=text)
    assert (found["left_out"], found["rows_left_out"], found["labels"]) == (["id 11"], 1, 1599)
    again = leakage(tmp_path, "again", text=text)
    assert (again["left_out"], again["with_all_runs"]) == (["id 11"], found["equations"])
    without = leakage(tmp_path, "without", text=CONFIG.replace("[federation]", "split_seed = 1\n[federation]"))
    assert without["left_out"] == ["id 11"]  # sums with it and without it would tell its label


def test_plans_and_reports_show_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leakage(tmp_path, "first")
    before = (tmp_path / "labels.ledger").read_bytes()
    plan = make_plan(read_config(tmp_path / "one.toml", ["algorithm.batch_size=800"]))
    assert plan.leakage is not None
    assert (plan.leakage["equations"], plan.leakage["before"], plan.leakage["with_all_runs"]) == (10, 15, 25)
    with pytest.raises(SystemExit, match="0"):
        main(["plan", str(tmp_path / "one.toml")])
    said = " ".join(capsys.readouterr().out.split())
    assert "Labels: this run gives 15 equations about 1,600 labels, 15 with all runs before, at most 100" in said
    assert (tmp_path / "labels.ledger").read_bytes() == before
    write_report([read_run(tmp_path / "first")], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "What was told of labels" in page
    assert "leakage accepted" not in page


def test_without_a_ledger_the_run_counts_itself(tmp_path: Path) -> None:
    text = CONFIG.replace('ledger = "labels.ledger"\n', "")
    found = leakage(tmp_path, "run", text=text)
    assert (found["equations"], found["before"], "ledger" in found) == (15, 0, False)
    with pytest.raises(ConfigError, match=r"privacy.encryption: with this run 336 equations about 1200 labels"):
        leakage(
            tmp_path,
            "many",
            "model.block=mlp",
            "model.hidden=[1]",
            "run.rounds=24",
            text=TRANSFER.replace('ledger = "labels.ledger"\n', ""),
        )
    assert not (tmp_path / "labels.ledger").exists()


def test_a_check_counts_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table(tmp_path)
    (tmp_path / "one.toml").write_text(CONFIG)
    with pytest.raises(SystemExit, match="0"):
        main(["check", str(tmp_path / "one.toml")])
    assert not (tmp_path / "labels.ledger").exists()
    assert "error" not in capsys.readouterr().err
