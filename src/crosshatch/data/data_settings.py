"""The config sections [data] and [federation] as values; `msgspec.convert` makes them from TOML tables."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Literal

Impute = Literal["none", "mean", "median", "zero"]


@dataclass(frozen=True)
class CsvSettings:
    """How text files are written, as `data.csv` or a silo's `csv`; what is left out is guessed, and said.

    `separator` is `,` `;` `|` or "tab"; `decimal` and `thousands` are marks in numbers, `thousands = ""` means that
    there are none. `nulls` are words that mean a missing value in columns of text, besides an empty cell; among numbers
    the usual ones always do. `dates` is "day first", "month first", a format such as "%d.%m.%Y", or "text". `numbers`
    names columns to be read as numbers in spite of leading zeros. `header` says whether the first line names the
    columns, `skip` how many lines stand above it, `comment` what lines to leave out begin with, and `quote` what may
    stand around a value ("" for nothing).

    >>> CsvSettings(separator=";", decimal=",").encoding is None
    True
    """

    separator: str | None = None
    decimal: Literal[".", ","] | None = None
    thousands: Literal[",", ".", " ", "'", ""] | None = None
    encoding: str | None = None
    nulls: tuple[str, ...] | None = None
    dates: str | None = None
    numbers: tuple[str, ...] = ()
    header: bool | None = None
    skip: int | None = None
    comment: str | None = None
    quote: str = '"'

    def over(self, other: CsvSettings) -> CsvSettings:
        """These settings, and those of another where these say nothing."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(other, **{key: value for key, value in own.items() if value != getattr(CsvSettings, key)})


@dataclass(frozen=True)
class Preparation:
    """What a silo does to its columns before training, every number fitted on its own training rows.

    `categorical` names numeric columns that are codes, to be one-hot encoded like text. `indicators` adds a 0/1
    column for missing values where they are imputed. `clip` cuts values further than so many standard deviations from
    the mean.

    >>> Preparation(impute="median", clip=4.0).standardise
    True
    """

    standardise: bool = True
    one_hot: bool = True
    categorical: tuple[str, ...] = ()
    impute: Impute = "none"
    indicators: bool = True
    clip: float | None = None


@dataclass(frozen=True)
class DataSettings:
    """Section [data]: a known set by `name`, or an own CSV or Parquet file by `path`, and how to prepare it.

    `test_path` is a file with the test rows; otherwise `test_fraction` of the rows is put aside, drawn with
    `split_seed` (not the run's seed, so that runs with different seeds are tested on the same rows). `validation` is
    the fraction of the training rows that is put aside to choose the best round by, or a file with such rows; left out,
    there are none. `split_by` names a column whose equal values stay on one side; "none" draws rows at random, also
    where a set brings such a column or an official order. `classes` keeps the samples with these labels alone.
    `positive` makes the task one class against the rest; `balance` keeps as many training samples of every class as the
    rarest has, `limit` so many in all; `leave_out` names columns nobody gets. `summaries` makes a table of sequences,
    see `summarise`. Where silos have files of their own, `path` may name a further file that holds only ids and labels.
    A list of columns as `label` are yes-or-no labels, any number of which may be true of a sample. `sample_weights`
    names a column with each training sample's weight in the loss; validation and test samples all count the same. With
    `fold_classes` labels that differ in capitals or spaces only are one class.

    >>> DataSettings(path="customers.csv", id="id", label="default", impute="mean").preparation.impute
    'mean'
    """

    name: str | None = None
    path: str | None = None
    id: str | None = None
    label: str | tuple[str, ...] | None = None
    sample_weights: str | None = None
    target: Literal["auto", "classes", "regression"] = "auto"
    classes: tuple[int | str, ...] = ()
    positive: int | str | None = None
    test_path: str | None = None
    test_fraction: float = 0.2
    validation: float | str | None = None
    split_by: str | None = None
    split_seed: int = 0
    balance: bool = False
    limit: int | None = None
    leave_out: tuple[str, ...] = ()
    summaries: bool = False
    standardise: bool = True
    one_hot: bool = True
    categorical: tuple[str, ...] = ()
    impute: Impute = "none"
    indicators: bool = True
    clip: float | None = None
    csv: CsvSettings = field(default_factory=CsvSettings)
    fold_classes: bool = True

    @property
    def labels(self) -> tuple[str, ...]:
        if self.label is None:
            return ()
        return (self.label,) if isinstance(self.label, str) else self.label

    @property
    def preparation(self) -> Preparation:
        """The part of this section that a silo applies to its own columns."""
        return Preparation(**{field.name: getattr(self, field.name) for field in fields(Preparation)})


