"""What a model of two classes comes to once somebody decides by it: a threshold, who is right, and whether it may be
believed when it says 80%."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who reads decisions from a file need not wait for numpy
    import numpy as np
    import numpy.typing as npt

    from crosshatch.task.measuring.ranks import Floats

BINS = 10


@dataclass(frozen=True)
class Bin:
    """Samples whose probability lies in one tenth: how many, their mean probability and the share that is positive."""

    samples: int = 0
    probability: float = 0.0
    positive: float = 0.0


@dataclass(frozen=True)
class Decisions:
    """Positive are samples whose probability is above `threshold`; `on_validation` tells who chose that.

    Without validation rows it is 0.5. `reliability` has no bins without samples. Defaults are for
    what files of another version do not say.
    """

    threshold: float = 0.5
    on_validation: bool = False
    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    true_negatives: int = 0
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    reliability: tuple[Bin, ...] = ()


def decide(
    probabilities: Floats, y: npt.NDArray[np.int64], validation: tuple[Floats, npt.NDArray[np.int64]] | None = None
) -> Decisions:
    """Decisions on samples with probabilities (n,) and labels y (n,) in {0, 1}.

    The threshold has the highest F1 on the probabilities and labels of the validation rows, where both classes occur.

    >>> import numpy as np
    >>> found = decide(np.array([0.2, 0.6, 0.9]), np.array([0, 0, 1]))
    >>> found.threshold, found.precision, found.recall
    (0.5, 0.5, 1.0)
    """
    import numpy as np

    from crosshatch.task.measuring.ranks import best_threshold

    chosen = validation is not None and len(np.unique(validation[1])) == 2
    threshold = best_threshold(validation[0], validation[1] == 1) if chosen and validation is not None else 0.5
    predicted, positive = probabilities > threshold, y == 1
    hits, false, missed = (
        int(np.sum(predicted & positive)), int(np.sum(predicted & ~positive)), int(np.sum(~predicted & positive))
    )  # fmt: skip
    place = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
    return Decisions(
        threshold=threshold,
        on_validation=chosen,
        true_positives=hits,
        false_positives=false,
        false_negatives=missed,
        true_negatives=len(y) - hits - false - missed,
        precision=hits / (hits + false) if hits + false else 0.0,
        recall=hits / (hits + missed) if hits + missed else 0.0,
        f1=2 * hits / (2 * hits + false + missed) if hits + false + missed else 0.0,
        reliability=tuple(
            Bin(int(np.sum(own)), float(probabilities[own].mean()), float(positive[own].mean()))
            for own in (place == k for k in range(BINS))
            if own.any()
        ),
    )
