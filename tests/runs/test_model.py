"""From [model] and the data to the task."""

from __future__ import annotations

import pytest
import torch

from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ModelError
from crosshatch.seeds import torch_seed
from crosshatch.task.blocks import build_block
from crosshatch.task.build_task import build_task, resolve_model
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.model_settings import BlockChanges, ModelSettings
from crosshatch.trees import flatten


def divide(name: str = "wine", labels: str = "shared") -> FederatedData:
    return federate(load_dataset(name), FederationSettings(silos=2, labels=labels), seed=1)


@pytest.mark.parametrize(
    ("name", "loss", "outputs"),
    [("wine", "cross_entropy", 3), ("breast_cancer", "logistic", 1), ("diabetes", "squared", 1)],
)
def test_the_loss_follows_the_labels(name: str, loss: str, outputs: int) -> None:
    resolved = resolve_model(divide(name), ModelSettings())
    assert (resolved.loss, resolved.outputs) == (loss, outputs)


def test_initial_weights_come_from_the_seed_and_the_silo() -> None:
    data = divide()
    settings = ModelSettings(block="mlp", hidden=(4,))
    torch.manual_seed(99)  # must not matter
    first = build_task(data, settings, seed=5).initial()
    for number, (silo, weights) in enumerate(zip(data.silos, first, strict=True)):
        alone = build_block(
            silo.name,
            (silo.train.shape[1],),
            3,
            ModelSettings("mlp", hidden=(4,)),
            seed=torch_seed(5, "initial", number),
        )
        assert torch.equal(weights, flatten(alone))
    other = build_task(data, settings, seed=6).initial()
    assert not torch.equal(first[0], other[0])


def test_one_silo_may_differ() -> None:
    changes: dict[str, BlockChanges] = {"silo2": {"block": "mlp", "hidden": (5,), "outputs": 7}}
    task = build_task(divide(), ModelSettings(fusion="head", outputs=2, blocks=changes), seed=0)
    assert isinstance(task.fusion, Head)
    widths = task.check_fit([silo.train[:2] for silo in divide().silos], 3)
    assert widths == (2, 7)


@pytest.mark.parametrize(
    ("labels", "given", "holder"), [("shared", None, 0), ("silo2", None, 1), ("silo2", "silo1", 0)]
)
def test_who_holds_the_head(labels: str, given: str | None, holder: int) -> None:
    settings = ModelSettings(fusion="head", head="mlp", head_hidden=(4,), head_holder=given)
    task = build_task(divide(labels=labels), settings, seed=0)
    assert isinstance(task.fusion, Head)
    assert task.fusion.holder == holder


def test_the_sum_is_the_default() -> None:
    assert build_task(divide(), ModelSettings(), seed=0).fusion == Sum()


def test_an_unknown_key_from_python() -> None:
    wrong: dict[str, BlockChanges] = {"silo1": {"blok": "mlp"}}  # type: ignore[typeddict-unknown-key]
    with pytest.raises(ModelError, match=r"unknown key model.blocks.silo1.blok: allowed are activation"):
        build_task(divide(), ModelSettings(blocks=wrong), seed=0)
