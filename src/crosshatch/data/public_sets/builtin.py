"""Small sets that ship with scikit-learn, and a made one: nothing to download, nothing to place in a folder."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosshatch.data.dataset import Raw, Samples

BUILTIN = {
    "breast_cancer": ("CC BY 4.0", "569 x 30, 2 classes", "UCI 17 (Wolberg et al., 1995), within scikit-learn"),
    "digits": ("CC BY 4.0", "1797 images 8 x 8, 10 classes", "UCI 80 (Alpaydin and Kaynak, 1998), within scikit-learn"),
    "wine": ("CC BY 4.0", "178 x 13, 3 classes", "UCI 109 (Aeberhard and Forina, 1992), within scikit-learn"),
    "diabetes": (
        "free for research", "442 x 10, regression", "Efron et al., Annals of Statistics 32 (2004), within scikit-learn"
    ),
    "mtcd_ridge": (
        "made here", "1000 + 200 x 2000, regression",
        "drawn as in the MTCD paper (Valdeira et al., 2022): features 0 or 1, labels normal and unrelated to them",
    ),
}  # fmt: skip


_WINE = (
    "alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "total_phenols", "flavanoids",
    "nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue", "od280/od315_of_diluted_wines", "proline",
)  # fmt: skip
_NUCLEI = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points", "symmetry",
    "fractal dimension",
)  # fmt: skip
_BREAST_CANCER = {
    **{f"mean {name}": "mean" for name in _NUCLEI},
    **{f"{name} error": "error" for name in _NUCLEI},
    **{f"worst {name}": "worst" for name in _NUCLEI},
}


def load_builtin(name: str) -> Raw:
    """One of `BUILTIN`. Breast cancer has the groups mean, error and worst; digits are images in [0, 1]."""
    if name == "mtcd_ridge":
        return _made_ridge()
    if name == "digits":
        values = np.loadtxt(_file("digits.csv.gz"), delimiter=",")
        images = values[:, :-1].reshape(-1, 8, 8).astype(np.float32) / 16  # four bits and one: 0..16
        return Raw(name, "image", Samples(images, values[:, -1].astype(np.int64)), None, ())
    if name == "diabetes":
        from sklearn import datasets  # late: it takes a second, and the files hold columns that it scales

        bunch: Any = datasets.load_diabetes()
        columns, x, y = tuple(bunch.feature_names), bunch.data, bunch.target
    else:
        columns = _WINE if name == "wine" else tuple(_BREAST_CANCER)
        values = np.loadtxt(
            _file("wine_data.csv" if name == "wine" else "breast_cancer.csv"), delimiter=",", skiprows=1
        )
        x, y = values[:, :-1], values[:, -1].astype(np.int64)
    groups = tuple(_BREAST_CANCER.values()) if name == "breast_cancer" else ()
    frame = pl.DataFrame({column: x[:, i] for i, column in enumerate(columns)})
    return Raw(name, "table", Samples(frame, np.asarray(y)), None, columns, groups)


def _made_ridge() -> Raw:
    """N = 1000 and d = 2000 as in section VI of the paper; 200 further rows, since every set here has test rows."""
    random = np.random.default_rng(0)
    columns = tuple(f"x{i}" for i in range(2000))
    train, test = (
        Samples(pl.DataFrame(random.integers(0, 2, (rows, 2000)).astype(np.float64), schema=list(columns)),
                random.standard_normal(rows))
        for rows in (1000, 200)
    )  # fmt: skip
    return Raw("mtcd_ridge", "table", train, test, columns)


def _file(name: str) -> Path:
    """A file within scikit-learn, found without importing it."""
    found = find_spec("sklearn")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "datasets" / "data" / name
