"""NUS-WIDE as it is published: 634 low-level features of images, 1,000 tags, and a label file for each concept.

    nus_wide/Low_Level_Features/Train_Normalized_CH.dat     and CM55, CORR, EDH, WT; numbers separated by spaces
    nus_wide/NUS_WID_Tags/Train_Tags1k.dat                  zeros and ones separated by tabs
    nus_wide/Groundtruth/TrainTestLabels/Labels_water_Train.txt   and one such file per concept; a zero or one per line

Row i is the same image in every file. `Test_` instead of `Train_` are the test rows.
"""

from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.data.dataset import Array, Raw, Samples
from crosshatch.errors import DataError, first_few, one_line
from crosshatch.partition.features import unknown

NUS_WIDE = "nus_wide"
FIRST = Path(NUS_WIDE, "NUS_WID_Tags", "Train_Tags1k.dat")  # the file by which the set is found in a data folder
_FEATURES = ("CH", "CM55", "CORR", "EDH", "WT")
_LABELS = Path("Groundtruth", "TrainTestLabels")


def read_nus_wide(path: Path, concept: str | int | None) -> Raw:
    """The set whose first file this is; samples are labelled with the concept, or as not having it.

    Columns are in two groups, "tags" and "images".
    """
    folder = path.parents[1]
    concepts = sorted(one.name.split("_")[1] for one in (folder / _LABELS).glob("Labels_*_Train.txt"))
    if not concepts:
        raise DataError(f"no file {folder / _LABELS / 'Labels_water_Train.txt'} or like it: put the labels there")
    if concept is None:
        some = first_few(concepts)
        raise DataError(f"data '{NUS_WIDE}' has many concepts: name one by data.positive, for example {some}")
    if concept not in concepts:
        raise unknown("concept", str(concept), concepts, "data.positive")
    train, test = (_samples(folder, part, str(concept)) for part in ("Train", "Test"))
    assert isinstance(train.x, pl.DataFrame)
    assert isinstance(test.x, pl.DataFrame)
    if train.x.columns != test.x.columns:
        raise DataError(f"{folder}: training rows have {train.x.width} columns, test rows {test.x.width}: get it again")
    columns = tuple(train.x.columns)
    groups = tuple("tags" if name.startswith("tag") else "images" for name in columns)
    return Raw(NUS_WIDE, "table", train, test, columns, groups)


def _samples(folder: Path, part: str, concept: str) -> Samples:
    features = folder / "Low_Level_Features"
    frames = [_numbers(folder / "NUS_WID_Tags" / f"{part}_Tags1k.dat", "\t", "tag")]
    frames += [_numbers(features / f"{part}_Normalized_{name}.dat", " ", f"{name}_") for name in _FEATURES]
    labels = folder / _LABELS / f"Labels_{concept}_{part}.txt"
    marks: Array = _numbers(labels, " ", "label").to_numpy()
    if marks.shape[1] != 1 or not np.isin(marks, (0, 1)).all():
        raise DataError(f"{labels} is not one zero or one per line: get it again")
    for frame, file in zip(frames, ("tags", *_FEATURES), strict=True):
        if len(frame) != len(marks):
            raise DataError(
                f"{labels} has {len(marks)} labels for the {len(frame)} rows of {file} ({part}): get the set again"
            )
    return Samples(pl.concat(frames, how="horizontal"), np.where(marks[:, 0] == 1, concept, f"not {concept}"))


def _numbers(path: Path, separator: str, prefix: str) -> pl.DataFrame:
    """The numbers of a file; a separator at the end of every line makes an empty column, which is left out."""
    if not path.is_file():
        raise DataError(f"no file {path}: get the whole set, see `crosshatch datasets`")
    try:
        frame = pl.read_csv(path, separator=separator, has_header=False, infer_schema_length=100, ignore_errors=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is unreadable: {one_line(error)[:200]}; get it again") from error
    if frame[frame.columns[-1]].is_null().all():
        frame = frame.drop(frame.columns[-1])
    if text := [name for name, kind in frame.schema.items() if not kind.is_numeric()]:
        raise DataError(f"{path}: column {frame.columns.index(text[0]) + 1} is not numbers: get it again")
    if frame.null_count().sum_horizontal().item():
        raise DataError(f"{path} has lines of different lengths: get it again")
    return frame.rename({name: f"{prefix}{i + 1}" for i, name in enumerate(frame.columns)})
