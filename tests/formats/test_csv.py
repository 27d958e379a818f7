"""CSV: dialect, header and types from a sample."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.formats.interface import UnreadableFile
from lumos.model.schema import parse_schema

from .material import COMPRESS, facts_of


def schema_of(data: bytes, name: str = "data.csv") -> str:
    return str(facts_of(name, data).schema)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        pytest.param("id,name\n1,Ann\n", "id INT64\nname STRING", id="commas"),
        pytest.param("id;x\n1;2,5\n2;3,5\n", "id INT64\nx STRING", id="semicolons"),
        pytest.param("1,5;2,5\n3,5;4,5\n", "column_1 STRING\ncolumn_2 STRING", id="decimal commas"),
        pytest.param("id\tx\n1\t2.5\n", "id INT64\nx FLOAT64", id="tabs"),
        pytest.param("id|x\n1|true\n", "id INT64\nx BOOLEAN", id="pipes"),
        pytest.param("id\x01x\n1\x01true\n", "id INT64\nx BOOLEAN", id="^A, as Hive has it"),
        pytest.param("id$x$y\n1$a, b$2\n2$c$3\n", "id INT64\nx STRING\ny INT64", id="dollars"),
        pytest.param("sep=;\nid;x\n1;2\n", "id INT64\nx INT64", id="declared for Excel"),
        pytest.param("name|n\nDoe, J|1\nRoe, K|2\n", "name STRING\nn INT64", id="commas in text"),
        pytest.param("id,note\n1,a;b\n2,c;d\n", "id INT64\nnote STRING", id="semicolons in text"),
        pytest.param("a word\nno, commas\nhere\nor there\n", "`a word` STRING", id="one column"),
        pytest.param('a,b\n"x, y",1\n', "a STRING\nb INT64", id="quoted delimiter"),
        pytest.param('a,b\n"two\nlines",1\n', "a STRING\nb INT64", id="quoted line break"),
        pytest.param('a,b\n"1\n2",1\n', "a STRING\nb INT64", id="lines of digits are one text"),
        pytest.param('a,b\n"say ""x""",1\n', "a STRING\nb INT64", id="doubled quotes"),
        pytest.param('a,b\n"x \\", y",1\n"z",2\n', "a STRING\nb INT64", id="escaped quotes"),
        pytest.param('1,"x \\", y"\n2,"z \\", y"\n', "column_1 INT64\ncolumn_2 STRING", id="escaped quotes in every row"),
        pytest.param('a,b\n"C:\\",1\n"D:\\",2\n', "a STRING\nb INT64", id="backslashes before quotes"),
        pytest.param('a,b\n5" pipe,1\n6" pipe,2\n', "a STRING\nb INT64", id="inches"),
        pytest.param('a,b\n"open,1\nx,2\ny,3\n', "a STRING\nb INT64", id="a quote left open"),
        pytest.param('"a","b"\n"1","2"\n', "a INT64\nb INT64", id="everything quoted"),
        pytest.param("# made by x\n#\nid,n\n1,2\n", "id INT64\nn INT64", id="comments above"),
        pytest.param("# made by x\n#id,n\n1,2\n3,4\n", "id INT64\nn INT64", id="a comment with the names"),
        pytest.param("zip\n01234\n99999\n", "zip STRING", id="leading zeros stay text"),
        pytest.param("a,b\n1,\n2,\n", "a INT64\nb NULL", id="an empty column is NULL"),
        pytest.param("a,b\n1,NA\n2,\\N\n", "a INT64\nb NULL", id="a column of words for null"),
        pytest.param("a\n1\nNULL\n\n3\n", "a INT64", id="nulls between integers"),
        pytest.param("a\n9223372036854775808\n1\n", "a DECIMAL(38,0)", id="overflow stays exact"),
        pytest.param("a\n9223372036854775808\n1.5\n", "a STRING", id="overflow never is a float"),
        pytest.param("a\n9223372036854775807\n", "a INT64", id="the largest INT64"),
        pytest.param("a\n-9223372036854775809\n", "a DECIMAL(38,0)", id="below the smallest INT64"),
        pytest.param("a\n" + "9" * 39 + "\n", "a STRING", id="more digits than a decimal has"),
        pytest.param("a\n1\n2.5\n1e3\n", "a FLOAT64", id="mixed numbers"),
        pytest.param("a\n1_000\n", "a STRING", id="underscores are for programs"),
        pytest.param("a, b\n 1, 2.5\n 3, 4.5\n", "a INT64\nb FLOAT64", id="spaces after commas"),
        pytest.param("d\n2024-01-31\n", "d DATE", id="dates"),
        pytest.param("d\n2024-13-31\n", "d STRING", id="no such date"),
        pytest.param("d\n20240131\n", "d INT64", id="a date without hyphens may be any number"),
        pytest.param("t\n2024-01-31 10:00:00\n", "t TIMESTAMP(us)", id="times"),
        pytest.param("t\n2024-01-31T10:00:00.123456789\n", "t TIMESTAMP(us)", id="nanoseconds"),
        pytest.param("t\n2024-01-31 10:00\n2024-01-30\n", "t TIMESTAMP(us)", id="dates among times"),
        pytest.param("t\n2024-01-31T10:00:00Z\n", "t TIMESTAMPTZ(us)", id="zoned times"),
        pytest.param("t\n2024-01-31T10:00:00+0100\n\n", "t TIMESTAMPTZ(us)", id="a short zone"),
        pytest.param("t\n2024-01-31T10:00:00Z\n2024-01-31T10:00:00\n", "t STRING", id="mixed zones"),
        pytest.param("t\nTrue\nFALSE\n", "t BOOLEAN", id="booleans in any case"),
        pytest.param("a,b\n1,2,3\n", "a INT64\nb INT64\ncolumn_3 INT64", id="longer rows"),
        pytest.param("a,b,c\n1\n2,3\n", "a INT64\nb INT64\nc NULL", id="shorter rows"),
        pytest.param("a,b\n", "a NULL\nb NULL", id="only a header"),
        pytest.param("a,b", "a NULL\nb NULL", id="only a header and no end of line"),
        pytest.param("a\r\n1\r\n", "a INT64", id="Windows line ends"),
        pytest.param("a,b\r1,2\r3,4\r", "a INT64\nb INT64", id="old line ends"),
        pytest.param("a,b\nNULL,1\n\\N,2\n", "a NULL\nb INT64", id="words for null"),
    ],
)  # fmt: skip
def test_a_csv_file_gets_the_schema_a_person_would_give_it(text: str, schema: str) -> None:
    assert parse_schema(schema_of(text.encode())) == parse_schema(schema)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        pytest.param("name,city\nAnn,Oslo\nBob,Rome\n", "name", id="all text below a header"),
        pytest.param("name,note\nann,x\n", "name", id="one row of text"),
        pytest.param("code,country\nNO,Norway\nIT,Italy\nDE,Germany\n", "code", id="codes below a header"),
        pytest.param("country,2019,2020,2021\nOslo,1,2,3\nRome,4,5,6\n", "country", id="years as names"),
        pytest.param("id,2020\n1,5\n2,6\n", "id", id="one name is a number"),
        pytest.param("a,a,\n1,2,3\n", "a", id="names that repeat"),
        pytest.param("1,2\n3,4\n", None, id="numbers only"),
        pytest.param("2019,2020\n1,2\n", None, id="years without a name"),
        pytest.param("Ann,Oslo,1\nBob,Rome,2\n", None, id="a number in the first row"),
        pytest.param("red,a\nblue,b\nred,c\n", None, id="the first row comes back below"),
        pytest.param("ann@x.org,a\nbob@y.org,b\neve@z.org,c\n", None, id="addresses throughout"),
        pytest.param("NO,Norway\nIT,Italy\nDE,Germany\nFR,France\n", None, id="codes throughout"),
        pytest.param("u-1,k\nu-2,l\nu-3,m\n", None, id="identifiers throughout"),
        pytest.param("x,x\na,b\nc,d\n", None, id="text that repeats in the first row"),
    ],
)  # fmt: skip
def test_a_header_is_distinguished_from_data(text: str, first: str | None) -> None:
    expected = first or "column_1"
    assert facts_of("a.csv", text.encode()).schema.fields[0].name == expected


