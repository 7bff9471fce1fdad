"""`data.classes`: the samples with some labels alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosshatch.data.dataset import Array, Raw, Samples
from crosshatch.data.labels import matching, some_labels
from crosshatch.data.looking.look_at_labels import folded_name
from crosshatch.errors import ConfigError, DataError


def keep_classes(raw: Raw, classes: Sequence[int | str], *, fold: bool) -> Raw:
    """The source without samples of other classes; `fold`: spellings of a name that was folded are one."""
    if len(set(map(str, classes))) < 2:
        raise ConfigError(f"data.classes = {list(classes)}: name at least two different labels, such as [3, 8]")
    parts = [part for part in (raw.train, raw.test, raw.validation, raw.alone) if part is not None]
    if raw.train.y.ndim != 1:
        raise ConfigError("data.classes goes with one column of labels, data.label names several: leave one out")
    known = {folded_name(str(name)): str(name) for name in np.unique(raw.train.y)} if fold else {}
    classes = [known.get(folded_name(one), one) if isinstance(one, str) else one for one in classes]
    for one in classes:
        if not matching(raw.train.y, one).any():
            raise DataError(
                f"data '{raw.name}': no training row has the label '{one}' (data.classes): use some of "
                f"{some_labels(np.concatenate([part.y for part in parts]))}"
            )

    def kept(samples: Samples | None) -> Samples | None:
        return None if samples is None else samples.take(np.flatnonzero(_wanted(samples.y, classes)))

    train = kept(raw.train)
    assert train is not None
    official = raw.train_rows
    return replace(
        raw,
        train=train,
        test=kept(raw.test),
        validation=kept(raw.validation),
        alone=kept(raw.alone),
        train_rows=None if official is None else int(_wanted(raw.train.y[:official], classes).sum()),
    )


def _wanted(y: Array, classes: Sequence[int | str]) -> Array:
    wanted: Array = np.any([matching(y, one) for one in classes], axis=0)
    return wanted
