"""Settings of [model] that nothing reads: whoever gives one expects something of it."""

from dataclasses import fields

from crosshatch.errors import ModelError
from crosshatch.own_parts import is_own
from crosshatch.task.model_settings import BlockChanges, ModelSettings

_READ = {
    "linear": ("bias", "zero_init"),
    "mlp": ("hidden", "activation", "bias", "zero_init"),
    "cnn": ("channels", "dense", "zero_init"),
    "lstm": ("hidden", "steps", "zero_init"),
    "resnet18": ("channels", "norm", "zero_init"),
}
_OWN = ("arguments", "zero_init")
_OF_BLOCKS = tuple(key for key in BlockChanges.__annotations__ if key not in ("block", "outputs"))
_OF_HEADS = ("head", "head_hidden")
_OF_TRANSFER = ("alignment", "alignment_weight", "mean_samples")


def refuse_idle(settings: ModelSettings) -> None:
    """Refuse what is given, other than its default, and read by no block and no head."""
    standard = {field.name: getattr(ModelSettings(), field.name) for field in fields(settings)}
    given = [key for key in (*_OF_BLOCKS, *_OF_HEADS, *_OF_TRANSFER) if getattr(settings, key) != standard[key]]
    kinds = {settings.block, *(changes.get("block", settings.block) for changes in settings.blocks.values())}
    read = {key for kind in kinds for key in _read(kind)} | _read_by_head(settings)
    for key in given:
        if key in _OF_TRANSFER and settings.fusion != "transfer":
            raise ModelError(f"model.{key} is about transfer: set model.fusion = 'transfer', or leave it out")
        if key in _OF_HEADS and settings.fusion != "head":
            raise ModelError(f"model.{key} has no effect without a head: set model.fusion = 'head', or leave it out")
        if key not in (*read, *_OF_TRANSFER):
            raise ModelError(f"model.{key} has no effect {_on(key, sorted(kinds))}")
    for silo, changes in settings.blocks.items():
        kind = changes.get("block", settings.block)
        for key in changes:
            if key in _OF_BLOCKS and key not in _read(kind):
                raise ModelError(f"model.blocks.{silo}.{key} has no effect {_on(key, [kind])}")


def _read(kind: str) -> tuple[str, ...]:
    return _OWN if is_own(kind) else _READ[kind]


def _read_by_head(settings: ModelSettings) -> set[str]:
    if settings.fusion != "head":
        return set()
    return {"head", "head_hidden", "activation"} if settings.head == "mlp" else {"head"}


def _on(key: str, kinds: list[str]) -> str:
    if key == "head_hidden":
        return "on a linear head: set model.head = 'mlp', or leave it out"
    reading = [f"'{kind}'" for kind in _READ if key in _READ[kind]] or ["a class of your own, 'path/to/file.py:Name'"]
    name = "a block of your own" if is_own(kinds[0]) else f"block '{kinds[0]}'"
    remedy = " or ".join(reading)
    return f"on {name}: set model.block = {remedy}, or leave it out"
