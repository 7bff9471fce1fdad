"""The label's holder counts what it decrypts over the life of its labels: over runs, resumptions and crashes."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from crosshatch import read_config, train
from crosshatch.data.identity.owner_key import owner_key
from crosshatch.errors import ConfigError, MessageError
from crosshatch.privacy.exchanges.encrypted_exchange import EncryptedExchange
from crosshatch.privacy.leakage.equations import GivenEquations
from crosshatch.privacy.leakage.ledger_file import open_ledger
from crosshatch.privacy.leakage.row_keys import RowKeys
from crosshatch.runs.leaking.count_leakage import CountedReads
from tests.end_to_end.child import Child
from tests.support.ledgers import CONFIG, leakage, table

MOST = "privacy.reads_per_batch="


def reads(folder: Path) -> Counter[tuple[str, str]]:
    """By silo and batch, from the file itself."""
    lines = [json.loads(line) for line in (folder / "labels.ledger").read_text().splitlines()]
    return Counter((line["silo"], line["batch"]) for line in lines if line["kind"] == "read")


def test_runs_add_up_to_the_cap(tmp_path: Path) -> None:
    """Three batches and four rounds: one of them is read twice in each run; in three rounds each once."""
    leakage(tmp_path, "first", MOST + "3")
    assert sorted(reads(tmp_path).values()) == [1, 1, 2]
    before = (tmp_path / "labels.ledger").read_bytes()
    with pytest.raises(ConfigError, match=r"= 3: 6 rounds on 3 batches read 2 gradients .*, and 2 were read before"):
        leakage(tmp_path, "second", MOST + "3", "run.rounds=6")
    assert (tmp_path / "labels.ledger").read_bytes() == before
    assert not (tmp_path / "second").exists()
    leakage(tmp_path, "second", MOST + "3", "run.rounds=3")
    assert sorted(reads(tmp_path).values()) == [2, 2, 3]
    with pytest.raises(ConfigError, match="and 3 were read before"):  # a batch of all rows has those of every batch
        leakage(tmp_path, "third", MOST + "3", "run.rounds=1", "algorithm.batch_size=1600")


def test_a_cap_needs_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"without a ledger nobody would know of it after a restart: name a file"):
        leakage(tmp_path, "run", MOST + "3", text=CONFIG.replace('ledger = "labels.ledger"\n', ""))


def test_a_resumed_run_goes_on_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped cleanly nothing is read twice. After a crash rounds are repeated, and read once more."""
    leakage(tmp_path, "run", MOST + "2", "run.rounds=3")
    leakage(tmp_path, "run", MOST + "2", "run.rounds=6", resume=True)
    assert sorted(reads(tmp_path).values()) == [2, 2, 2]

    send, left = EncryptedExchange._send, [4]

    def crash(*arguments: object) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        send(*arguments)  # type: ignore[arg-type]

    changes = ["run.rounds=9", "run.checkpoint_every=1", "evaluate.every=1"]
    with monkeypatch.context() as patched:
        patched.setattr(EncryptedExchange, "_send", crash)
        with pytest.raises(KeyboardInterrupt):
            train(read_config(tmp_path / "one.toml", [*changes, MOST + "5"], name="two"), out=tmp_path / "two")
    assert sum(reads(tmp_path).values()) == 6 + 4  # that of the round that crashed is counted
    with pytest.raises(ConfigError, match=r"= 5: 6 rounds on 3 batches read 2 gradients .*, and 4 were read before"):
        leakage(tmp_path, "two", *changes, MOST + "5", resume=True)
    leakage(tmp_path, "two", *changes, MOST + "6", resume=True)  # somebody allowed one more
    assert sorted(reads(tmp_path).values()) == [5, 5, 6]


def test_killed_at_any_moment_nothing_is_read_uncounted(tmp_path: Path) -> None:
    """SIGKILL again and again: what was told is on the disk, and the cap of all processes together is never passed."""
    table(tmp_path)
    text = CONFIG.replace("rounds = 4", "rounds = 600\ncheckpoint_every = 300\nrecord_messages = true")
    (tmp_path / "one.toml").write_text(text.replace("[run]", "[evaluate]\nevery = 1\n[run]"))
    draw, most = random.Random(3), 215
    exits: list[int | None] = []
    while len(exits) < 12 and 2 not in exits:
        child = Child("train", "one.toml", "--resume", "--out", "run", "--set", f"{MOST}{most}", cwd=tmp_path)
        child.wait_for_evaluations(draw.randint(3, 40))
        exits.append(child.kill())
        evaluated = len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) - 1
        counted = reads(tmp_path)
        assert sum(counted.values()) >= evaluated  # every round that was told of
        assert max(counted.values()) <= most
    assert exits[-1] == 2  # what is left is less than the rounds to come
    assert -9 in exits


def test_runs_at_the_same_time_share_the_cap(tmp_path: Path) -> None:
    rows = RowKeys("y", {"values": np.arange(100, dtype=np.uint64)})
    given = GivenEquations(rows, (np.arange(100) // 50).astype(np.uint32), (), rows.take(np.arange(0)))
    both = []
    for _ in range(2):
        with open_ledger(tmp_path / "ledger", owner_key(), write=True) as ledger:
            both.append(CountedReads(ledger, given, 2))
    first, second = np.arange(50), np.arange(50, 100)
    for one in both:
        one.count("a", first)
    for one in both:
        with pytest.raises(MessageError, match=r"silo 'a' asked for a gradient .*, and had 2 of this batch"):
            one.count("a", first)
        one.count("a", second)
        one.count("b", first)
    (tmp_path / "ledger").write_bytes((tmp_path / "ledger").read_bytes()[:400])
    with pytest.raises(ConfigError, match="was cut off while a run counted in it"):
        both[0].count("c", first)
