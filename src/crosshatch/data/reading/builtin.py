"""Small sets that ship with scikit-learn: nothing to download, nothing to place in a folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from crosshatch.data.dataset import Samples
from crosshatch.data.make_dataset import Raw

BUILTIN = {
    "breast_cancer": ("CC BY 4.0", "569 x 30, 2 classes", "UCI 17 (Wolberg et al., 1995), within scikit-learn"),
    "digits": ("CC BY 4.0", "1797 images 8 x 8, 10 classes", "UCI 80 (Alpaydin and Kaynak, 1998), within scikit-learn"),
    "wine": ("CC BY 4.0", "178 x 13, 3 classes", "UCI 109 (Aeberhard and Forina, 1992), within scikit-learn"),
    "diabetes": (
        "free for research",
        "442 x 10, regression",
        "Efron et al., Annals of Statistics 32 (2004), within scikit-learn",
    ),
}


def load_builtin(name: str) -> Raw:
    """One of `BUILTIN`. Breast cancer has the groups mean, error and worst; digits are images in [0, 1]."""
    from sklearn import datasets  # late: it takes a second

    bunch: Any = getattr(datasets, f"load_{name}")()
    licence, _, source = BUILTIN[name]
    y = np.asarray(bunch.target)
    if name == "digits":
        images = np.asarray(bunch.images, dtype=np.float32) / 16  # four bits and one: 0..16
        return Raw(name, "image", Samples(images, y), None, (), licence=licence, source=source)
    columns = tuple(str(column).strip() for column in bunch.feature_names)
    groups: tuple[str, ...] = ()
    if name == "breast_cancer":
        groups = tuple(next(g for g in ("mean", "error", "worst") if g in column) for column in columns)
    frame = pl.DataFrame({column: bunch.data[:, i] for i, column in enumerate(columns)})
    return Raw(name, "table", Samples(frame, y), None, columns, groups, licence, source)
