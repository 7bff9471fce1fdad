"""A model as one folder that can be handed over: all that predicting needs, and nothing of the rows it was made of.

Its README says what it is, how to predict with it, and what it wants, its manifest how the model came to be, with the
hash of every file, so that none is damaged.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from crosshatch.data.encoding.encode_image import ImageEncoder
from crosshatch.data.encoding.encode_sequence import SequenceEncoder
from crosshatch.data.encoding.encode_table import CategoricalColumn, NumericColumn
from crosshatch.data.new_rows import own_name
from crosshatch.errors import RunError
from crosshatch.predict.joint_model import JointModel, SiloPart
from crosshatch.predict.model_shape import COMMON, HEAD, CommonShape, Trained
from crosshatch.runs.files import PARTIAL, sync_folder, write_whole, writing
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.trained.read_model import own_files, read_model

MANIFEST = "manifest.json"
FORMAT = 1


class Manifest(msgspec.Struct, frozen=True):
    """`files` has the sha256 of each file, by its path in the folder; `silos` are those whose parts are there.

    `name` is that of the run, `finished` whether it ran to its end, `diverged` why its training ended badly, if so.
    """

    format: int
    name: str
    silos: tuple[str, ...]
    finished: bool
    diverged: str | None
    trained: Trained
    files: dict[str, str]

    @classmethod
    def hashing(cls, contents: Mapping[str, bytes], **known: object) -> Manifest:
        hashes = {name: sha256(content).hexdigest() for name, content in sorted(contents.items())}
        return msgspec.convert({"format": FORMAT, "files": hashes, **known}, cls)

    @property
    def own_code(self) -> dict[str, str]:
        """The files with code of a user's own, which loading the model runs, with their hashes."""
        return {name: known for name, known in self.files.items() if name.endswith(".py")}

    def require_whole(self, folder: Path) -> None:
        """Refuse a folder in which a file is absent or not as it was exported."""
        for name, known in self.files.items():
            file = folder / name
            try:
                content = file.read_bytes()
            except OSError as error:
                raise RunError(f"{file} cannot be read ({error.strerror}): get the folder again") from None
            if sha256(content).hexdigest() != known:
                raise RunError(
                    f"{file} is not as it was exported (its sha256 is not that in {MANIFEST}): get the folder again"
                )


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of an exported folder; None where the folder is another one, for example a run directory."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read ({error}): get the folder again, or export it again") from None
    if found.format != FORMAT:
        raise RunError(f"{path} is of format {found.format}, this version reads {FORMAT}: export the run again")
    return found


_LISTED = 12  # classes or categories
_TABLE = """\
| column | is read as | where it has no value |
|---|---|---|
"""
_END = """\
A category that training did not have counts as none of the known ones: all its columns are 0. Columns that no silo
needs are not looked at. `crosshatch predict` tells of both, and of values that are far from those of training.

## What is in it

`model/` has a file of weights (safetensors) and one with the preparation of rows (JSON) for each silo, and
`model.json`: classes, loss, fusion. {manifest} has the sha256 of every file; a file that was damaged on its way is
refused. It does not show who wrote a file: get the folder from somebody you trust.{code}

There are no training rows in it, but what was fitted on them: means, deviations, categories and weights.
"""
MODEL = "model"


def _readme(manifest: Manifest, common: CommonShape, parts: Sequence[SiloPart], code: Sequence[str]) -> Iterator[str]:
    yield f"# The model of run '{manifest.name}'\n"
    yield f"{_trained(manifest)} {_predicts(common)}\n"
    if manifest.silos == common.silos:
        files = " ".join(f"--data {part.name}=FILE" for part in parts if part.input_shape != (0,))
        yield "Crosshatch, this folder and files with new rows are all that predicting needs:\n"
        yield f"    crosshatch predict FOLDER {files} --out scores.csv\n"
        if len(parts) > 1:
            yield "One file with the columns of all silos does as well: `--data FILE`.\n"
    else:
        yield (
            f"This is the part of {_quoted(manifest.silos)} alone, of a model of {_quoted(common.silos)}: it makes "
            "embeddings of its own rows, and a score needs those of all silos.\n"
        )
    yield from _figures(manifest)
    for part in parts:
        yield f"## Rows of silo '{part.name}'\n"
        yield from _wanted(part)
    own = f"\n\nLoading the model runs code of its makers: {', '.join(f'`{name}`' for name in code)}." if code else ""
    yield _END.format(manifest=f"`{MANIFEST}`", code=own)


