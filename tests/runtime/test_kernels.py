"""Kernels are pinned at the first start, as far as the processor goes, and another fingerprint is told in words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from crosshatch.runtime.kernels import fingerprint, keep_kernels, pin_kernels

PINS = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")


def machine(folder: Path, *flags: str) -> Path:
    path = folder / "-".join(("cpu", *flags))
    path.write_text(f"processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu {' '.join(flags)}\n\nprocessor\t: 1\n")
    return path


def pinned(home: Path, cpu: Path, **before: str) -> list[str | None]:
    """What torch and the libraries below it are told by a start with this in the environment, which stays as it is."""
    with patch.dict(os.environ):
        for name in PINS:
            os.environ.pop(name, None)
        os.environ.update(before)
        pin_kernels(home, cpu)
        return [os.environ.get(name) for name in PINS]


def test_the_first_start_decides(tmp_path: Path) -> None:
    new, old, oldest = machine(tmp_path, "avx2", "avx512f"), machine(tmp_path, "avx2"), machine(tmp_path)
    assert pinned(tmp_path, old) == ["avx2", None, None]
    assert pinned(tmp_path, new) == ["avx2", "AVX2", "AVX2"]  # as if it were the old one
    assert pinned(tmp_path, oldest) == [None, None, None]  # which cannot do it: the fingerprint will tell
    assert pinned(tmp_path, new, ATEN_CPU_CAPABILITY="default")[0] == "avx2"
    keep_kernels(tmp_path, "default")
    assert pinned(tmp_path, new)[0] == "default"


def test_a_user_may_decide_at_the_first_start(tmp_path: Path) -> None:
    new = machine(tmp_path, "avx2", "avx512f")
    for before in ({"ATEN_CPU_CAPABILITY": "default"}, {}):
        assert pinned(tmp_path, new, **before) == ["default", "SSE4_2", "SSE41"]


def test_of_an_unknown_machine_nothing_is_pinned(tmp_path: Path) -> None:
    assert pinned(tmp_path, tmp_path / "absent") == [None, None, None]
    assert fingerprint(tmp_path / "absent")["processor"] == "unknown"
    assert fingerprint(machine(tmp_path))["processor"] == "GenuineIntel"


def test_torch_follows_the_pin(tmp_path: Path) -> None:
    (tmp_path / "kernels.txt").write_text("default\n")
    code = (
        "import sys; from pathlib import Path; from crosshatch.runtime.kernels import fingerprint, pin_kernels\n"
        "assert 'torch' not in sys.modules; pin_kernels(Path(sys.argv[1])); print(fingerprint()['kernels'])"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "default"
