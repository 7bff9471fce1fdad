"""Text files as people export them: every dialect is read as it was meant, or a line says otherwise."""

from __future__ import annotations

import csv
import io
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosshatch.data.build import load_dataset
from crosshatch.data.data_settings import CsvSettings, DataSettings, FederationSettings, SiloSettings
from crosshatch.data.reading.tables import ReadingRules, Table, read_table, table_batches
from crosshatch.errors import ConfigError, DataError


def read(tmp_path: Path, text: str | bytes, **given: object) -> Table:
    path = tmp_path / "a.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, ReadingRules(CsvSettings(**given)))  # type: ignore[arg-type]


AMOUNTS = "a;b\n" + "".join(f"{i}.{100 + i},5{i % 7};x\n" for i in range(1, 31))
DAYS = "a,b\n" + "".join(f"{1 + i % 12}/{i}/2015,x\n" for i in range(1, 31))


def said(table: Table) -> str:
    return "\n".join(map(str, table.notes))


@pytest.mark.parametrize(
    ("text", "settings", "values", "word"),
    [
        ("a;b\n1,5;x\n2;y\n", {}, [1.5, 2.0], "separated by semicolons"),
        ("a;b\n1,5;x\n2;y\n", {}, [1.5, 2.0], "'a': numbers with decimal comma, thousands points: '1,5' is read"),
        ("a\tb\n1.5\tx\n2\ty\n", {}, [1.5, 2.0], "separated by tabs"),
        ("a|b\n1.5|x\n2|y\n", {}, [1.5, 2.0], "separated by bars"),
        ("sep=;\na;b\n1;x\n2;y\n", {}, [1, 2], "separated by semicolons"),
        ('a,b\n"1,169.50",x\n2,y\n', {}, [1169.5, 2.0], "'1,169.50' is read as 1169.5"),
        ('a,b\n"1,169",0.25\n"2,096",3.5\n', {}, [1169, 2096], "as other columns have decimal points"),
        ('a,b\n"1,169","0,25"\n"2,096","3,5"\n', {}, [1.169, 2.096], "as other columns have decimal commas"),
        ("a;b\n1.169;0,25\n2.096;3,5\n", {}, [1169, 2096], "as other columns have decimal commas"),
        ("a;b\n1.169;0.25\n2.096;3.5\n", {}, [1.169, 2.096], "separated by semicolons"),
        ("a;b\n1.169;0,25\nn.a.;3,5\n", {}, [1169, None], "as other columns have decimal commas"),
        ("a;b\n1.169;n.a.\n2.096;3,5\n", {}, [1169, 2096], "as other columns have decimal commas"),
        ("a;b\n1.169;x\n2.096;y\n", {"decimal": "."}, [1.169, 2.096], "separated by semicolons"),
        ('a,b\n"1,169",x\n"2,096",y\n', {"decimal": "."}, [1169, 2096], "'1,169' is read as 1169"),
        ('a,b\n"1,169",x\n"2,096",y\n', {"decimal": ","}, [1.169, 2.096], "'1,169' is read as 1.169"),
        ('a,b\n"1,169",x\n"2,096",y\n', {"thousands": ","}, [1169, 2096], "'1,169' is read as 1169"),
        ("a,b\n1 169,x\n22,y\n", {}, [1169, 22], "thousands spaces"),
        ("a,b\n1\u00a0169,x\n22,y\n", {}, [1169, 22], "thousands spaces"),
        ("a,b\n1'169.5,x\n22,y\n", {}, [1169.5, 22.0], "thousands apostrophes"),
        ("a,b\n12 %,x\n7%,y\n", {}, [12, 7], "without %"),
        ("a;b\n€ 1.200,50;x\n€ 3;y\n", {}, [1200.5, 3.0], "without €"),
        ("a,b\n(500),x\n20,y\n", {}, [-500, 20], "brackets or a minus behind as minus"),
        ("a,b\n500-,x\n20,y\n", {}, [-500, 20], "brackets or a minus behind as minus"),
        ("a,b\n007,x\n12,y\n", {}, ["007", "12"], ""),
        ('a,b\n"=""007""",x\n12,y\n', {}, ["007", "12"], "Excel's"),
        (f"a,b\n{10**20},x\n{10**20 + 1},y\n", {}, [str(10**20), str(10**20 + 1)], ""),
        ('"a" , "b"\n"5" , "x, y"\n"7" , "z"\n', {}, [5, 7], "spaces around 2 values"),
        ("a b\n5 x\n7 y\n", {}, [5, 7], "separated by spaces"),
        ("a,b\n1/31/1970 6:00 PM,x\n1/1/1970 6:00 AM,y\n", {}, [30.75, 0.25], "%I:%M %p"),
        ("a,b\n007,x\n12,y\n", {"numbers": ("a",)}, [7, 12], ""),
        ("a,b\nNA,x\n12,y\n", {}, [None, 12], "'NA' counts as missing among numbers: 'a' (1)"),
        ("a,b\n-999,x\n12,y\n", {"nulls": ("-999",)}, [None, 12], "'-999' counts as missing among numbers"),
        ("b,a\n1,NA\n2,DE\n", {}, [None, "DE"], "column 'a': the word 'NA' (once) counts as missing"),
        ("b,a\n1,NA\n2,DE\n", {"nulls": ()}, ["NA", "DE"], ""),
        ("b,a\n1,-\n2,DE\n", {}, ["-", "DE"], "column 'a': '-' (once) is a category of its own"),
        ("a,b\nTRUE,x\nfalse,y\n", {}, [True, False], ""),
        ("a,b\n2024-01-31,x\n1970-01-02,y\n", {}, [19753.0, 1.0], "'a' has dates, written %Y-%m-%d"),
        ("a,b\n31.1.2024,x\n02.01.1970,y\n", {}, [19753.0, 1.0], "'a' has dates, written %d.%m.%Y"),
        ("a,b\n01/31/2024,x\n01/02/1970,y\n", {}, [19753.0, 1.0], "'a' has dates, written %m/%d/%Y"),
        ("a,b\n01/02/1970,x\n1/2/1970,y\n", {"dates": "month first"}, [1.0, 1.0], "written %m/%d/%Y"),
        ("a,b\n01/02/1970,x\n1/2/1970,y\n", {"dates": "day first"}, [31.0, 31.0], "written %d/%m/%Y"),
        ("a,b\n1970-01-01 06:00,x\n1970-01-02 12:00,y\n", {}, [0.25, 1.5], "%H:%M"),
        ("a,b\n1970-01-01T06:00:00Z,x\n1970-01-02T12:00:00Z,y\n", {}, [0.25, 1.5], "%z"),
        ("a,b\n01.02.1970,x\n01.03.1970,y\n", {"dates": "month first"}, [1.0, 2.0], "written %m.%d.%Y"),
        ("a,b\n01.02.68,x\n01.01.70,y\n", {}, [35825.0, 0.0], "years from 69 on are of the 20th century"),
        ("a,b\n01.02.1970,x\n03.02.1970,y\n", {"dates": "text"}, ["01.02.1970", "03.02.1970"], ""),
        ("a,b\n  5 ,x\n7,y\n", {}, [5, 7], "spaces around 1 values (or Excel's"),
        (" a , b\n5,x\n7,y\n", {}, [5, 7], ""),
        ("a,b\n5,x\n\n7,y\n\n\n", {}, [5, 7], "1 empty line between rows left out, first line 3; 2 rows"),
        ("a,b\n5,x\n,\n7,y\n", {}, [5, 7], "1 empty line between rows left out, first line 3"),
        ("a,b\n5,x\n7,y\n\n\n\n", {}, [5, 7], ""),
        ("a,b\n5,x\n# half time\n7,y\n", {}, [5, 7], "1 line with # in front left out as comments, first line 3"),
        ("a,b\n5,x\n!z\n7,y\n", {"comment": "!"}, [5, 7], ""),
        ("List of customers\n\na,b,c\n5,x,1\n7,y,2\n", {}, [5, 7], "2 lines above the header left out, 'List of"),
        ("Report\na,b\n5,x\n7,y\n", {}, [5, 7], "1 line above the header left out, 'Report'"),
        ("#b,a\nx,5\ny,7\n", {}, [5, 7], ""),
        ("# b\nb,a\nx,5\ny,7\n", {}, [5, 7], "1 line above the header left out, '# b'"),
        ("x\ny\na,b\n5,x\n7,y\n", {"skip": 2}, [5, 7], "2 lines above the header"),
        ('a,b\n5,"two\nlines"\n7,"a, ""b"""\n', {}, [5, 7], ""),
        ("a;b;\n5;x;\n7;y;\n", {}, [5, 7], "1 column without name and values left out"),
        ("a,b\n5,x\n7,Total\n8,z\n12,Total\n", {}, [5, 7, 8, 12], ""),
        ("b,a\nx,5\ny,7\nTotal,12\n", {}, [5, 7, 12], "the last row has 'Total' in column 'b'"),
    ],
)  # fmt: skip
def test_what_is_written_is_what_is_read(
    tmp_path: Path, text: str, settings: dict[str, object], values: list[object], word: str
) -> None:
    table = read(tmp_path, text, **settings)
    assert table.frame["a"].to_list() == values
    assert word in said(table)
    if not word:
        assert said(table) == ""
    batches = list(table_batches(table.path, ReadingRules(CsvSettings(**settings), readings=table.readings), rows=1))  # type: ignore[arg-type]
    assert pl.concat(batches, how="vertical_relaxed")["a"].to_list() == values


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ('a,b\n"1,169",x\n"2,096",y\n', {}, r"'a' has '1,169' in row 1, which may be 1169 or 1.169, and nothing .*set"),
        ("a;b\n1.169;x\n2.096;y\n", {}, r"'a' has '1.169' in row 1, which may be 1.169 or 1169, and nothing .*set"),
        (AMOUNTS + "keine Angabe;x\n", {}, r"'a' has 1 value like 'keine Angabe' \(row 31\) among numbers: .*nulls"),
        (DAYS + "00/00/0000,x\n", {}, r"'a' has 1 value like '00/00/0000' \(row 31\) among dates: .*data.csv.nulls"),
        ('a,b\n"3,5",x\n2.5,y\n', {}, r"'a' has numbers that are not written in one way, for example '3,5', '2.5'"),
        ("a,b\n12%,x\n0.12,y\n", {}, r"not written in one way, for example '12%', '0.12'"),
        ("a;b\n0.5;x\n1.25;y\n", {"decimal": ","}, r"not written in one way \(data.csv.decimal = ','\)"),
        ("a,b\n03/04/2024,x\n", {}, r"dates like '03/04/2024', in which either number may be the month: set data.csv"),
        ("a,b\n" + "".join(f"{i}.5,x\n" for i in range(30)) + "n.b.,y\n", {}, r"has 1 value like 'n.b.' \(row 31\)"),
        ("a,b\n" + "".join(f"{i + 1:02}.01.2024,x\n" for i in range(30)) + "soon,y\n", {}, r"'soon' .* among dates"),
        ("a,b\n2024-01-31,x\n31.01.2024,y\n", {}, r"dates that are not written in one way, or are none: '2024"),
        ("a,b\n31.02.2024,x\n31.01.2024,y\n", {}, r"dates that are not written in one way, or are none: '31.02.2024'"),
        ('a,b\n"1,23,456",x\n"2,00,000",y\n', {}, r"numbers that are not written in one way"),
        ("a,b\n1,2\n3\n4,5\n", {}, r"a.csv, line 3: 1 value, and the header names 2 columns"),
        ("5.1,3.5,x\n4.9,3.0,y\n", {}, r"first line looks like a row.*'5.1', '3.5', 'x'.*data.csv.header = false"),
        ("a,a \n1,2\n", {}, r"2 columns are called 'a'"),
        ('a,b\n1,"x\n2,y\n', {}, r"line 2: a quotation mark \(\"\) is opened and never closed"),
        ("a,b\n1,2\n", {"encoding": "klingon"}, r"data.csv.encoding = \"klingon\" is not an encoding"),
        ("a,b\n1,2\n", {"separator": ";;"}, r"data.csv.separator = ';;': it is one character"),
        ("a,b\n1,2\n", {"decimal": ",", "thousands": ","}, r"decimal and thousands are both ','"),
        ("a,b\n1,2\n", {"skip": -1}, r"data.csv.skip = -1"),
        ("a,b\n1,2\n", {"quote": "''"}, r"data.csv.quote = '''': it is one character"),
        (b"PK\x03\x04\x00\x00" * 50, {}, r"is not a text file: save it as CSV"),
        ("", {}, r"has no rows"),
        ("\n\n", {}, r"has no rows"),
    ],
)  # fmt: skip
def test_refusals_name_the_place_and_the_remedy(
    tmp_path: Path, text: str | bytes, settings: dict[str, object], message: str
) -> None:
    with pytest.raises((DataError, ConfigError), match=message) as caught:
        read(tmp_path, text, **settings)
    assert "\n" not in str(caught.value)


