"""Files of lines are read as they grow."""

from __future__ import annotations

from pathlib import Path

from crosshatch.runs.evaluating.lines import GrowingLines, add_line


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    lines = GrowingLines(path)
    assert lines.look() == {}
    add_line(path, {"round": 5, "loss": 0.5})
    with open(path, "ab") as file:
        file.write(b'{"round": 10, "lo')  # a line that is being written
    assert lines.look() == {5: {"round": 5, "loss": 0.5}}
    with open(path, "ab") as file:
        file.write(b'ss": 0.25}\n')
    lines.forget_until(5)
    assert lines.look() == {10: {"round": 10, "loss": 0.25}}
    assert lines.look() == {10: {"round": 10, "loss": 0.25}}
