"""What decides the last digits of a party's numbers: torch, its number of threads, kernels and the processor's maker.

A round that is run again after a crash says the same to the bit under an equal fingerprint only. A party pins the
kernels that its processor is best at when it starts for the first time, so that a newer processor is no other one to
it. This module is imported before torch.
"""

import os
from collections.abc import Mapping
from pathlib import Path

_FILE, _PIN = "kernels.txt", "ATEN_CPU_CAPABILITY"
_NEEDS = {"avx512": "avx512f", "avx2": "avx2"}  # torch's name for kernels, and for what a processor must be able to do
_BELOW = {  # libraries below torch choose by the processor alone, unless told
    "avx2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "default": {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ONEDNN_MAX_CPU_ISA": "SSE41"},
}
_CPU = Path("/proc/cpuinfo")


def pin_kernels(home: Path, cpu: Path = _CPU) -> None:
    """Have torch choose the kernels that the parties of a folder began with; at the first start the best there are.

    What this processor cannot do is left alone: the fingerprint will tell.
    """
    flags = _told(cpu, "flags").split()
    can = [*(name for name, flag in _NEEDS.items() if flag in flags), "default"]
    if not flags:
        return  # another kind of machine: nothing is known of it
    path = home / _FILE
    if not path.exists():
        path.write_text(f"{os.environ.get(_PIN, can[0])}\n")
    pinned = path.read_text().strip()
    if pinned in can:
        os.environ[_PIN] = pinned
        if pinned != can[0]:
            os.environ.update(_BELOW[pinned])


def keep_kernels(home: Path, kernels: str) -> None:
    """Pin others from now on: parties that had nothing to run again have begun with them."""
    (home / _FILE).write_text(f"{kernels}\n")


def fingerprint(cpu: Path = _CPU) -> dict[str, str]:
    """Of this process, by what each of it is called.

    >>> sorted(fingerprint())
    ['kernels', 'processor', 'threads', 'torch']
    """
    import torch

    return {
        "torch": str(torch.__version__),
        "threads": str(torch.get_num_threads()),
        "kernels": torch.backends.cpu.get_cpu_capability().lower(),
        "processor": _told(cpu, "vendor_id") or "unknown",
    }


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> str:
    """What differs, in words; empty: nothing does.

    >>> differences({"torch": "2.13.0", "threads": "1"}, {"torch": "2.13.0", "threads": "2"})
    'threads was 1 and is 2'
    """
    names = [name for name in sorted({*there, *here}) if there.get(name) != here.get(name)]
    return ", ".join(f"{name} was {there.get(name, 'unknown')} and is {here.get(name, 'unknown')}" for name in names)


def _told(cpu: Path, what: str) -> str:
    """What the machine says of its first processor; empty where it says nothing."""
    try:
        lines = cpu.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == what), "")
