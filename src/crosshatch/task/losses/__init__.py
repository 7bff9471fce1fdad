"""What a model is trained to make small: losses of a sample, with weights or without, and which labels they take.

To add one: a class with what `SampleLoss` asks for and an entry in `LOSSES`, both in `sample_losses.py`, its name in
`task/model_settings.py`, and in this file and `crosshatch/__init__.pyi`. The order of `LOSSES` decides what "auto"
takes: a new one stands at the end. One with an argument of its own is built in `find_loss.py`; agents on a graph refuse
a loss until `protocol/agents.py` names it, which it may only where `local/visits/` and the duals of both engines
compute it; weights of classes need a case in `weighted_losses.py`. One of the user's own is named `file.py:Class` and
needs none of these.
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
