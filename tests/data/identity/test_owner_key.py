"""The key is made once, for its owner alone, whoever asks first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crosshatch.data.identity.owner_key import OwnerKey, key_file, owner_key
from crosshatch.errors import RunError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings" / "one.key"
    monkeypatch.setenv("CROSSHATCH_KEY_FILE", str(path))
    return path


def test_it_is_made_once(place: Path) -> None:
    first = owner_key()
    assert place.stat().st_mode & 0o777 == 0o600
    assert owner_key() == first
    assert [path.name for path in place.parent.iterdir()] == ["one.key"]
    assert len(first.secret) == 32
    assert first.secret.hex() not in (first.name, repr(first), str(first))
    place.unlink()
    assert owner_key().name != first.name


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CROSSHATCH_KEY_FILE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert key_file() == tmp_path / "xdg" / "crosshatch" / "fingerprint.key"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert key_file() == tmp_path / "home" / ".config" / "crosshatch" / "fingerprint.key"


def test_a_file_that_others_could_read_is_mended(place: Path) -> None:
    secret = owner_key().secret
    place.chmod(0o644)
    found = owner_key()
    assert found.secret == secret
    assert "could be read by others" in found.note
    assert place.stat().st_mode & 0o777 == 0o600
    assert owner_key().note == ""


@pytest.mark.parametrize("content", ["", "abc", "zz" * 32, "ab" * 31, "ab" * 33, "ÿ" * 64])
def test_what_is_no_key(place: Path, content: str) -> None:
    place.parent.mkdir()
    place.write_text(content, encoding="utf-8")
    place.chmod(0o600)
    with pytest.raises(RunError, match=r"one\.key is not a key of 64 hexadecimal digits: restore it, or remove it"):
        owner_key()


def test_no_place_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CROSSHATCH_KEY_FILE", str(tmp_path / "file" / "one.key"))
    with pytest.raises(RunError, match="name a file that can be written by CROSSHATCH_KEY_FILE"):
        owner_key()


def test_a_file_system_without_links(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert owner_key() == owner_key()
    assert [path.name for path in place.parent.iterdir()] == ["one.key"]


def test_processes_that_start_together_agree(place: Path) -> None:
    code = "import sys; sys.stdin.read(1); from crosshatch.data.identity import owner_key as key; "
    code += "print(key.owner_key().name)"
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for one in started:
        assert one.stdin is not None
        one.stdin.write("x")
        one.stdin.flush()
    names = {one.communicate(timeout=120)[0].strip() for one in started}
    assert names == {owner_key().name}
    assert [path.name for path in place.parent.iterdir()] == ["one.key"]


def test_a_key_shows_nothing_of_itself() -> None:
    assert repr(OwnerKey(b"s" * 32)).count("s" * 4) == 0
