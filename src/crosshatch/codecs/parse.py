"""Codecs as text: `topk(0.01) | quantise(128)`, `ef(topk(0.01))`, `half`, `file.py:Mine(3)`. `spell` is the inverse."""

import ast
from dataclasses import MISSING, fields
from typing import Any

from crosshatch.codecs.chain import Chain
from crosshatch.codecs.dense import Half, Identity
from crosshatch.codecs.feedback import AnyCodec, ErrorFeedback
from crosshatch.codecs.own_codec import build_own, taken
from crosshatch.codecs.quantise import Quantise
from crosshatch.codecs.sparse import RandomK, TopK
from crosshatch.errors import ConfigError, meant, saying_where
from crosshatch.own_parts import is_own, moved_in_text

_KINDS: dict[str, type[Any]] = {
    "identity": Identity, "half": Half, "topk": TopK, "randomk": RandomK, "quantise": Quantise, "ef": ErrorFeedback,
}  # fmt: skip
# The arguments of each, in order; the word `unbiased` stands for itself.
_ARGUMENTS = {name: tuple(field.name for field in fields(kind)) for name, kind in _KINDS.items()}
_LONGEST = 200  # characters: Python's own parser reads them, and its depth is limited


def parse_codec(given: object, *, place: str = "codec") -> AnyCodec:
    """A codec from a config value.

    >>> parse_codec("ef(topk(0.01) | quantise(128))")
    ErrorFeedback(codec=Chain(parts=(TopK(fraction=0.01, k=None), Quantise(levels=128))), mode='ef21')
    """
    with saying_where(place, ConfigError):
        if not isinstance(given, str):
            raise ConfigError(f"a codec is a string such as 'topk(0.01) | quantise(128)', got {given!r}")
        return _from_text(given)


def _from_text(text: str) -> AnyCodec:
    example = "write it like 'topk(0.01) | quantise(128)'"
    length = len(moved_in_text(text, lambda _: ""))  # paths may be long
    if length > _LONGEST:
        raise ConfigError(f"a codec of {length} characters, at most {_LONGEST} are read: {example}")
    try:
        # in quotes, a name with a colon is a string to Python's parser, and may be called like any other
        tree = ast.parse(moved_in_text(text.strip(), str, quoted=True), mode="eval").body
    except (SyntaxError, ValueError):
        raise ConfigError(f"cannot read the codec {text!r}: {example}") from None
    return _from_tree(tree, text)


def _from_tree(node: ast.expr, text: str) -> AnyCodec:
    match node:
        case ast.BinOp(op=ast.BitOr()):
            return Chain(*(_from_tree(part, text) for part in _operands(node)))  # type: ignore[arg-type]
        case ast.Name(name):
            return _build(name, {})
        case ast.Call(func=ast.Name(name)):
            return _build(name, _arguments(name, node, text))
        case ast.Constant(str() as name) if is_own(name):
            return build_own(name, (), {})
        case ast.Call(func=ast.Constant(str() as name)) if is_own(name):
            values = [_value("", argument, text) for argument in node.args]
            return build_own(name, values, {str(word.arg): _value("", word.value, text) for word in node.keywords})
    raise ConfigError(f"cannot read {ast.unparse(node)!r} in the codec {text!r}: name one of {', '.join(_ARGUMENTS)}")


def _operands(node: ast.expr) -> list[ast.expr]:
    """The parts of `a | b | c`, which Python reads as `(a | b) | c`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_operands(node.left), *_operands(node.right)]
    return [node]


def _arguments(name: str, call: ast.Call, text: str) -> dict[str, Any]:
    _require_known(name)
    names = _ARGUMENTS[name]
    arguments: dict[str, Any] = {}
    for place, argument in enumerate(call.args):
        if isinstance(argument, ast.Name) and argument.id == "unbiased" in names:
            arguments["unbiased"] = True
        elif place >= len(names):
            raise ConfigError(f"too many arguments in {ast.unparse(call)!r}: {taken(_ARGUMENTS[name])}")
        else:
            arguments[names[place]] = _value(names[place], argument, text)
    for keyword in call.keywords:
        key = str(keyword.arg)
        if key in arguments:
            raise ConfigError(f"{key} is given twice in {ast.unparse(call)!r}: give it once")
        arguments[key] = _value(key, keyword.value, text)
    return arguments


def _value(name: str, node: ast.expr, text: str) -> object:
    if name == "codec":
        return _from_tree(node, text)
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(word):
            return {"true": True, "false": False}.get(word, word)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
    raise ConfigError(f"cannot read {ast.unparse(node)!r} in the codec {text!r}: expected a number or a word")


def _build(name: str, arguments: dict[str, Any]) -> AnyCodec:
    _require_known(name)
    if unknown := [key for key in arguments if key not in _ARGUMENTS[name]]:
        raise ConfigError(f"unknown argument {unknown[0]!r} of {name}: {taken(_ARGUMENTS[name])}")
    for field in fields(_KINDS[name]):
        if field.default is MISSING and field.name not in arguments:
            raise ConfigError(f"{name} needs its {field.name}: {taken(_ARGUMENTS[name])}")
    made: AnyCodec = _KINDS[name](**arguments)
    return made


def _require_known(name: str) -> None:
    if name not in _ARGUMENTS:
        hint = meant(name, _ARGUMENTS)
        raise ConfigError(
            f"unknown codec {name!r}: {f'{hint}Choose' if hint else 'choose'} one of {', '.join(_ARGUMENTS)}, or name "
            "your own as path/to/file.py:ClassName"
        )
