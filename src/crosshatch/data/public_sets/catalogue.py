"""The sets a data folder may hold: licence, shape, what to expect in the file, and where the public source is."""

from dataclasses import dataclass
from pathlib import Path

from crosshatch.data.public_sets.archive_checks import (
    ArchiveCheck,
    Finding,
    channels,
    complete,
    counts,
    distinct,
    groups,
    idx_md5,
    jpeg,
    moments,
    run_check,
    shape,
    span,
)
from crosshatch.data.public_sets.builtin import BUILTIN
from crosshatch.data.public_sets.in_folder import locate, names_in, open_set
from crosshatch.data.public_sets.nus_wide import NUS_WIDE
from crosshatch.errors import DataError
from crosshatch.partition.features import unknown


@dataclass(frozen=True)
class PublicSet:
    """A public set. `get` says where it is and which arrays to save as NAME.npz."""

    licence: str
    shape: str
    get: str
    checks: tuple[ArchiveCheck, ...]
    train_rows: int | None = None
    split_by: str | None = None


_MNIST_TEST = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
_MNIST_TRAIN = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
_UCI = "https://archive.ics.uci.edu/dataset"
_PARTS = "x_train, y_train, x_test, y_test"

KNOWN: dict[str, PublicSet] = {
    "mnist": PublicSet(
        "CC BY-SA 3.0",
        "60000 + 10000 images 28 x 28, 10 classes",
        f"download the four idx files of http://yann.lecun.com/exdb/mnist (OpenML: mnist_784) and save {_PARTS}",
        (
            shape("x_train", 60000, 28, 28),
            shape("x_test", 10000, 28, 28),
            counts("y_train", *_MNIST_TRAIN),
            counts("y_test", *_MNIST_TEST),
            moments("x_train", 33.318, digits=3),
            idx_md5("x_train", "6bbc9ace898e44ae57da46a324031adb"),
            idx_md5("y_train", "a25bea736e30d166cdddb491f175f624"),
            idx_md5("x_test", "2646ac647ad5339dbf082846283269ea"),
            idx_md5("y_test", "27ae3e4e09519cfbb04c329615203637"),
        ),
    ),
    "credit_default": PublicSet(
        "CC BY 4.0",
        "30000 x 23, 2 classes",
        f"download {_UCI}/350 and save x, y, feature_names, feature_group (ID dropped)",
        (
            shape("x", 30000, 23),
            counts("y", 23364, 6636),
            complete("x"),
            span("x", 10000, 1000000, ["LIMIT_BAL"]),
            moments("x", 167484.32, digits=2, columns=["LIMIT_BAL"]),
            span("x", 21, 79, ["AGE"]),
            span("x", -2, 8, ["PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"]),
            groups(demographic_limit=5, pay_status=6, bill_amount=6, pay_amount=6),
        ),
    ),
    "epileptic_seizure": PublicSet(
        "CC BY 4.0",
        "11500 x 178, 5 classes",
        f"download {_UCI}/388, or cut the Bonn EEG recordings into 23 pieces of 178, and save x, y, recording, chunk",
        (
            shape("x", 11500, 178),
            counts("y", 2300, 2300, 2300, 2300, 2300),
            span("x", -1885, 2047),
            span("x", -1839, 1726, ["X1"]),
            moments("x", -11.581391, digits=6, columns=["X1"]),
            distinct("recording", 500),
            distinct("chunk", 23),
        ),
        split_by="recording",
    ),
    "superconductivity": PublicSet(
        "CC BY 4.0",
        "21263 x 81, regression",
        f"download {_UCI}/464 and save x, y (critical_temp), feature_names, feature_group",
        (
            shape("x", 21263, 81),
            complete("x"),
            span("y", 0.00021, 185),
            moments("y", 34.4212, digits=4),
            moments("x", 4.115224, digits=6, columns=["number_of_elements"]),
            moments("x", 2.041010, digits=6, columns=["range_Valence"]),
            groups(
                composition=1,
                atomic_mass=10,
                fie=10,
                atomic_radius=10,
                Density=10,
                ElectronAffinity=10,
                FusionHeat=10,
                ThermalConductivity=10,
                Valence=10,
            ),
        ),
    ),
    "pneumoniamnist": PublicSet(
        "CC BY 4.0",
        "4708 + 624 images 28 x 28, 2 classes",
        f"download pneumoniamnist.npz of https://medmnist.com and save {_PARTS} (labels of one dimension)",
        (
            shape("x_train", 4708, 28, 28),
            shape("x_val", 524, 28, 28),
            shape("x_test", 624, 28, 28),
            counts("y_train", 1214, 3494),
            counts("y_val", 135, 389),
            counts("y_test", 234, 390),
            moments("x_train", 0.5719, 0.1684, digits=4, scale=255),
        ),
    ),
    "physionet2012": PublicSet(
        "ODC-By 1.0",
        "4000 + 4000 stays, 48 hours x 37 + 5 static, 2 classes",
        "download https://physionet.org/content/challenge-2012 (set-a, set-b), average by hour and save "
        f"{_PARTS}, static_train, static_test, feature_names, static_names, feature_group",
        (
            shape("x_train", 4000, 48, 37),
            shape("x_test", 4000, 48, 37),
            shape("static_train", 4000, 5),
            counts("y_train", 3446, 554),
            counts("y_test", 3432, 568),
            ArchiveCheck(
                "ICU types of set-a 577 874 1481 1068",
                "577 874 1481 1068",
                lambda a: counts("type", 0).find(
                    {"type": a["static_train"][:, a["static_names"].tolist().index("ICUType")]}
                ),
            ),
            groups(vitals=11, laboratory=18, respiratory_fluid=8),
        ),
    ),
    "cifar10_subset": PublicSet(
        "free for research",
        "16000 + 3200 images 32 x 32 x 3, 10 classes",
        f"download https://www.cs.toronto.edu/~kriz/cifar.html, take 1600 + 320 images per class and save {_PARTS}",
        (
            shape("x_train", 16000, 32, 32, 3),
            shape("x_test", 3200, 32, 32, 3),
            counts("y_train", *[1600] * 10),
            counts("y_test", *[320] * 10),
            channels(("x_train",), (0.4914, 0.4822, 0.4465), 0.005),
        ),
    ),
    "cifar10_jpeg": PublicSet(
        "free for research",
        "50000 + 10000 JPEG images 32 x 32 x 3, 10 classes",
        "download https://www.cs.toronto.edu/~kriz/cifar.html and save jpeg_train, offset_train, y_train, jpeg_test, "
        "offset_test, y_test",
        (
            jpeg("train", 50000),
            jpeg("test", 10000),
            counts("y_train", *[5000] * 10),
            counts("y_test", *[1000] * 10),
        ),
    ),
    "madelon": PublicSet(
        "CC BY 4.0",
        "2600 x 500, 2 classes",
        f"download {_UCI}/171 and save x, y, the training rows first",
        (
            shape("x", 2600, 500),
            counts("y", 1300, 1300),
            counts("y", 1000, 1000, rows=slice(0, 2000)),
            span("x", 0, 999),
        ),
        train_rows=2000,
    ),
    "arcene": PublicSet(
        "CC BY 4.0",
        "200 x 10000, 2 classes",
        f"download {_UCI}/167 and save x, y, the training rows first",
        (
            shape("x", 200, 10000),
            counts("y", 112, 88),
            counts("y", 56, 44, rows=slice(0, 100)),
            span("x", 0, 999),
        ),
        train_rows=100,
    ),
    "gisette": PublicSet(
        "CC BY 4.0",
        "6000 + 1000 x 5000, 2 classes",
        f"download {_UCI}/170 and put gisette_train.data, .labels and gisette_valid.data, .labels there as they are",
        (
            shape("x_train", 6000, 5000),
            shape("x_test", 1000, 5000),
            counts("y_train", 3000, 3000),
            counts("y_test", 500, 500),
            span("x_train", 0, 999),
        ),
    ),
    NUS_WIDE: PublicSet(
        "free for research",
        "161789 + 107859 x 1634, 81 concepts",
        "download the low-level features, tags and ground truth of NUS-WIDE (National University of Singapore) and put "
        "the folders Low_Level_Features, NUS_WID_Tags and Groundtruth into a folder nus_wide there as they are",
        (),
    ),
}


