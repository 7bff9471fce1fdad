"""A party with its own block alone computes, bit for bit, what it computes in the whole task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.errors import ModelError
from crosshatch.local.forward import forward
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.problem import LossInputs, Part, Problem
from crosshatch.local.solve import Strategy, solve
from crosshatch.task.elsewhere import Elsewhere
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import CrossEntropy
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from tests.local.problems import FEATURES, block, naive_blocks

SCORES, ROWS, HOLDER = 3, 12, 1
COUNTS = np.array([5, 0, 4, 3])
NAMES = ("bank", "insurer", "shop")
FUSIONS = ["sum", "head"]
SILOS = [0, 1, 2]
# With labels or with derivatives; who holds the head holds the labels.
CASES = [(f, j, d) for f in FUSIONS for j in SILOS for d in (False, True) if (f, j, d) != ("head", HOLDER, True)]


def widths(fusion: str) -> tuple[int, ...]:
    return (SCORES,) * 3 if fusion == "sum" else (2, 4, 3)


def whole(fusion: str, kind: str = "mlp") -> Task:
    torch.manual_seed(2)
    head = nn.Sequential(nn.Linear(9, 4), nn.Tanh(), nn.Linear(4, SCORES)).double()
    blocks = tuple(block(kind, width) for width in widths(fusion))
    made: Fusion = Sum() if fusion == "sum" else Head(head, HOLDER)
    return Task(blocks, made, CrossEntropy(), Regulariser(l2=0.1), NAMES)


def party(task: Task, fusion: str, silo: int, *, derivatives: bool = False) -> Task:
    """What one silo has of it; without labels and not the holder, it never sees the head."""
    its: Fusion = task.fusion
    if derivatives and task.head is not None and not task.holds_head(silo):
        its = Head(Elsewhere(SCORES), HOLDER)
    return Task.of_party(silo, task.blocks[silo], widths(fusion), its, task.loss, task.regulariser, NAMES)


def samples() -> tuple[list[Tensor], Tensor]:
    draw = torch.Generator().manual_seed(4)
    return [torch.randn(ROWS, FEATURES, generator=draw, dtype=torch.float64) for _ in NAMES], torch.arange(ROWS) % 3


def local_work(task: Task, fusion: str, silo: int, known: LossInputs, head: Tensor | None, x: Tensor) -> Problem:
    return Problem(
        task, silo, (Part(x, known, COUNTS),), task.initial()[silo], None if task.holds_head(silo) else head,
        task.fusion.columns(widths(fusion), silo), LocalSteps(2, 0.3),
    )  # fmt: skip


@pytest.mark.parametrize("silo", SILOS)
@pytest.mark.parametrize("fusion", FUSIONS)
def test_has_the_numbers_of_its_own_silo_alone(fusion: str, silo: int) -> None:
    task = whole(fusion)
    mine = party(task, fusion, silo)
    assert torch.equal(mine.initial()[silo], task.initial()[silo])
    assert mine.trained[silo] is task.trained[silo] is None
    assert mine.sent[silo] == task.sent[silo]
    for other in set(SILOS) - {silo}:
        assert not list(mine.blocks[other].parameters())
        with pytest.raises(ModelError, match=r"with another party"):
            mine.embed(other, mine.initial()[other], samples()[0][other])


@pytest.mark.parametrize("silo", SILOS)
@pytest.mark.parametrize("fusion", FUSIONS)
def test_embeddings_and_derivatives(fusion: str, silo: int) -> None:
    task, (xs, y) = whole(fusion), samples()
    mine = party(task, fusion, silo)
    weights = task.initial()
    embeddings = [task.embed(j, weights[j], x).detach() for j, x in enumerate(xs)]
    assert torch.equal(mine.embed(silo, weights[silo], xs[silo]), embeddings[silo])
    ours, theirs = (forward(t, silo, weights[silo], xs[silo], keep=False, threads=1)[0] for t in (mine, task))
    assert torch.equal(ours, theirs)
    (others,) = mine.fusion.others(embeddings, [silo])
    assert others.shape[1] == mine.fusion.others_width(widths(fusion), silo)
    columns = mine.fusion.columns(widths(fusion), silo)
    found, wanted = (
        t.derivative(embeddings[silo], others, y, columns=columns, head=task.head_in(weights)) for t in (mine, task)
    )
    assert torch.equal(found, wanted)
    # Independently: torch's own loss on torch's own modules.
    leaves = [one.clone().requires_grad_() for one in embeddings]
    scores = sum(leaves) if task.head is None else task.head(torch.cat(leaves, dim=1))
    assert isinstance(scores, Tensor)
    loss = nn.functional.cross_entropy(scores, y, reduction="sum")
    torch.testing.assert_close(found, torch.autograd.grad(loss, leaves[silo])[0])


@pytest.mark.parametrize(
    ("kind", "strategy"), [("mlp", "loop"), ("mlp", "stacked"), ("mlp", "gram"), ("gated", "loop")]
)
@pytest.mark.parametrize(("fusion", "silo", "derivatives"), CASES)
def test_local_steps(fusion: str, silo: int, derivatives: bool, kind: str, strategy: Strategy) -> None:
    task, (xs, y) = whole(fusion, kind), samples()
    mine = party(task, fusion, silo, derivatives=derivatives)
    weights = task.initial()
    head = task.head_in(weights)
    embeddings = [task.embed(j, weights[j], x).detach() for j, x in enumerate(xs)]
    (others,) = task.fusion.others(embeddings, [silo])
    columns = task.fusion.columns(widths(fusion), silo)
    known = LossInputs(y=y, rest=others)
    if derivatives:
        known = LossInputs(derivative=task.derivative(embeddings[silo], others, y, columns=columns, head=head))
    received = None if isinstance(mine.head, Elsewhere) else head
    ours = local_work(mine, fusion, silo, known, received, xs[silo])
    theirs = local_work(task, fusion, silo, known, head, xs[silo])
    found, wanted = (
        solve([problem], [torch.full((4,), 0.25).double()], keep=True, strategy=strategy, threads=1)[0]
        for problem in (ours, theirs)
    )
    assert torch.equal(found, wanted)
    torch.testing.assert_close(found, naive_blocks(theirs))


@pytest.mark.parametrize("silo", SILOS)
@pytest.mark.parametrize("fusion", FUSIONS)
def test_fit_is_checked_with_what_is_there(fusion: str, silo: int) -> None:
    mine, x = party(whole(fusion), fusion, silo), samples()[0][silo]
    assert mine.check_fit([x] * 3, SCORES) == widths(fusion)
    assert mine.to("cpu", torch.float32).check_fit([x.float()] * 3, SCORES) == widths(fusion)
    unseen = party(whole(fusion), fusion, silo, derivatives=True)
    assert unseen.check_fit([x] * 3, SCORES) == widths(fusion)


def test_refusals() -> None:
    own = nn.Linear(FEATURES, SCORES)
    x = [torch.ones(4, FEATURES)] * 2
    with pytest.raises(ModelError, match=r"silo 'silo2' has embeddings of width 2, the sum needs 3"):
        Task.of_party(0, own, (SCORES, 2), Sum(), CrossEntropy()).check_fit(x, SCORES)
    with pytest.raises(ModelError, match=r"the head does not take 5 embedding numbers"):
        Task.of_party(0, own, (SCORES, 2), Head(nn.Linear(6, SCORES), 0), CrossEntropy()).check_fit(x, SCORES)
    with pytest.raises(ModelError, match=r"silo number 2 of 2"):
        Task.of_party(2, own, (SCORES, SCORES), Sum(), CrossEntropy())
    with pytest.raises(ModelError, match=r"embeddings of width 0"):
        Task.of_party(0, own, (SCORES, 0), Sum(), CrossEntropy())
    with pytest.raises(ModelError, match=r"no trainable parameters"):
        replace(Task.of_party(0, own, (SCORES, SCORES), Sum(), CrossEntropy()), blocks=(nn.ReLU(), Elsewhere(SCORES)))