def test_names_that_are_missing_or_repeated_are_made_distinct() -> None:
    assert schema_of(b"a,a,\n1,2,3\n") == "a INT64\na_2 INT64\ncolumn_3 INT64"


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"],
)
def test_common_encodings_are_understood(encoding: str) -> None:
    text = "größe,x,name\n" + "1,2,Jörg\n" * 3
    assert schema_of(text.encode(encoding)) == "`größe` INT64\nx INT64\nname STRING"


@pytest.mark.parametrize("ending", ["tsv", "tab"])
def test_a_tab_is_what_such_a_name_promises(ending: str) -> None:
    data = b"a,b\tc\n1,2\t3\n4,5\t6\n"
    assert schema_of(data, f"x.{ending}") == "`a,b` STRING\nc INT64"


def test_rows_are_exact_for_small_files_and_estimated_for_large_ones() -> None:
    small, large = (b"a,b\n" + b"1,2\n" * rows for rows in (10, 100_000))
    assert facts_of("a.csv", small)[1:3] == (10, True)
    facts = facts_of("a.csv", large)
    assert facts.row_count == pytest.approx(100_000, rel=0.01)
    assert not facts.row_count_exact


@pytest.mark.parametrize("ending", COMPRESS)
def test_rows_of_a_large_compressed_file_are_unknown(ending: str) -> None:
    chance = random.Random(1)
    rows = "".join(f"{chance.random()},x\n" for _ in range(200_000))
    facts = facts_of(f"a.csv.{ending}", COMPRESS[ending](f"a,b\n{rows}".encode()))
    assert str(facts.schema) == "a FLOAT64\nb STRING"
    assert (facts.row_count, facts.row_count_exact) == (None, False)


