"""Ten messy files as banks, insurers and hospitals export them, and what `crosshatch check` must say of each."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

ROWS = 120


@dataclass(frozen=True)
class Messy:
    """The bytes of a file, its settings in [data], lines that must be said, and kinds its columns must have."""

    name: str
    content: bytes
    says: tuple[str, ...]
    kinds: dict[str, str]
    settings: dict[str, object] = field(default_factory=dict)


def lines(header: str, row: Callable[[int, random.Random], str], rows: int = ROWS) -> list[str]:
    draw = random.Random(4)
    return [header, *(row(i, draw) for i in range(rows))]


def text(all_lines: Sequence[str], ending: str = "\n") -> str:
    return ending.join(all_lines) + ending


def german(number: float) -> str:
    return f"{number:,.2f}".replace(",", "X").replace(".", ",").replace("X", ".")


def day(i: int) -> date:
    return date(2015, 1, 1) + timedelta(days=37 * i)


def excel_in_germany() -> Messy:
    found = lines(
        "Kunden-Nr;Kontostand ;Eröffnet;Ort;Kündigung",
        lambda i, draw: (
            f"{i + 1};{german(draw.gauss(2500, 4000))};{day(i):%d.%m.%Y};{draw.choice(['Köln', 'Zürich'])};"
            f"{'ja' if i % 3 else 'nein'}"
        ),
    )
    found = ["Kundenliste;;;;", "", *found[:50], "", *found[50:], "", "", ""]
    says = (
        "not UTF-8 (line 3, byte 0xf6), read as cp1252", "separated by semicolons", "2 lines above the header",
        "1 empty line between rows left out, first line 53", "'Kontostand': numbers with decimal comma",
        "'Eröffnet' has dates, written %d.%m.%Y",
    )  # fmt: skip
    kinds = {"Kunden-Nr": "id", "Kontostand": "number", "Eröffnet": "date", "Ort": "category", "Kündigung": "label"}
    return Messy(
        "germany", text(found, "\r\n").encode("cp1252"), says, kinds, {"id": "Kunden-Nr", "label": "Kündigung"}
    )


def thousands_in_quotes() -> Messy:
    found = lines(
        "income,rate,label",
        lambda i, draw: f'"{draw.randrange(1000, 9999):,}",{draw.random():.2f},{i % 2}',
    )  # fmt: skip
    says = ("numbers with decimal points, thousands commas, as other columns have decimal points", "is read as")
    return Messy("thousands", text(found).encode(), says, {"income": "number", "rate": "number"})


def unicode_text() -> Messy:
    found = lines(
        "name\tincome\tlabel", lambda i, draw: f"Kunde {i} von {draw.random()}\t{draw.randrange(900, 5000)}\t{i % 2}"
    )
    says = ("read as utf-16", "separated by tabs", "column 'name' is left out: free text")
    return Messy("unicode", text(found).encode("utf-16"), says, {"name": "free text", "income": "number"})


def namibia() -> Messy:
    found = lines(
        "country,age,income,label",
        lambda i, draw: (
            f"{draw.choice(['NA', 'DE', 'ZA'])},{'n.a.' if i == 7 else draw.randrange(18, 80)},"
            f"{'NA' if i % 11 == 0 else draw.randrange(1000, 5000)},{i % 2}"
        ),
    )
    says = (
        "column 'country': the word 'NA' (", "counts as missing: set data.csv.nulls = []",
        "'NA' counts as missing among numbers: 'income' (11)", "'n.a.' counts as missing among numbers: 'age' (1)",
    )  # fmt: skip
    return Messy("namibia", text(found).encode(), says, {"country": "category", "age": "number"}, {"impute": "median"})


def spellings() -> Messy:
    found = lines(
        "product,town,label",
        lambda i, draw: (
            f"{draw.choice(['Giro', 'giro', 'Spar'])}, {draw.choice(['Bonn', 'Ulm '])},"
            f"{draw.choice(['yes', 'Yes', 'YES ']) if i % 3 else 'no'}"
        ),
    )
    says = (
        "labels that differ in capitals or spaces only are one class", "categories that look alike, 'Giro', 'giro'",
        "spaces around",
    )  # fmt: skip
    return Messy("spellings", text(found).encode(), says, {"product": "category", "town": "category"})


def placeholders() -> Messy:
    found = lines(
        "age,balance,closed,label",
        lambda i, draw: (
            f"{-999 if i % 30 == 0 else draw.randrange(18, 90)},{draw.gauss(0, 1000):.2f},"
            f"{'9999-12-31' if i % 2 else day(i).isoformat()},{draw.randrange(2)}"
        ),
    )
    says = (
        "column 'age' has -999 (4 times), and otherwise", "column 'closed' has 60 dates up to 1900 or",
    )  # fmt: skip
    return Messy("placeholders", text(found).encode(), says, {"age": "number", "closed": "date"})


def codes() -> Messy:
    found = lines(
        "customer_id,zip,branch_code,since,iban,label",
        lambda i, draw: (
            f"{i + 1000},{draw.choice([1067, 10115, 80331]):05},{draw.choice([17, 21, 33])},"
            f"{day(i):%Y%m%d},DE{draw.randrange(10**18):018},{draw.randrange(2)}"
        ),
    )
    says = (
        "column 'customer_id' is another whole number in every row", "column 'zip' has leading zeros",
        "column 'branch_code' is read as a number, and its name sounds like a code",
        "column 'since' looks like dates written as numbers",
        "column 'iban' is left out: text that is another in nearly every row",
    )  # fmt: skip
    return Messy("codes", text(found).encode(), says, {"zip": "category", "iban": "identifier", "since": "number"})


def money_and_units() -> Messy:
    found = lines(
        "premium,share,weight,change,label",
        lambda i, draw: (
            f'"$1,{draw.randrange(100, 999)}.50",{draw.randrange(100)} %,{draw.randrange(50, 99)} kg,'
            f"{f'({draw.randrange(90)})' if i % 2 else draw.randrange(90)},{draw.randrange(2)}"
        ),
    )
    says = ("without $", "without %", "without kg", "brackets or a minus behind as minus")
    kinds = dict.fromkeys(("premium", "share", "weight", "change"), "number")
    return Messy("money", text(found).encode("utf-8-sig"), says, kinds)


def leak_and_totals() -> Messy:
    found = lines(
        "id,branch,amount,cancelled_on,empty,same,label,",
        lambda i, draw: f"{i},b{i % 3},{draw.randrange(500)},{day(i).isoformat() if i % 2 else ''},,x,{i % 2},",
    )
    found = ["# exported at night", *found, "999,Total,31000,,,x,0,"]
    says = (
        "the last row has 'Total' in column 'branch'", "column 'cancelled_on' nearly tells the label by itself",
        "column 'empty' has no values", "column 'same' is 'x' in all rows", "1 line above the header",
        "column without name and values left out", "column 'cancelled_on' is mostly missing",
    )  # fmt: skip
    kinds = {"id": "id", "empty": "empty", "same": "constant", "cancelled_on": "date"}
    return Messy("leak", text(found).encode(), says, kinds, {"id": "id", "impute": "median"})


def american_dates_and_remarks() -> Messy:
    found = lines(
        "opened,remark,visits,rare,label",
        lambda i, draw: (
            f'{day(i):%m/%d/%Y},"said:\n""{draw.random()}"" and then left, we never knew why",{draw.randrange(9)},'
            f"{'' if i % 3 else 1.5},{int(i % 20 == 0)}"
        ),
        rows=240,
    )
    says = (
        "'opened' has dates, written %m/%d/%Y", "column 'remark' is left out: free text", "'rare' is mostly missing",
        "few test rows ('1' 2)",
    )  # fmt: skip
    return Messy(
        "american", text(found).encode(), says, {"opened": "date", "remark": "free text"}, {"impute": "median"}
    )


MESSY = tuple(
    make()
    for make in (
        excel_in_germany, thousands_in_quotes, unicode_text, namibia, spellings, placeholders, codes, money_and_units,
        leak_and_totals, american_dates_and_remarks,
    )
)  # fmt: skip
