"""Equations about labels, counted by hand; rows that are alone; a ledger that was cut, changed or is in use."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from crosshatch.data.identity.owner_key import OwnerKey
from crosshatch.errors import ConfigError
from crosshatch.privacy.leakage.equations import GivenEquations, Telling, closest, count
from crosshatch.privacy.leakage.ledger_file import open_ledger, same_training_rows
from crosshatch.privacy.leakage.lone_rows import leverages, lone_rows, rows_to_keep
from crosshatch.privacy.leakage.row_keys import RowKeys
from crosshatch.protocol.batches import divide
from tests.architecture.modules import ROOT

KEY, OTHER = OwnerKey(bytes(32)), OwnerKey(b"1" * 32)


def keys(numbers: list[int] | range, labels: str = "y") -> RowKeys:
    """Rows that are known by their places, and by values of their own."""
    found = np.array(list(numbers), dtype=np.uint64)
    return RowKeys(labels, {"place": found, "values": found + np.uint64(10**6)})


def run(rows: RowKeys, batches: int, *told: Telling, clear: bool = False) -> GivenEquations:
    batch_of = (np.arange(len(rows)) % batches).astype(np.uint32)
    return GivenEquations(rows, batch_of, told or (Telling("a", "x", 7),), keys([]), clear)


def test_the_least_derivatives_rank_labels_as_the_page_says() -> None:
    """Labels that go by nothing, 15 normal columns and a bias: X^T d with d = 1/2 - y, as in a first round."""
    page = (ROOT / "docs" / "howto" / "encryption.md").read_text(encoding="utf-8").splitlines()
    (sizes,) = (line for line in page if line.startswith("| samples in the batch |"))
    said = page[page.index(sizes) + 2]
    for size, auc in zip(sizes.split("|")[2:-1], said.split("|")[2:-1], strict=True):
        n, draw, found = int(size), np.random.default_rng(int(size)), []
        for _ in range(12_800 // n):
            x, y = np.column_stack([draw.normal(size=(n, 15)), np.ones(n)]), np.arange(n) % 2
            found.append(roc_auc_score(y, -x @ np.linalg.lstsq(x, 0.5 - y, rcond=None)[0]))
        assert np.mean(found) == pytest.approx(float(auc), abs=0.015)


def test_a_division_counts_once_and_another_one_again() -> None:
    rows = keys(range(960))
    one, other = run(rows, 3), run(rows, 4)
    assert (one.equations, count(rows, [one]).equations, count(rows, [one, one]).equations) == (21, 21, 21)
    both = count(rows, [one, other, one])
    assert both.equations == 21 + 28
    assert both.most == pytest.approx(7 / 320 + 7 / 240)
    assert not both.too_many
    assert count(rows, [one, run(rows, 4), run(rows, 5)]).too_many  # 21 + 28 + 35 of at most 60


def test_silos_columns_and_rounds_count_apart() -> None:
    rows = keys(range(960))
    two = run(rows, 1, Telling("a", "x", 7), Telling("b", "z", 5))
    assert count(rows, [two, run(rows, 1, Telling("a", "x", 7))]).equations == 12
    assert count(rows, [two, run(rows, 1, Telling("a", "other", 7))]).equations == 19
    longer = run(rows, 1, Telling("a", "course", 30, times=4))
    assert count(rows, [run(rows, 1, Telling("a", "course", 30, times=3)), longer]).equations == 120


def test_all_labels_are_given_in_clear_once() -> None:
    rows = keys(range(100))
    clear = run(rows, 1, clear=True)
    found = count(rows, [clear, clear])
    assert (found.equations, found.most, found.too_many) == (100, 1.0, True)


def test_another_split_burdens_the_rows_that_are_in_both() -> None:
    first, second = keys(range(960)), keys(range(480, 1440))
    found = count(second, [run(first, 3), run(second, 3)])
    assert found.equations == 42
    assert found.most == pytest.approx(2 * 7 / 320)
    assert closest(second, [run(first, 3)]) == 960
    assert closest(keys(range(961)), [run(first, 3)]) == 1
    assert closest(first, [run(first, 3)]) is None
    assert count(keys(range(2000, 2960)), [run(first, 3)]).equations == 0


def test_rows_of_another_file_are_known_by_their_values() -> None:
    first = keys(range(960))
    elsewhere = RowKeys(
        "other labels", {"place": np.arange(500, dtype=np.uint64), "values": first.kinds["values"][:500]}
    )
    assert elsewhere.places_in(first).tolist() == list(range(500))
    assert count(elsewhere, [run(first, 3)]).equations == 21


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=6))
def test_counts_are_those_of_sets(runs: list[tuple[int, int]]) -> None:
    """Against a set of (silo, columns, batch) with the sums of each."""
    rows = keys(range(60))
    given_ = [run(rows, batches, Telling("a", "x", sums)) for batches, sums in runs]
    told: dict[frozenset[int], int] = {}
    for one in given_:
        for batch in range(one.batches):
            members = frozenset(np.flatnonzero(one.batch_of == batch).tolist())
            told[members] = max(told.get(members, 0), one.told[0].sums)
    load = [sum(sums / len(members) for members, sums in told.items() if row in members) for row in range(60)]
    found = count(rows, given_)
    assert found.equations == sum(told.values())
    assert found.most == pytest.approx(max(load))


# Rows that are alone


def test_leverages_are_the_diagonal_of_the_hat_matrix() -> None:
    x = np.random.default_rng(0).normal(size=(30, 4))
    x[:, 3] = x[:, 0] - x[:, 1]  # a column that tells nothing new
    ones = np.column_stack([x, np.ones(30)])
    assert leverages(x) == pytest.approx(np.diag(ones @ np.linalg.pinv(ones)))


def test_a_rare_category_is_left_out_until_nobody_is_alone() -> None:
    """One row of its own, two that share a category, and forty that share another."""
    x = np.zeros((600, 3))
    x[5, 0] = x[[7, 9], 1] = x[100:140, 2] = 1
    batches = divide(600, 300, seed=4)
    assert set(lone_rows([x], batches)) >= {5}
    kept = rows_to_keep([x], lambda rows: divide(rows, 300, seed=4))
    assert set(range(600)) - set(kept.tolist()) == {5, 7, 9}
    assert not len(lone_rows([x[kept]], divide(597, 300, seed=4)))


# The file


def test_a_ledger_keeps_what_it_was_told(tmp_path: Path) -> None:
    path, rows = tmp_path / "ledger", keys(range(960))
    with open_ledger(path, KEY, write=True) as ledger:
        ledger.keep_seed("y", 17)
        ledger.append(run(rows, 3), "first")
    with open_ledger(path, KEY, write=True) as ledger:
        assert ledger.seeds == {"y": 17}
        ledger.append(run(rows, 4), "second")
    with open_ledger(path, KEY, write=False) as ledger:
        assert count(rows, ledger.given).equations == 49
        assert len(same_training_rows(rows, ledger.given)) == 2
        assert same_training_rows(keys(range(961)), ledger.given) == []
    with open_ledger(tmp_path / "none", KEY, write=False) as ledger:
        assert ledger.given == []
    assert not (tmp_path / "none").exists()


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_changed_ledger_is_refused(place: int, byte: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger")
        with open_ledger(path, KEY, write=True) as ledger:
            ledger.keep_seed("y", 17)
            ledger.append(run(keys(range(40)), 2), "first")
            ledger.append(run(keys(range(40)), 3), "second")
        whole = path.read_bytes()
        place %= len(whole) - 1
        changed = whole[:place] + bytes([byte]) + whole[place + 1 :]
        path.write_bytes(changed)
        if changed == whole:
            return
        with pytest.raises(ConfigError, match=r"privacy.ledger = .*, line \d"), open_ledger(path, KEY, write=True):
            pass
        assert path.read_bytes() == changed


def test_a_line_that_a_crash_cut_off_is_written_over_and_a_missing_one_noticed(tmp_path: Path) -> None:
    path, rows = tmp_path / "ledger", keys(range(40))
    with open_ledger(path, KEY, write=True) as ledger:
        ledger.keep_seed("y", 17)
        ledger.append(run(rows, 2), "first")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind":"given","bef')
    with open_ledger(path, KEY, write=True) as ledger:
        assert len(ledger.given) == 1
    assert path.read_bytes() == whole
    path.write_bytes(whole.split(b"\n", 1)[1])
    with pytest.raises(ConfigError, match="line 1 does not follow"), open_ledger(path, KEY, write=True):
        pass
    path.write_bytes(whole)
    with pytest.raises(ConfigError, match="under another key"), open_ledger(path, OTHER, write=False):
        pass
    with (
        pytest.raises(ConfigError, match="cannot be opened"),
        open_ledger(tmp_path / "no" / "folder", KEY, write=True),
    ):
        pass


def test_last_lines_that_were_taken_off_are_noticed(tmp_path: Path) -> None:
    """By what is kept beside the owner's key, wherever the ledger lies; emptied or gone, by where it lay."""
    path, rows = tmp_path / "ledger", keys(range(40))
    with open_ledger(path, KEY, write=True) as ledger:
        ledger.keep_seed("y", 17)
        ledger.append(run(rows, 2), "first")
        ledger.append(run(rows, 3), "second")
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    moved = tmp_path / "moved"
    for place in (path, moved):
        place.write_bytes(b"".join(lines[:2]))
        for write in (True, False):
            with pytest.raises(ConfigError, match="has 2 lines and had 3"), open_ledger(place, KEY, write=write):
                pass
        assert place.read_bytes() == b"".join(lines[:2])
    path.write_bytes(b"")
    with pytest.raises(ConfigError, match="has 0 lines and had 3"), open_ledger(path, KEY, write=True):
        pass
    path.unlink()
    with pytest.raises(ConfigError, match="has 0 lines and had 3"), open_ledger(path, KEY, write=False):
        pass
    path.write_bytes(whole)
    with open_ledger(path, KEY, write=True) as ledger:
        assert len(ledger.given) == 2


