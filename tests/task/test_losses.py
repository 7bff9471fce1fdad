"""Losses against torch's own, derivatives against autograd."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from crosshatch.errors import ModelError
from crosshatch.task import losses
from crosshatch.task.losses import CrossEntropy, Logistic, Squared, TaylorLogistic, require_target
from crosshatch.task.model_settings import LOSS_NAMES

Plain = Squared | Logistic | CrossEntropy
LOSSES: list[Plain] = [Squared(), Logistic(), CrossEntropy()]
leading = st.lists(st.integers(1, 3), max_size=2)


def draw(loss: Plain, shape: list[int], classes: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random scores (*shape, c) in float64 and labels (*shape,) that fit the loss."""
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(*shape, loss.scores(classes), generator=generator, dtype=torch.float64)
    if isinstance(loss, CrossEntropy):
        return scores, torch.randint(classes, shape, generator=generator)
    if isinstance(loss, Logistic):
        return scores, torch.randint(2, shape, generator=generator).double()
    return scores, torch.randn(shape, generator=generator, dtype=torch.float64)


def reference(loss: Plain, scores: Tensor, y: Tensor) -> Tensor:
    """Per-sample values by torch's functional losses, (n,)."""
    if isinstance(loss, CrossEntropy):
        return functional.cross_entropy(scores, y, reduction="none")
    if isinstance(loss, Logistic):
        return functional.binary_cross_entropy_with_logits(scores[:, 0], y, reduction="none")
    return functional.mse_loss(scores[:, 0], y, reduction="none") / 2


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@settings(deadline=None)  # the first autograd call loads libraries
@given(front=leading, n=st.integers(1, 6), classes=st.integers(2, 5), seed=st.integers(0, 999))
def test_derivative_equals_autograd(loss: Plain, front: list[int], n: int, classes: int, seed: int) -> None:
    scores, y = draw(loss, [*front, n], classes, seed)
    scores.requires_grad_(True)
    values = loss.value(scores, y)
    (expected,) = torch.autograd.grad(values.sum(), scores)
    assert values.shape == y.shape
    torch.testing.assert_close(loss.derivative(scores.detach(), y), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@settings(deadline=None)  # the first autograd call loads libraries
@given(front=leading, n=st.integers(1, 6), classes=st.integers(2, 5), seed=st.integers(0, 999))
def test_value_equals_torch(loss: Plain, front: list[int], n: int, classes: int, seed: int) -> None:
    scores, y = draw(loss, [*front, n], classes, seed)
    expected = reference(loss, scores.reshape(-1, scores.shape[-1]), y.reshape(-1)).reshape(y.shape)
    torch.testing.assert_close(loss.value(scores, y), expected, rtol=1e-9, atol=1e-9)


def test_logistic_is_stable_far_out() -> None:
    scores = torch.tensor([[1000.0], [-1000.0], [1000.0], [-1000.0], [30.0]])
    y = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0])
    values = Logistic().value(scores, y)
    torch.testing.assert_close(values[:4], torch.tensor([0.0, 0.0, 1000.0, 1000.0]))
    assert values[4].item() == pytest.approx(math.exp(-30), rel=1e-5)  # not rounded to zero in float32
    torch.testing.assert_close(Logistic().derivative(scores, y)[:4, 0], torch.tensor([0.0, 0.0, 1.0, -1.0]))


def test_autograd_at_a_zero_score_agrees_with_the_derivative() -> None:
    scores = torch.zeros(2, 1, requires_grad=True)
    y = torch.tensor([0.0, 1.0])
    (gradient,) = torch.autograd.grad(Logistic().value(scores, y).sum(), scores)
    torch.testing.assert_close(gradient, torch.tensor([[0.5], [-0.5]]))


