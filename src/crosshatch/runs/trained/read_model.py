"""A run's model files as a model that can be put to work."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from crosshatch.errors import CrosshatchError, RunError
from crosshatch.own_parts import blaming, is_own
from crosshatch.predict.joint_model import JointModel, SiloPart
from crosshatch.predict.model_shape import COMMON, HEAD, ROUND, CommonShape, SiloShape
from crosshatch.trees import Layout, flatten

Shape = TypeVar("Shape", bound=msgspec.Struct)


def read_model(folder: Path) -> JointModel:
    common = read_common(folder)
    fusion = common.build()
    if fusion.module is not None:
        _load(fusion.module, folder / f"{HEAD}.safetensors", common)
    parts = tuple(read_part(folder, silo, common) for silo in common.silos)
    widths = [part.outputs for part in parts]
    if len(set(widths)) > 1 if common.head is None else sum(widths) != common.head.inputs:
        given = ", ".join(f"'{silo}' {width}" for silo, width in zip(common.silos, widths, strict=True))
        raise RunError(f"the files in {folder} are not of one run: outputs per silo are {given}; get all of them again")
    with blaming(_own_file(folder, common.loss, "loss")):
        return JointModel(common, parts, fusion, common.find_loss(folder.parent))


def read_common(folder: Path) -> CommonShape:
    return _shape(folder / f"{COMMON}.json", CommonShape)


def read_part(folder: Path, silo: str, common: CommonShape) -> SiloPart:
    shape = _shape(folder / f"{silo}.json", SiloShape)
    with blaming(_own_file(folder, shape.block.get("block", ""), f"block of silo '{silo}'")):
        try:
            block = shape.build(folder.parent).to(common.dtype)
        except CrosshatchError as error:
            raise RunError(f"the block of silo '{silo}' cannot be made again: {error}") from error
    _load(block, folder / f"{silo}.safetensors", common)
    return SiloPart(silo, shape.id, shape.preparation, block, shape.input_shape, shape.outputs)


def own_files(folder: Path, silos: Sequence[str], common: CommonShape) -> list[str]:
    """The files of a user's own that these silos' blocks and the loss name, as seen from beside the folder."""
    blocks = [_shape(folder / f"{silo}.json", SiloShape).block.get("block", "") for silo in silos]
    return sorted({name.rpartition(":")[0] for name in (*blocks, common.loss) if is_own(name)})


def _own_file(folder: Path, name: str, what: str) -> frozenset[Path]:
    """The Python file of a user's own block or loss, in the folder beside those of models."""
    path, colon, _ = name.rpartition(":")
    if not colon:
        return frozenset()
    file = (folder.parent / path).resolve()
    if not file.is_file():
        raise RunError(f"the {what} is in {file}, which is no longer there: put the file back")
    return frozenset([file])


def _shape(path: Path, kind: type[Shape]) -> Shape:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise RunError(f"no file {path}: get it from where the run was made, or train again") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"{path} cannot be read ({error}): get it again, or train again") from None


def _load(module: nn.Module, path: Path, common: CommonShape) -> None:
    """Put parameters and buffers of a file into a module, which then is in evaluation mode."""
    if not path.is_file():
        raise RunError(f"no file {path}: get it from where the run was made, or train again")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            at = (file.metadata() or {}).get(ROUND)
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path} cannot be read ({error}): get it again, or train again") from None
    if at is not None and at != str(common.trained.round):
        raise RunError(
            f"{path} is of round {at}, and {path.with_name(f'{COMMON}.json')} of round {common.trained.round}: if the "
            "run is being written, try again; else get all of its files again"
        )
    parameters = dict(module.named_parameters())
    wanted = parameters | dict(module.named_buffers())
    if {name: t.shape for name, t in tensors.items()} != {name: t.shape for name, t in wanted.items()}:
        sizes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in wanted.items())
        raise RunError(f"{path} does not fit its block, which has {sizes}: the block was changed, undo that")
    with torch.no_grad():
        for name, tensor in tensors.items():
            if name in parameters and not bool(torch.isfinite(tensor).all()):
                raise RunError(f"{path}: '{name}' is not finite, for training diverged: train with a smaller step size")
            wanted[name].copy_(tensor)
    for name, view in Layout.of(module).views(flatten(module)).items():
        parameters[name].data = view.clone()  # in memory as in training: other kernels would round differently
    module.eval()
