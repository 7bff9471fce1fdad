"""What a model is trained to make small: losses of a sample, with weights or without, and which labels they take.

To add one: "How to add" in CONTRIBUTING.md. One of the user's own is named `file.py:Class` and needs none of that.
"""

from crosshatch.task.losses.label_checks import require_labels, require_target
from crosshatch.task.losses.sample_losses import (
    LOSSES,
    CrossEntropy,
    Logistic,
    MultiLogistic,
    SampleLoss,
    Squared,
    TaylorLogistic,
)
from crosshatch.task.losses.weighted_losses import ClassWeighted, Loss, SampleWeighted, predicted_classes, unweighted

__all__ = [
    "LOSSES", "ClassWeighted", "CrossEntropy", "Logistic", "Loss", "MultiLogistic", "SampleLoss", "SampleWeighted",
    "Squared", "TaylorLogistic", "predicted_classes", "require_labels", "require_target",
    "unweighted",
]  # fmt: skip