def test_cross_entropy_is_stable_far_out() -> None:
    scores = torch.tensor([[1000.0, -1000.0, 0.0]]).repeat(2, 1)
    y = torch.tensor([0, 1])
    torch.testing.assert_close(CrossEntropy().value(scores, y), torch.tensor([0.0, 2000.0]))
    expected = torch.tensor([[0.0, 0.0, 0.0], [1.0, -1.0, 0.0]])
    torch.testing.assert_close(CrossEntropy().derivative(scores, y), expected)


def test_two_class_softmax_is_logistic_of_the_difference() -> None:
    scores, y = draw(CrossEntropy(), [50], 2, 3)
    margin = scores[:, 1:] - scores[:, :1]
    torch.testing.assert_close(CrossEntropy().value(scores, y), Logistic().value(margin, y.double()))
    torch.testing.assert_close(CrossEntropy().predict(scores)[:, 1], Logistic().predict(margin))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_derivative_leaves_scores_alone_and_keeps_their_precision(loss: Plain) -> None:
    scores, y = draw(loss, [4], 3, 1)
    before = scores.clone()
    assert loss.derivative(scores, y).dtype == torch.float64
    assert torch.equal(scores, before)
    single = loss.derivative(scores.float(), y if isinstance(loss, CrossEntropy) else y.float())
    assert single.dtype == torch.float32


def test_predictions() -> None:
    torch.testing.assert_close(Squared().predict(torch.tensor([[2.5]])), torch.tensor([2.5]))
    torch.testing.assert_close(Logistic().predict(torch.tensor([[0.0], [math.log(3)]])), torch.tensor([0.5, 0.75]))
    torch.testing.assert_close(CrossEntropy().predict(torch.zeros(2, 4)), torch.full((2, 4), 0.25))


def test_scores_per_sample() -> None:
    assert [loss.scores(7) for loss in LOSSES] == [1, 1, 7]
    with pytest.raises(ModelError, match="at least 2 classes"):
        CrossEntropy().scores(1)