def test_no_header(tmp_path: Path) -> None:
    table = read(tmp_path, "5.1,3.5,x\n4.9,3.0,y\n", header=False)
    assert table.frame.columns == ["column 1", "column 2", "column 3"]
    assert table.frame["column 1"].to_list() == [5.1, 4.9]
    years = read(tmp_path, "2019,2020\n1,3\n2,4\n")
    assert years.frame.columns == ["2019", "2020"]
    assert "the names of the columns are numbers" in said(years)


UMLAUTS = "ort,zahl\nKöln,1\nZürich,2\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"])
def test_encodings_are_found_out(tmp_path: Path, encoding: str) -> None:
    table = read(tmp_path, UMLAUTS.encode(encoding))
    assert table.frame["ort"].to_list() == ["Köln", "Zürich"]
    assert table.frame["zahl"].to_list() == [1, 2]
    assert (said(table) == "") == encoding.startswith("utf-8")
    if encoding in ("cp1252", "latin-1"):
        assert "not UTF-8 (line 2, byte 0xf6), read as cp1252: if letters look wrong save it as UTF-8" in said(table)


def test_bytes_that_are_nothing_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a.csv, line 3, byte 2: 0x81 is not utf-8: save the file as UTF-8 .*cp1252"):
        read(tmp_path, b"a,b\n1,2\n3\x81,4\n")
    with pytest.raises(DataError, match=r"line 2, byte 2: 0xf6 is not utf-8.*: save the file as UTF-8"):
        read(tmp_path, UMLAUTS.encode("cp1252"), encoding="utf-8")
    assert read(tmp_path, UMLAUTS.encode("cp1252"), encoding="cp1252").notes == ()