@dataclass(frozen=True)
class DatasetLine:
    """A line of `crosshatch datasets`; `passed` of `checks` succeeded, both 0 where nothing can be checked."""

    name: str
    licence: str
    shape: str
    present: bool
    passed: int
    checks: int
    get: str


def check(name: str, folder: Path) -> list[Finding]:
    """Every check of a known set on the file in the folder."""
    if name not in KNOWN:
        raise DataError(str(unknown("data set", name, list(KNOWN), f"folder {folder}")))
    if not KNOWN[name].checks:
        return []  # large text files that are read once, in training
    archive = open_set(locate(folder, name))
    arrays = {key: archive[key] for key in archive}  # read once; most arrays serve several checks
    return [run_check(one, arrays) for one in KNOWN[name].checks]


def rows(folder: Path | None) -> list[DatasetLine]:
    """Built-in sets, known sets, and whatever else the folder holds."""
    listed = [DatasetLine(name, licence, size, True, 0, 0, source) for name, (licence, size, source) in BUILTIN.items()]
    for name, known in KNOWN.items():
        present = folder is not None and locate(folder, name).is_file()
        findings: list[Finding] = []
        if present:
            assert folder is not None
            try:
                findings = check(name, folder)
            except DataError as error:
                findings = [Finding("the file is readable", False, str(error))]
        passed = sum(finding.ok for finding in findings)
        listed.append(DatasetLine(name, known.licence, known.shape, present, passed, len(findings), known.get))
    return listed + [
        DatasetLine(name, "unknown", _shape_of(folder, name), True, 0, 0, "your own file")
        for name in known_names(folder)
        if folder is not None and name not in KNOWN and name not in BUILTIN
    ]


def known_names(folder: Path | None) -> list[str]:
    """Everything that [data] may name: built in, known, or a file of the folder."""
    own = names_in(folder) if folder is not None else []
    return list(dict.fromkeys([*BUILTIN, *KNOWN, *own]))


def _shape_of(folder: Path, name: str) -> str:
    try:
        archive = open_set(locate(folder, name))
        return " x ".join(str(size) for size in archive["x_train" if "x_train" in archive else "x"].shape)
    except (DataError, KeyError):
        return "unreadable"