def _trained(manifest: Manifest) -> str:
    trained = manifest.trained
    why = "" if trained.chosen_by is None else f", the best by `{trained.chosen_by}`"
    text = f"It is the model of round {trained.round}{why}."
    if not manifest.finished:
        text += " The run had not finished when it was exported."
    if manifest.diverged is not None:
        text += f" The training diverged: {manifest.diverged}."
    return text + f" Made with {', '.join(f'{name} {version}' for name, version in trained.versions.items())}."


def _predicts(common: CommonShape) -> str:
    if common.target == "regression":
        return "It predicts a number."
    names = _some(common.classes)
    if common.target == "multilabel":
        return f"It says for each of these labels whether it is true of a row: {names}."
    positive = "" if common.positive is None else f"; scores and probabilities are those of `{common.positive}`"
    return f"It predicts one of the classes {names}{positive}."


def _figures(manifest: Manifest) -> Iterator[str]:
    trained = manifest.trained
    yield "## Figures\n"
    rows = ", ".join(f"{count:,} for {of}" for of, count in trained.rows.items())
    yield f"Rows: {rows}. Figures are after round {trained.round}, of the test rows unless their name says otherwise.\n"
    if not trained.figures:
        yield "That round was not evaluated.\n"
        return
    yield "| figure | value |\n|---|---|"
    yield "\n".join(f"| `{name}` | {value:.6g} |" for name, value in trained.figures.items()) + "\n"


def _wanted(part: SiloPart) -> Iterator[str]:
    encoder = part.encoder
    if isinstance(encoder, ImageEncoder):
        window = encoder.window
        size = " x ".join(map(str, encoder.image))
        yield (
            f"A `.npz` file with images of {size} in the array `x`; the silo holds rows {window.top} to "
            f"{window.bottom - 1} and columns {window.left} to {window.right - 1} of their pixels.\n"
        )
        return
    if isinstance(encoder, SequenceEncoder):
        missing = "is refused" if encoder.fill is None else "is the latest one before it, or else a fitted one"
        yield (
            f"A `.npz` file with an array `x` (rows, {encoder.steps}, {len(encoder.names)}): {encoder.steps} points in "
            f"time of {', '.join(f'`{name}`' for name in encoder.names)}. A value that is missing (NaN) {missing}.\n"
        )
        return
    if part.id is not None:
        yield f"Rows are known by column `{part.id}`.\n"
    lines = "".join(_column(column, part.name) for column in encoder.columns)
    yield _TABLE + lines if lines else "It needs none.\n"


def _column(column: NumericColumn | CategoricalColumn, silo: str) -> str:
    if isinstance(column, NumericColumn):
        kind, missing = "number", "is refused" if column.fill is None else f"{column.fill:.6g} stands in"
    else:
        kind = f"one of {len(column.categories)} categories: {_some(column.categories)}"
        missing = "none of them" if column.allow_missing else "is refused"
    return f"| {_some([own_name(column.name, silo)])} | {kind} | {missing} |\n"


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`".replace("|", "\\|").replace("\n", " ") for name in names[:_LISTED])
    return listed + (", ..." if len(names) > _LISTED else "")


def _quoted(names: Sequence[str]) -> str:
    return ("silo " if len(names) == 1 else "silos ") + ", ".join(f"'{name}'" for name in names)


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
    names = [f"{COMMON}.json", *(f"{one}.{kind}" for one in silos for kind in ("json", "safetensors"))]
    if common.head is not None and (silos == common.silos or common.head.holder in silos):
        names.append(f"{HEAD}.safetensors")
    files = [f"{MODEL}/{file}" for file in names]
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
            contents["README.md"] = "".join(f"{line}\n" for line in _readme(manifest, common, parts, code)).encode()
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
