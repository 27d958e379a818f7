"""CSV: dialect, header and types from a sample."""

from pathlib import Path

import pytest

from lumos.formats import UnreadableFile, read_file
from lumos.model.text import parse_schema
from lumos.storage import LocalStorage


def schema_of(file: Path) -> str:
    with LocalStorage().open(str(file)) as opened:
        found = read_file(file.name, opened)
    assert found is not None
    return str(found[1].schema)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        pytest.param("id,name\n1,Ann\n", "id INT64\nname STRING", id="commas"),
        pytest.param("id;x\n1;2,5\n2;3,5\n", "id INT64\nx STRING", id="semicolons"),
        pytest.param("id\tx\n1\t2.5\n", "id INT64\nx FLOAT64", id="tabs"),
        pytest.param("id|x\n1|true\n", "id INT64\nx BOOLEAN", id="pipes"),
        pytest.param('a,b\n"x, y",1\n', "a STRING\nb INT64", id="quoted delimiter"),
        pytest.param('a,b\n"two\nlines",1\n', "a STRING\nb INT64", id="quoted line break"),
        pytest.param("zip\n01234\n99999\n", "zip STRING", id="leading zeros stay text"),
        pytest.param("a,b\n1,\n2,\n", "a INT64\nb NULL", id="an empty column is NULL"),
        pytest.param("a\n9223372036854775808\n1\n", "a DECIMAL(38,0)", id="overflow stays exact"),
        pytest.param("a\n9223372036854775807\n", "a INT64", id="the largest INT64"),
        pytest.param("a\n1\n2.5\n1e3\n", "a FLOAT64", id="mixed numbers"),
        pytest.param("d\n2024-01-31\n", "d DATE", id="dates"),
        pytest.param("d\n2024-13-31\n", "d STRING", id="no such date"),
        pytest.param("t\n2024-01-31 10:00:00\n", "t TIMESTAMP(us)", id="times"),
        pytest.param("t\n2024-01-31T10:00:00Z\n", "t TIMESTAMPTZ(us)", id="zoned times"),
        pytest.param(
            "t\n2024-01-31T10:00:00Z\n2024-01-31T10:00:00\n", "t STRING", id="mixed zones"
        ),
        pytest.param("1,2\n3,4\n", "column_1 INT64\ncolumn_2 INT64", id="no header"),
        pytest.param("a,a,\n1,2,3\n", "a INT64\na_2 INT64\ncolumn_3 INT64", id="odd names"),
        pytest.param("a,b\n1,2,3\n", "a INT64\nb INT64\ncolumn_3 INT64", id="longer rows"),
        pytest.param("name,city\nAnn,Oslo\nBob,Rome\n", "name STRING\ncity STRING", id="all text"),
        pytest.param("a,b\n", "a NULL\nb NULL", id="only a header"),
        pytest.param("a\r\n1\r\n", "a INT64", id="Windows line ends"),
        pytest.param("a,b\nNULL,1\n\\N,2\n", "a NULL\nb INT64", id="words for null"),
    ],
)
def test_a_csv_file_gets_the_schema_a_person_would_give_it(
    tmp_path: Path, text: str, schema: str
) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(text.encode())
    assert parse_schema(schema_of(file)) == parse_schema(schema)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_common_encodings_are_understood(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes("größe,x\n1,2\n".encode(encoding))
    assert schema_of(file) == "`größe` INT64\nx INT64"


def test_rows_are_exact_for_small_files_and_estimated_for_large_ones(tmp_path: Path) -> None:
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    small.write_text("a,b\n" + "1,2\n" * 10)
    large.write_text("a,b\n" + "1,2\n" * 100_000)
    for file, rows, exact in ((small, 10, True), (large, 100_000, False)):
        with LocalStorage().open(str(file)) as opened:
            found = read_file(file.name, opened)
        assert found is not None
        assert found[1].row_count == pytest.approx(rows, rel=0.01)
        assert found[1].row_count_exact is exact


def test_a_character_cut_by_the_end_of_the_sample_does_no_harm(tmp_path: Path) -> None:
    for shift in range(4):
        file = tmp_path / f"{shift}.csv"
        file.write_text("x" * shift + "name,b\n" + "€€€,1\n" * 20_000, encoding="utf-8")
        assert schema_of(file).endswith("b INT64")


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
def test_what_is_no_csv_is_refused_with_a_code(tmp_path: Path, data: bytes, code: str) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(data)
    with pytest.raises(UnreadableFile) as problem:
        schema_of(file)
    assert problem.value.code == code


def test_a_header_longer_than_the_sample_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    names = [f"column_with_a_long_name_{number}" for number in range(3000)]
    file.write_text(",".join(names) + "\n" + ",".join(["1"] * 3000) + "\n")
    assert schema_of(file).splitlines()[-1] == "column_with_a_long_name_2999 INT64"
