"""What a study was asked for, kept in its folder, so that the same goes on with it and another is refused."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crosshatch.data.identity.fingerprint import FINGERPRINT, Fingerprint, fingerprint_text, read_fingerprint
from crosshatch.errors import RunError
from crosshatch.runs.config import Config, config_text, part_files
from crosshatch.runs.files import write_json, write_whole, writing
from crosshatch.runs.one_writer import LOCK
from crosshatch.runs.own_parts.part_files import PARTS
from crosshatch.studies.study_result import YARDSTICKS
from crosshatch.sweeps.grid import Seeds
from crosshatch.sweeps.jobs import PRINTED


def keep_study(config: Config, seeds: Seeds, steps: Sequence[str], fingerprint: Fingerprint | None, out: Path) -> None:
    """Write what was asked into the study's folder; refuse one that has finished a run of something else.

    Where none has finished, as when every run was refused, what there is of them is dropped.
    """
    config = replace(config, run=replace(config.run, threads=None))
    files = part_files(config).read()
    described = {
        "config": config_text(config, files),
        "seeds": list(seeds.numbers),
        "added": seeds.added,
        "step_sizes": list(steps),
        "parts": files.hashes,
    }
    path = out / "study.json"
    if path.is_file():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunError(f"{path} is not JSON ({error}): it was changed, use another --out") from None
        changed = [key for key in described if stored.get(key, {}) != described[key]]
        if changed and any(out.glob("runs/*/summary.json")):
            files.require_unchanged(stored.get("parts", {}), out, "study")
            words = {"config": "the config", "seeds": "--seeds", "added": "--seeds", "step_sizes": "--steps"}
            raise RunError(
                f"the study in {out} was started otherwise: {words[changed[0]]} has changed; undo this, or choose "
                "another --out"
            )
        if not changed:
            require_same_data(fingerprint, read_fingerprint(out), out)
            return
        with writing(out):
            for begun in (out / "runs", out / PRINTED, out / PARTS, out / YARDSTICKS):
                if begun.is_dir():
                    shutil.rmtree(begun)
    elif strange := sorted(entry.name for entry in out.iterdir() if entry.name != LOCK):
        raise RunError(
            f"the output folder {out} exists and is not a study's (it has {strange[0]}): choose another --out"
        )
    with writing(out):
        if fingerprint is not None:
            write_whole(out / FINGERPRINT, fingerprint_text(fingerprint))
        write_json(path, described)
        files.write(out)


def require_same_data(asked: Fingerprint | None, stored: Fingerprint | None, where: Path) -> None:
    """Refuse what was made on other rows, labels or values; it may have some of the columns only.

    Nothing is said where that cannot be told.
    """
    if asked is None or stored is None or asked.key != stored.key:
        return
    rows = [(one.labels, one.split, one.validation, one.test) for one in (asked, stored)]
    if rows[0] != rows[1] or any(asked.columns.get(name) != column for name, column in stored.columns.items()):
        raise RunError(
            f"the data have changed since {where} was made, and a study compares on the same rows: put back those it "
            "was started with, or choose another --out"
        )