def test_a_crash_between_a_line_and_its_head_is_no_loss(tmp_path: Path) -> None:
    path, rows = tmp_path / "ledger", keys(range(40))
    with open_ledger(path, KEY, write=True) as ledger:
        ledger.keep_seed("y", 17)
        head = KEY.ledgers / f"{ledger.last}.json"
        before = head.read_bytes()
        ledger.append(run(rows, 2), "first")
    head.write_bytes(before)
    with open_ledger(path, KEY, write=True) as ledger:
        assert len(ledger.given) == 1
    head.write_bytes(before.replace(b'"lines":1', b'"lines":0'))
    with pytest.raises(ConfigError, match="was changed, or is of another key"), open_ledger(path, KEY, write=True):
        pass
    for other in (KEY, OTHER):  # and nobody else's ledger is held up by it
        with open_ledger(tmp_path / f"of {other.name}", other, write=True) as ledger:
            ledger.keep_seed("y", 17)
    head.unlink()


@pytest.mark.parametrize("content", [b"people,labels", b"a\nb\n", b"{}", b'{"kind": "other"}\n', b"\xff\xfe"])
def test_a_file_of_something_else_is_refused_and_stays(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with (
        pytest.raises(ConfigError, match="line 1 is not one of a ledger"),
        open_ledger(tmp_path / "table.csv", KEY, write=True),
    ):
        pass
    assert (tmp_path / "table.csv").read_bytes() == content


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path, order = tmp_path / "ledger", []

    def second() -> None:
        with open_ledger(path, KEY, write=True) as ledger:
            order.append("second")
            assert ledger.seeds == {"y": 17}

    with open_ledger(path, KEY, write=True) as ledger:
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
        ledger.keep_seed("y", 17)
    thread.join()
    assert order == ["first", "second"]