def test_a_loss_for_other_labels_is_refused() -> None:
    require_target(Logistic(), "binary")
    with pytest.raises(ModelError, match="use 'cross_entropy'"):
        require_target(Logistic(), "multiclass")


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@given(front=leading, n=st.integers(1, 6), classes=st.integers(2, 5), seed=st.integers(0, 999))
def test_a_derivative_goes_on_without_the_label(loss: Plain, front: list[int], n: int, classes: int, seed: int) -> None:
    scores, y = draw(loss, [*front, n], classes, seed)
    moved = torch.randn(scores.shape, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
    found = loss.continued(loss.derivative(scores, y), moved)
    torch.testing.assert_close(found, loss.derivative(scores + moved, y), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_derivative_stays_where_nothing_moves_however_inexact(loss: Plain) -> None:
    width = loss.scores(4)
    inexact = 3 * torch.randn(50, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    inexact[:5] = 0
    assert torch.equal(loss.continued(inexact, torch.zeros_like(inexact)), inexact)
    moved = torch.full_like(inexact, 2.0)
    assert torch.isfinite(loss.continued(inexact, moved)).all()


@pytest.mark.parametrize("scores", [40.0, 800.0, -800.0])
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples_without_doubt_stay_finite(scores: float, label: int, dtype: torch.dtype) -> None:
    at, y = torch.tensor([[scores]], dtype=dtype), torch.tensor([float(label)], dtype=dtype)
    derivative = Logistic().derivative(at, y)
    for moved in (-1.0, 0.0, 1.0):
        found = Logistic().continued(derivative, torch.full_like(at, moved))
        assert torch.isfinite(found).all()
        assert (
            float((found - Logistic().derivative(at + moved, torch.tensor([float(label)], dtype=dtype))).abs()) < 1e-5
        )
    both = torch.cat([at, -at], dim=1)
    chosen = torch.tensor([label])
    found = CrossEntropy().continued(CrossEntropy().derivative(both, chosen), torch.tensor([[1.0, -1.0]], dtype=dtype))
    assert torch.isfinite(found).all()


def test_the_taylor_form_agrees_with_the_logistic_loss_up_to_second_order() -> None:
    """Value, first and second derivative at score 0, by autograd; and the whole of it by its formula."""
    y = torch.tensor([0.0, 1.0], dtype=torch.float64)
    found = []
    for loss in (Logistic(), TaylorLogistic()):
        scores = torch.zeros(2, 1, dtype=torch.float64, requires_grad=True)
        value = loss.value(scores, y)
        (first,) = torch.autograd.grad(value.sum(), scores, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), scores)
        found.append([value.detach(), first.detach()[:, 0], second[:, 0]])
    for exact, taylor in zip(*found, strict=True):
        torch.testing.assert_close(taylor, exact)
    scores = torch.tensor([[-3.0], [0.7]], dtype=torch.float64)
    wanted = [math.log(2) - 3 / 2 + 9 / 8, math.log(2) - 0.35 + 0.49 / 8]
    assert TaylorLogistic().value(scores, y).tolist() == pytest.approx(wanted)


def test_the_taylor_form_has_the_derivative_of_its_value_wherever_scores_have_moved() -> None:
    generator = torch.Generator().manual_seed(3)
    scores, moved = torch.randn(2, 9, 1, generator=generator, dtype=torch.float64)
    y = torch.arange(9, dtype=torch.float64) % 2
    loss = TaylorLogistic()
    leaf = (scores + moved).requires_grad_()
    (wanted,) = torch.autograd.grad(loss.value(leaf, y).sum(), leaf)
    torch.testing.assert_close(loss.derivative(scores + moved, y), wanted)
    torch.testing.assert_close(loss.continued(loss.derivative(scores, y), moved), wanted)
    assert loss.predict(scores).tolist() == Logistic().predict(scores).tolist()


@pytest.mark.parametrize("label", [0, 1])
def test_a_logistic_derivative_fades_alike_for_both_labels(label: int) -> None:
    """In float32 a certain sample of label 1 is told by exp(-score), as one of label 0 is by exp(score)."""
    margins = torch.tensor([[5.0], [17.0], [25.0], [60.0]])
    y = torch.full((4,), float(label))
    found = Logistic().derivative(margins * (2 * label - 1), y)
    wanted = (1 - 2 * label) * torch.sigmoid(-margins.double())
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=0)
    back = torch.full_like(margins, -16.0 * (2 * label - 1))
    gone_on = Logistic().continued(found, back).double()
    torch.testing.assert_close(gone_on, (1 - 2 * label) * torch.sigmoid(16 - margins.double()), rtol=1e-4, atol=0)


def test_a_certain_sample_of_several_classes_still_tells() -> None:
    scores = torch.tensor([[25.0, 0.0, 3.0], [1.0, 40.0, 0.0]])
    y = torch.tensor([0, 1])
    derivative = CrossEntropy().derivative(scores, y)
    wanted = CrossEntropy().derivative(scores.double(), y)
    torch.testing.assert_close(derivative.double(), wanted, rtol=1e-4, atol=0)
    moved = torch.tensor([[-23.0, 0.0, 0.0], [0.0, -39.0, 1.0]])
    later = CrossEntropy().derivative((scores + moved).double(), y)
    torch.testing.assert_close(CrossEntropy().continued(derivative, moved).double(), later, rtol=1e-4, atol=0)


def test_a_derivative_of_several_classes_that_does_not_tell_stays() -> None:
    """No negative number, so no label: zeros that a codec left, or one that it rounded upwards."""
    derivative = torch.tensor([[0.0, 0.0, 0.0], [0.2, 0.0, 0.1], [-0.5, 0.25, 0.25]], dtype=torch.float64)
    moved = torch.tensor([[3.0, -1.0, 0.0]] * 3, dtype=torch.float64)
    found = CrossEntropy().continued(derivative, moved)
    assert torch.equal(found[:2], derivative[:2])
    assert not torch.equal(found[2], derivative[2])


def test_configs_know_the_names_of_all_losses() -> None:
    assert ("auto", *losses.LOSSES) == LOSS_NAMES