def test_a_later_file_is_read_as_the_first(tmp_path: Path) -> None:
    """What would be read differently by itself, and what cannot be read at all."""
    first = read(tmp_path, "a;b;c\n1,5;x;NA\n2.000,25;y;DE\n", nulls=())
    (tmp_path / "new.csv").write_text("a;b;c\n1.500;x;NA\n")
    new = read_table(tmp_path / "new.csv", ReadingRules(CsvSettings(nulls=()), readings=first.readings))
    assert new.frame.row(0) == (1500, "x", "NA")
    (tmp_path / "new.csv").write_text("a;b;c\n1,5;x;DE\n1.50;x;DE\n")
    with pytest.raises(DataError, match=r"'a' has '1.50' in row 2, and it holds numbers with decimal comma.*one way"):
        read_table(tmp_path / "new.csv", ReadingRules(readings=first.readings))
    with pytest.raises(DataError, match=r"'a' has '1.50' in row 2"):
        list(table_batches(tmp_path / "new.csv", ReadingRules(readings=first.readings), rows=1))


def test_ids_are_whole_numbers_in_all_batches_or_in_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\n" + "".join(f"{i},1\n" for i in range(9)) + "T-9,1\n")
    batches = list(table_batches(tmp_path / "a.csv", ReadingRules(ids=frozenset(["id"])), rows=3))
    assert [batch["id"].dtype for batch in batches] == [pl.String] * len(batches)
    assert pl.concat(batches)["id"].to_list() == [*map(str, range(9)), "T-9"]


