"""Settings without effect are refused, and names that were nearly right are guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from crosshatch import FederationSettings, ModelSettings, build_task, federate, load_dataset
from crosshatch.cli import main
from crosshatch.task.blocks import build_block
from crosshatch.task.build_task import _READ
from crosshatch.task.model_settings import BLOCK_NAMES

CONFIG = """
data = {name = "wine"}
algorithm = {name = "fedbcd"}
run = {rounds = 1, threads = 1}
"""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("model.hidden=[3]", "model.hidden has no effect on block 'linear': set model.block = 'mlp' or 'lstm', or"),
        ("model.activation=tanh", "model.activation has no effect on block 'linear': set model.block = 'mlp'"),
        ("model.channels=3", "model.channels has no effect on block 'linear': set model.block = 'cnn' or 'resnet18'"),
        ("model.dense=3", "model.dense has no effect"),
        ("model.norm=batch", "model.norm has no effect"),
        ("model.steps=2", "model.steps has no effect on block 'linear': set model.block = 'lstm'"),
        ("model.arguments={a = 1}", "model.arguments has no effect on block 'linear': set model.block = a class of"),
        ("model.head=mlp", "model.head has no effect without a head: set model.fusion = 'head'"),
        ("model.head_hidden=[3]", "model.head_hidden has no effect without a head"),
        (
            "model={fusion='head', head_hidden=[3]}",
            "model.head_hidden has no effect on a linear head: set",
        ),
        ("model.blocks.silo1.hidden=[3]", "model.blocks.silo1.hidden has no effect on block 'linear'"),
        ("model={block='mlp', blocks={silo1={block='linear', hidden=[3]}}}", "model.blocks.silo1.hidden has no effect"),
        ("algorithm.lr=0.1", "unknown key algorithm.lr: did you mean 'step_size'?"),
        ("algorithm.Q=5", "unknown key algorithm.Q: did you mean 'local_steps'?"),
        ("run.epochs=5", "unknown key run.epochs: did you mean 'rounds'?"),
        ("algorithm.name=fedBCD", "algorithm.name = 'fedBCD' is unknown: did you mean 'fedbcd'?"),
        ("algorithm.name=FedSGD", "did you mean 'fedsgd'?"),
        ("model.block=MLP", "unknown block 'MLP' in model.block: did you mean 'mlp'?"),
        ("model.loss=Logistic", "unknown loss 'Logistic' in model.loss: did you mean 'logistic'?"),
        ("evaluate.metrics=['AUC']", "unknown metric 'AUC' in evaluate.metrics: did you mean 'auc'?"),
        ("codecs.share=TopK(0.1)", "unknown codec 'TopK': did you mean 'topk'?"),
        ("Run.rounds=3", "unknown section [Run]: did you mean [run]?"),
        ("network.kind=Bandwidth", "network.kind = 'Bandwidth' is unknown: did you mean 'bandwidth'?"),
    ],
)
def test_refusals(change: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CONFIG
    if change.startswith("model={"):
        text, change = f"{CONFIG}\n{change.replace('model=', 'model = ', 1)}\n", "run.rounds=2"
    (tmp_path / "wine.toml").write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["train", str(tmp_path / "wine.toml"), "--out", str(tmp_path / "run"), "--quiet", "--set", change])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert words in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_what_one_silo_reads_has_an_effect() -> None:
    data = federate(load_dataset("wine"), FederationSettings(silos=2), seed=0)
    one = build_task(data, ModelSettings(hidden=(3,), blocks={"silo1": {"block": "mlp"}}), seed=0)
    other = build_task(data, ModelSettings(block="mlp", hidden=(3,), blocks={"silo1": {"block": "linear"}}), seed=0)
    # wine has 7 and 6 columns and 3 classes
    assert [layout.size for layout in one.layouts] == [7 * 3 + 3 + 3 * 3 + 3, 6 * 3 + 3]
    assert [layout.size for layout in other.layouts] == [7 * 3 + 3, 6 * 3 + 3 + 3 * 3 + 3]
    head = build_task(data, ModelSettings(fusion="head", head="mlp", head_hidden=(3,), activation="tanh"), seed=0).head
    assert head is not None
    assert [layer.out_features for layer in head.modules() if isinstance(layer, nn.Linear)] == [3, 3]
    assert any(isinstance(layer, nn.Tanh) for layer in head.modules())


CHANGED = {
    "hidden": (3,), "activation": "tanh", "bias": False, "zero_init": False, "channels": 8, "dense": 8, "norm": "batch",
    "steps": 2,
}  # fmt: skip
SHAPES = {"linear": (4,), "mlp": (4,), "cnn": (1, 8, 8), "lstm": (4,), "resnet18": (1, 8, 8)}


@pytest.mark.parametrize("block", BLOCK_NAMES)
def test_the_list_of_what_each_block_reads_is_right(block: str) -> None:
    """A key changes the block exactly if it is said to be read."""
    steps: dict[str, object] = {"steps": 4} if block == "lstm" else {}
    for key, value in CHANGED.items():
        given = value if key != "zero_init" or block == "linear" else True  # the opposite of the default
        plain, changed = _described(block, steps), _described(block, steps | {key: given})
        differs = plain != changed
        assert differs == (key in _READ[block]), key


def _described(block: str, settings: dict[str, object]) -> list[object]:
    module = build_block("a", SHAPES[block], 2, ModelSettings(block, **settings), seed=0)  # type: ignore[arg-type]
    return [str(module), *(parameter.sum().item() for parameter in module.parameters())]
