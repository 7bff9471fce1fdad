"""Blocks from a user's own file: what is passed, and one line for everything that can be wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from crosshatch.errors import ModelError
from crosshatch.task.blocks import build_block
from crosshatch.task.model_settings import ModelSettings

SOURCE = """
from __future__ import annotations
import math
from dataclasses import dataclass
from torch import nn

@dataclass(frozen=True)
class Sizes:
    hidden: int

class Net(nn.Module):
    def __init__(self, input_shape, outputs, hidden=4):
        super().__init__()
        self.sizes = Sizes(hidden)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), hidden), nn.Linear(hidden, outputs))
    def forward(self, x):
        return self.net(x)

class Fixed(nn.Linear):
    def __init__(self):
        super().__init__(3, 2)

class Anything(nn.Linear):
    def __init__(self, **everything):
        super().__init__(everything["input_shape"][0], everything["outputs"])

class Failing(nn.Module):
    def __init__(self):
        raise ValueError("no weights\\nfor today")

class NotAModule:
    pass

instance = nn.Linear(1, 1)
"""


@pytest.fixture(name="folder")
def folder_with_nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "nets.py").write_text(SOURCE)
    return tmp_path


def build(block: str, folder: Path, shape: tuple[int, ...] = (3,), **arguments: object) -> nn.Module:
    return build_block("bank", shape, 2, ModelSettings(block, arguments=arguments), seed=0, folder=folder)


@pytest.mark.parametrize("name", ["Net", "Fixed", "Anything"])
def test_a_class_gets_the_arguments_it_takes(folder: Path, name: str) -> None:
    assert build(f"nets.py:{name}", folder)(torch.zeros(5, 3)).shape == (5, 2)


def test_own_arguments_are_passed_on(folder: Path) -> None:
    block = build("nets.py:Net", folder, (4, 2), hidden=7)
    assert sum(parameter.numel() for parameter in block.parameters()) == (8 + 1) * 7 + (7 + 1) * 2


def test_absolute_paths_and_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(build(f"{folder / 'nets.py'}:Fixed", folder / "elsewhere"), nn.Linear)
    monkeypatch.chdir(folder)
    assert isinstance(build_block("bank", (3,), 2, ModelSettings("nets.py:Fixed")), nn.Linear)


def test_files_of_one_name_in_two_folders_are_two(folder: Path) -> None:
    other = folder / "other"
    other.mkdir()
    (other / "nets.py").write_text("from torch import nn\nclass Fixed(nn.Linear):\n    pass\n")
    first = build("nets.py:Fixed", folder)
    second = build("nets.py:Fixed", other, in_features=9, out_features=2)
    assert type(first).__module__ != type(second).__module__


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent.py:Net", r"absent\.py of a block does not exist"),
        ("nets.py:Nothing", "has no class 'Nothing'"),
        ("nets.py:NotAModule", "derive NotAModule from torch"),
        ("nets.py:instance", "is not a torch.nn.Module class"),
        ("nets.py:Failing", "ValueError: no weights for today"),
        ("broken.py:Net", "could not be read: SyntaxError"),
        ("raising.py:Net", "could not be read: ZeroDivisionError"),
        ("notes.txt:Net", r"must end in \.py"),
    ],
)
def test_mistakes_are_told_in_one_line(folder: Path, name: str, reason: str) -> None:
    (folder / "broken.py").write_text("class Net(:\n")
    (folder / "raising.py").write_text("1 / 0\n")
    (folder / "notes.txt").write_text("nothing")
    modules = set(sys.modules)
    with pytest.raises(ModelError, match=reason) as caught:
        build(name, folder)
    assert str(caught.value).startswith("silo 'bank': ")
    assert "\n" not in str(caught.value)
    assert not {module for module in set(sys.modules) - modules if "broken" in module or "raising" in module}


def test_an_argument_the_class_does_not_take(folder: Path) -> None:
    with pytest.raises(ModelError, match="unexpected keyword argument 'depth'"):
        build("nets.py:Net", folder, depth=3)


def test_zero_init_is_left_to_the_class(folder: Path) -> None:
    with pytest.raises(ModelError, match="zero_init is for built-in blocks"):
        build_block("bank", (3,), 2, ModelSettings("nets.py:Fixed", zero_init=True), folder=folder)