@dataclass(frozen=True)
class SampleSplit:
    """How samples are dealt to clients (or to groups).

    `permutation`: contiguous blocks of a seeded permutation. `column`: one client for each value of `column`.
    `dirichlet`: each class is spread over the clients in proportions drawn from Dirichlet(`alpha`). `main_labels`:
    `main_share` of a client's samples have one of its `main` labels, the rest other labels. `sizes` are samples per
    client, equal if not given (for `permutation` and `main_labels`).

    >>> SampleSplit("dirichlet", alpha=0.1).alpha
    0.1
    """

    kind: Literal["permutation", "column", "dirichlet", "main_labels"] = "permutation"
    sizes: tuple[int, ...] | None = None
    column: str | None = None
    alpha: float = 0.5
    main: int = 2
    main_share: float = 0.8


Clients = int | Literal["each"]


@dataclass(frozen=True)
class SiloSettings:
    """One silo of [[federation.silos]]: its name and what it holds, by one of the following.

    `columns` (names, or patterns like `PAY_*`) and `groups` (named groups of columns), `span` (columns from..to by
    position, the end not included), `window` (top, bottom, left, right pixels of an image, ends not included), or
    `path` (a file of its own, with the id column `id`; `test_path` and `validation_path` have further rows). `clients`,
    `sizes` and `samples` override the federation's.

    >>> SiloSettings("bank", columns=("LIMIT_BAL", "PAY_*"), clients=10).name
    'bank'
    """

    name: str
    columns: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    span: tuple[int, int] | None = None
    window: tuple[int, int, int, int] | None = None
    path: str | None = None
    test_path: str | None = None
    validation_path: str | None = None
    id: str | None = None
    clients: Clients | None = None
    sizes: tuple[int, ...] | None = None
    samples: SampleSplit | None = None
    csv: CsvSettings = field(default_factory=CsvSettings)


@dataclass(frozen=True)
class FederationSettings:
    """Section [federation]: the silos, their clients, who has the labels, and the outer groups if any.

    `silos` is a list, or a number of silos that share the columns evenly. `split` says how silos without explicit
    columns divide: `columns` (even slices of the columns; of an image, vertical strips), `halves` (left and right half
    of an image) or `patches` (`patches` = rows, columns of a grid). `clients` is the number of clients per silo (in
    each group), or "each" for one client per sample. `labels` is "shared" or the name of the silo that holds them.
    `aligned` divides the samples in the same way in silos with the same number of clients; otherwise each draws one.
    `groups` is a number, or numbers where groups nest: [2, 5] are two regions of five groups each. `branches` in the
    same way are nodes between a silo's hub and its clients, for an algorithm with several tiers below the vertical one.
    `common` is for transfer between two silos: how many training samples both have, or their share of them, or "all";
    the silo with the labels has the others too, the other silo has them unlabelled and does not train on them.
    `only` keeps the columns of these silos alone, on the rows that all silos have in common and with their labels: what
    would one of them have by itself?

    >>> FederationSettings(split="patches", patches=(2, 2), clients=10, labels="shared").patches
    (2, 2)
    """

    silos: tuple[SiloSettings, ...] | int | None = None
    split: Literal["columns", "halves", "patches"] = "columns"
    patches: tuple[int, int] = (2, 2)
    clients: Clients = 1
    labels: str = "shared"
    samples: SampleSplit = field(default_factory=SampleSplit)
    aligned: bool = False
    groups: int | tuple[int, ...] = 1
    group_samples: SampleSplit = field(default_factory=SampleSplit)
    branches: int | tuple[int, ...] = 1
    common: int | float | Literal["all"] | None = None
    only: tuple[str, ...] = ()