words = st.text(st.characters(codec="cp1252", exclude_categories=["Cc", "Zs", "Cn"]), min_size=1, max_size=8).map(
    lambda word: f"w{word.strip()}"
)


@given(
    rows=st.lists(st.tuples(st.integers(-(10**7), 10**7), st.integers(0, 99), words), min_size=3, max_size=30),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    marks=st.sampled_from([(".", ""), (".", ","), (",", "."), (",", " "), (".", "'"), (",", "")]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    ending=st.sampled_from(["\n", "\r\n"]),
    blank=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_any_dialect_comes_back(
    tmp_path: Path,
    rows: list[tuple[int, int, str]],
    separator: str,
    marks: tuple[str, str],
    encoding: str,
    ending: str,
    blank: bool,
) -> None:
    """The same numbers and words, or a refusal that says why not; anything but plain files has a line."""
    decimal, thousands = marks

    def number(whole: int, cents: int) -> str:
        return f"{whole:,}".replace(",", thousands) + f"{decimal}{cents:02}"

    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=ending)
    writer.writerow(["amount", "plain", "word"])
    for whole, cents, word in rows:
        writer.writerow([number(whole, cents), cents, word])
    text = out.getvalue() + (2 * ending if blank else "")
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    table = read_table(tmp_path / "a.csv", ReadingRules())
    wanted = [float(f"{whole}.{cents:02}") for whole, cents, _ in rows]
    assert table.frame["amount"].to_list() == wanted
    assert table.frame["plain"].to_list() == [cents for _, cents, _ in rows]
    assert table.frame["word"].to_list() == [word for _, _, word in rows]
    codes = {note.code for note in table.notes}
    assert ("separator" in codes) == (separator != ",")
    assert ("number format" in codes) == (
        decimal == "," or (bool(thousands) and any(abs(row[0]) > 999 for row in rows))
    )
    if not all(text.isascii() for text in [text]):
        assert ("encoding" in codes) == (not encoding.startswith("utf-8"))
    batches = list(table_batches(tmp_path / "a.csv", ReadingRules(readings=table.readings), rows=4))
    assert pl.concat(batches, how="vertical_relaxed").equals(
        table.frame.cast(pl.concat(batches, how="vertical_relaxed").schema)
    )


def test_settings_that_nothing_would_follow_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data.csv is for your own files and data.name = 'wine' has its own"):
        load_dataset(DataSettings(name="wine", csv=CsvSettings(decimal=",")))
    (tmp_path / "a.csv").write_text("a,y\n1,0\n")
    silos = (SiloSettings("one", csv=CsvSettings(decimal=",")),)
    with pytest.raises(ConfigError, match=r"'one' has csv and no path: say it in data.csv"):
        load_dataset(DataSettings(path="a.csv", label="y"), federation=FederationSettings(silos=silos), base=tmp_path)


cells = st.text(st.sampled_from('ab "\n,;#x'), max_size=6).map(lambda text: f"c{text}e")


@given(
    rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=40),
    separator=st.sampled_from([",", ";", "\t"]),
    every=st.booleans(),
    size=st.integers(1, 7),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None)
