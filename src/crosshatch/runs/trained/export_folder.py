"""A model as one folder that can be handed over: all that predicting needs, and nothing of the rows it was made of."""

import contextlib
import os
import shutil
from pathlib import Path

import msgspec

from crosshatch.errors import RunError
from crosshatch.predict.joint_model import JointModel
from crosshatch.predict.model_shape import COMMON, HEAD, CommonShape
from crosshatch.runs.files import PARTIAL, sync_folder, write_whole, writing
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.trained.folder_readme import folder_readme
from crosshatch.runs.trained.manifest import MANIFEST, Manifest
from crosshatch.runs.trained.read_model import own_files, read_model

MODEL = "model"


def require_room(target: Path) -> None:
    """Refuse a place where something is, or that has no folder around it."""
    if target.is_dir() and any(target.iterdir()):
        raise RunError(f"--folder {target} exists and is not empty: choose another one, or empty it")
    if target.exists() and not target.is_dir():
        raise RunError(f"--folder {target} is a file: choose another place")
    if not target.absolute().parent.is_dir():
        raise RunError(f"--folder {target}: there is no folder {target.parent}, make it or choose another place")


def export_folder(
    target: Path, source: Path, model: JointModel, *, name: str, finished: bool, diverged: str | None, silo: str | None
) -> None:
    """Write the model in the folder `source` of a run, or one silo's part of it, into the folder `target`.

    It is made beside its place, read once more from there, and then renamed: it is there whole or not at all.
    """
    require_room(target)
    common = model.common
    silos = common.silos if silo is None else (silo,)
    if silo is not None and silo not in common.silos:
        raise RunError(f"--silo {silo} is not a silo that scores need: choose one of {', '.join(common.silos)}")
    code = own_files(source, silos, common)
    files = [f"{MODEL}/{file}" for file in _model_files(common, silos)]
    place = target.absolute()
    beside = place.with_name(place.name + PARTIAL)
    made = beside / place.name
    known = {"name": name, "silos": silos, "finished": finished, "diverged": diverged, "trained": common.trained}
    with writing(beside), one_writer(beside, "exporting"):
        shutil.rmtree(made, ignore_errors=True)  # what a process left that was killed
        try:
            contents = {file: (source / Path(file).name).read_bytes() for file in files}
            contents |= {file: (source.parent / file).read_bytes() for file in code}
            manifest = Manifest.hashing({}, **known)
            parts = [part for part in model.parts if part.name in silos]
            contents["README.md"] = folder_readme(manifest, common, parts, code).encode()
            manifest = Manifest.hashing(contents, **known)
            contents[MANIFEST] = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
            for file, content in contents.items():
                (made / file).parent.mkdir(parents=True, exist_ok=True)
                write_whole(made / file, content)
            if silo is None:
                read_model(made / MODEL)  # of one round, even if the run was written meanwhile
            require_room(target)
            if target.is_dir():
                target.rmdir()  # empty
            os.rename(made, target)
            sync_folder(place.parent)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    with contextlib.suppress(OSError):
        beside.rmdir()  # left by a process that was killed, or gone already


def _model_files(common: CommonShape, silos: tuple[str, ...]) -> list[str]:
    names = [f"{COMMON}.json", *(f"{silo}.{kind}" for silo in silos for kind in ("json", "safetensors"))]
    if common.head is not None and (silos == common.silos or common.head.holder in silos):
        names.append(f"{HEAD}.safetensors")
    return names
