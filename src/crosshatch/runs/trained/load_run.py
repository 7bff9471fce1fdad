"""The trained model of a run directory or of an exported folder, checked and ready to predict."""

from pathlib import Path
from typing import Literal

from crosshatch.errors import RunError
from crosshatch.report.runs import read_summary
from crosshatch.runs.own_parts.part_files import PARTS, require_hashes
from crosshatch.runs.tables.read_toml import read_toml
from crosshatch.runs.trained.export_folder import MANIFEST, MODEL, Manifest, read_manifest
from crosshatch.runs.trained.read_model import own_files, read_common, read_model
from crosshatch.runs.trained.trained_run import TrainedRun


def load_run(path: Path | str, round: Literal["best", "last"] | None = None) -> TrainedRun:
    """The run in a directory, to predict with; one that was stopped as well, with the model it left.

    The model is that of the best round where validation rows chose one, else that of the last, unless `round` says.
    A folder that `crosshatch export --folder` or `TrainedRun.export_folder` wrote does as well.

    >>> import tempfile
    >>> from crosshatch import read_config, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     config = Path(folder, "wine.toml")
    ...     written = config.write_text('data = {name = "wine"}')
    ...     changes = ["algorithm.name=fedbcd", "run.rounds=20", "run.threads=1"]
    ...     outcome = train(read_config(config, changes), out=Path(folder, "run"))
    ...     run = load_run(Path(folder, "run"))
    ...     columns = run.predict().frame.columns
    >>> run.silos, columns[:3]
    (('silo1', 'silo2'), ['id', 'score_0', 'score_1'])
    """
    path = Path(path)
    if round not in (None, "best", "last"):
        raise RunError(f"round = {round!r}: choose 'best' or 'last'")
    manifest = read_manifest(path)
    if manifest is not None:
        return _exported(path, manifest, round)
    if not (path / "config.toml").is_file():
        raise RunError(
            f"{path} is not a run directory: name one, as written by `crosshatch train --out`, or a folder that "
            f"`crosshatch export --folder` wrote (it has {MANIFEST})"
        )
    folder, (summary, facts) = path / MODEL, read_summary(path / "summary.json")
    if not folder.is_dir():
        if not summary:
            raise RunError(
                f"the run in {path} has not finished and left no model: go on with crosshatch train "
                f"{path / 'config.toml'} --out {path} --resume"
            )
        raise RunError(f"{path} has no folder 'model': get it from where the run was made, or train again")
    best = path / "best_model"
    if round == "best" and not best.is_dir():
        raise RunError(f"{path} has no best round: train with validation rows (data.validation), or take the last one")
    if round != "last" and best.is_dir():
        folder = best
    diverged = None if facts.diverged is None else facts.diverged.why
    own = {name.removeprefix(f"{PARTS}/"): known for name, known in read_common(folder).trained.own_files.items()}
    hashes: dict[str, str] = own | summary.get("parts", {})
    require_hashes(path, hashes)
    name = facts.name or _name(path)
    return TrainedRun(path, read_model(folder), folder, name, diverged, bool(summary), tuple(hashes))


def _exported(path: Path, manifest: Manifest, round: str | None) -> TrainedRun:
    manifest.require_whole(path)
    folder = path / MODEL
    common = read_common(folder)
    if manifest.silos != common.silos:
        held = ", ".join(f"'{silo}'" for silo in manifest.silos)
        raise RunError(
            f"{path} holds the part of {held} alone, and a score needs the silos {', '.join(common.silos)}: export the "
            "run without --silo"
        )
    if round is not None:
        raise RunError(f"{path} was exported with the model of one round: leave --round {round} out")
    for name in own_files(folder, common.silos, common):
        if name not in manifest.own_code:
            raise RunError(f"the model in {path} names the code in {name}, which {MANIFEST} does not: export it again")
    own = tuple(name.removeprefix(f"{PARTS}/") for name in manifest.own_code)
    return TrainedRun(path, read_model(folder), folder, manifest.name, manifest.diverged, manifest.finished, own)


def _name(path: Path) -> str:
    try:
        return str(read_toml((path / "config.toml").read_text(encoding="utf-8"))["run"]["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return path.absolute().name