def test_quotes_lines_and_separators_in_cells(
    tmp_path: Path, rows: list[tuple[str, str]], separator: str, every: bool, size: int
) -> None:
    """As Python's own reader reads them, whole and in batches of any size."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL).writerows(
        [("first", "second"), *rows]
    )
    (tmp_path / "a.csv").write_text(out.getvalue(), newline="")
    asked = ReadingRules(
        CsvSettings(separator=separator, nulls=(), header=True, skip=0), text=frozenset(["first", "second"])
    )
    wanted = list(csv.reader(io.StringIO(out.getvalue()), delimiter=separator))[1:]
    assert [list(row) for row in read_table(tmp_path / "a.csv", asked).frame.rows()] == wanted
    batches = list(table_batches(tmp_path / "a.csv", asked, rows=size))
    assert [list(row) for row in pl.concat(batches).rows()] == wanted


@given(
    days=st.lists(st.dates(date(1930, 1, 1), date(2060, 12, 31)), min_size=2, max_size=30),
    form=st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%b-%Y", "%Y-%m-%dT%H:%M:%S"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_dates_are_the_days_they_are_or_refused(tmp_path: Path, days: list[date], form: str) -> None:
    lines = "".join(f"{day.strftime(form)},x\n" for day in days)
    (tmp_path / "a.csv").write_text(f"d,b\n{lines}")
    if form in ("%m/%d/%Y", "%d/%m/%Y") and all(day.day <= 12 for day in days):
        with pytest.raises(DataError, match="either number may be the month"):
            read_table(tmp_path / "a.csv", ReadingRules())
        return
    table = read_table(tmp_path / "a.csv", ReadingRules())
    assert table.frame["d"].to_list() == [(day - date(1970, 1, 1)).days for day in days]
    assert "'d' has dates, written" in said(table)