def test_a_character_cut_by_the_end_of_the_sample_does_no_harm() -> None:
    for shift in range(4):
        data = ("x" * shift + "name,b\n" + "€€€,1\n" * 20_000).encode()
        assert schema_of(data).endswith("b INT64")


def test_a_sample_that_ends_inside_quotes_does_no_harm() -> None:
    for shift in range(40):
        data = "x" * shift + "a,b\n" + '"some\n""quoted""\nlines",1\n' * 5000
        assert schema_of(data.encode()).endswith("b INT64")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"", "empty_file", id="no bytes"),
        pytest.param(b"\n\n\n", "empty_file", id="no rows"),
        pytest.param(b"a,b\n\x00\x01\x02,1\n", "not_text", id="binary"),
        pytest.param(b"," * 20_000 + b"\n1\n", "too_many_columns", id="20,001 columns"),
        pytest.param(b"a" * 9_000_000, "line_too_long", id="one endless line"),
    ],
)
def test_what_is_no_csv_is_refused_with_a_code(data: bytes, code: str) -> None:
    with pytest.raises(UnreadableFile) as problem:
        schema_of(data)
    assert problem.value.code == code


def test_twenty_thousand_columns_are_read() -> None:
    names = ",".join(f"column_with_a_long_name_{number}" for number in range(20_000))
    row = ",".join(["1"] * 19_999 + ["x"])
    schema = facts_of("a.csv", f"{names}\n{row}\n{row}\n".encode()).schema
    assert len(schema.fields) == 20_000
    assert str(schema.fields[-1]) == "column_with_a_long_name_19999 STRING"


def test_a_cell_longer_than_the_csv_module_likes_is_read() -> None:
    assert schema_of(b'a,b\n"' + b"x" * 200_000 + b'",1\n"y",2\n') == "a STRING\nb INT64"


CELLS = st.sampled_from(
    ["", "1", "-2", "0", "007", "1.5", ".5", "1e5", "NA", "x", "a b", "true", "False", " 3",
     "2024-01-31", "2024-02-31", "2024-01-31 10:00:00", "2024-01-31T10:00:00Z",
     "9223372036854775808", "9" * 40, "ä", "#"]
)  # fmt: skip
ROWS = st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=8)


@given(rows=ROWS, chance=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_decide_types(
    rows: list[list[str]], chance: random.Random
) -> None:
    header = ["first_name", "second_name"]
    shuffled = chance.sample(rows, len(rows))
    schemas = {
        schema_of("\n".join("|".join(row) for row in [header, *order]).encode())
        for order in (rows, rows, shuffled)
    }
    assert len(schemas) == 1
