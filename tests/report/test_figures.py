"""Figure files: equal runs give equal bytes, text stays text, and nothing tells the time."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from crosshatch.cli import main
from crosshatch.errors import RunError
from crosshatch.report.figures.write_figures import write_figures
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.runs import read_runs


def write(folder: Path, name: str, seed: int = 0) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    rows = [
        {"round": r, "bytes": 100 * r, "sim_seconds": 1.0 * r, "auc": 0.5 + 0.1 * r + 0.01 * seed} for r in range(4)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "config.toml").write_text(f"[run]\nname = '{name}'\nseed = {seed}\n")
    return path


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    contents = []
    for place in ("one", "other"):
        runs = read_runs([write(tmp_path / place, "tdcd"), write(tmp_path / place, "fedsgd")])
        written = write_figures(runs, tmp_path / place / "figures")
        assert len(written) == 12
        contents.append({path.name: path.read_bytes() for path in written})
    assert contents[0] == contents[1]
    svg = contents[0]["auc_by_round.svg"].decode()
    assert ">tdcd</text>" in svg
    assert ">AUC</text>" in svg
    assert "<dc:date>" not in svg
    assert b"CreationDate" not in contents[0]["auc_by_round.pdf"]
    assert contents[0]["auc_by_round.png"].startswith(b"\x89PNG")


def test_in_another_process_too(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = write(tmp_path, "tdcd")
    ours = write_figures(read_runs([path]), tmp_path / "ours", ["svg", "pdf", "png"])
    program = (
        "import sys; from crosshatch.report.figures.write_figures import write_figures; "
        "from crosshatch.report.runs import read_runs; "
        "write_figures(read_runs([sys.argv[1]]), sys.argv[2], ['svg', 'pdf', 'png'])"
    )
    subprocess.run([sys.executable, "-c", program, str(path), str(tmp_path / "theirs")], check=True)
    for one in ours:
        assert one.read_bytes() == (tmp_path / "theirs" / one.name).read_bytes()


def test_numbers_of_several_seeds(tmp_path: Path) -> None:
    runs = pool_seeds(read_runs([write(tmp_path, f"tdcd-{seed}", seed) for seed in range(3)]))
    write_figures(runs, tmp_path / "figures", ["csv"])
    with (tmp_path / "figures" / "auc_by_bytes.csv").open() as file:
        last = list(csv.DictReader(file))[-1]
    assert (last["run"], last["bytes"]) == ("tdcd (3 seeds)", "300")
    assert [float(last[key]) for key in ("auc", "lowest", "highest")] == pytest.approx([0.81, 0.8, 0.82])


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "tdcd")
    with pytest.raises(SystemExit) as ended:
        main(["report", "mine=tdcd", "--figures", "figures"])
    assert ended.value.code == 0
    assert "12 figures in figures" in capsys.readouterr().out
    assert (tmp_path / "tdcd" / "report.html").is_file()


def test_without_matplotlib_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(RunError, match=r"pip install -e '\.\[figures\]'"):
        write_figures(read_runs([write(tmp_path, "tdcd")]), tmp_path / "figures")


def test_what_is_refused(tmp_path: Path) -> None:
    runs = read_runs([write(tmp_path, "tdcd")])
    with pytest.raises(RunError, match="no runs: name at least one"):
        write_figures([], tmp_path / "figures")
    with pytest.raises(RunError, match="not 'gif'"):
        write_figures(runs, tmp_path / "figures", ["gif"])
    with pytest.raises(RunError, match="name a folder"):
        write_figures(runs, tmp_path / "tdcd" / "metrics.jsonl", ["csv"])
