"""Which files are data, of which format, and what it costs to know."""

import io
import tarfile
import zipfile

import pyarrow as pa
import pytest

from lumos.formats import interface
from lumos.formats.identification import FORMATS, identify, read_file
from lumos.formats.interface import UnreadableFile

from .material import (
    ROWS,
    MemoryFile,
    avro_bytes,
    found,
    orc_bytes,
    parquet_bytes,
    valid_files,
)

CSV = b"id,name\n1,Ann\n2,Bob\n3,Eve\n"
LINES = b'{"id": 1}\n{"id": 2}\n'


@pytest.mark.parametrize("name", valid_files())
def test_a_file_that_is_what_its_name_says_costs_one_read(name: str) -> None:
    file = MemoryFile(valid_files()[name])
    result = read_file(name, file)
    assert result is not None
    assert result[1].row_count == ROWS
    assert result[1].row_count_exact
    assert result[1].remarks == ()
    assert len(file.reads) == 1


@pytest.mark.parametrize(
    ("name", "read"),
    [("a.parquet", "tail"), ("zlib.orc", "tail"), ("a.avro", "head"), ("a.csv", "head")],
)
def test_the_name_decides_from_which_end_a_file_is_read(name: str, read: str) -> None:
    file = MemoryFile(valid_files()[name] + b"")
    read_file(name, file)
    assert [end for end, _ in file.reads] == [read]


def test_every_format_is_among_the_valid_files() -> None:
    formats = {found(name, data)[0] for name, data in valid_files().items()}
    assert formats == set(FORMATS)


@pytest.mark.parametrize("claimed", [".parquet", ".orc", ".avro", ".csv", ".json", ".png", ".zip"])
@pytest.mark.parametrize("really", ["a.parquet", "zlib.orc", "a.avro", "a.csv", "a.jsonl"])
def test_a_wrong_name_is_reported_and_the_file_read_as_what_it_is(
    claimed: str, really: str
) -> None:
    data = valid_files()[really]
    format = found(really, data)[0]
    if claimed in FORMATS[format].suffixes:
        return
    if claimed in (".png", ".zip") and not FORMATS[format].declares_schema:
        # Text has no magic bytes, so that nothing speaks against such a name.
        assert read_file(f"x{claimed}", MemoryFile(data)) is None
        return
    name, facts = found(f"x{claimed}", data)
    assert name == format
    title = {"csv": "CSV", "json": "JSON", "orc": "ORC"}.get(format, format.title())
    assert [tuple(remark) for remark in facts.remarks] == [
        ("mislabelled", f"It is named {claimed} but is {title}.")
    ]


@pytest.mark.parametrize("name", ["data", "part-00000", "x.txt", "x.log", "x.dat", "x.data", "x.0"])
@pytest.mark.parametrize(
    "really", ["a.parquet", "zlib.orc", "a.avro", "a.csv", "a.jsonl", "a.json"]
)
def test_names_that_say_nothing_are_no_obstacle(name: str, really: str) -> None:
    data = valid_files()[really]
    format, facts = found(name, data)
    assert format == found(really, data)[0]
    assert facts.remarks == ()


def archive(kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as zipped:
            zipped.writestr("a.csv", CSV)
    else:
        with tarfile.open(fileobj=buffer, mode="w") as tarred:
            tarred.addfile(tarfile.TarInfo("a.csv"))
    return buffer.getvalue()


PROSE = b"""Once upon a time, there was a lake, and it was deep.
Nobody knew, what was in it.
Then came somebody, with a lamp, and looked.
"""
CODE = b"int main() {\n  int a = 5;\n  return a;\n}\n"
LOG = b"""2024-01-01 10:00:00,123 INFO started the service
2024-01-01 10:00:01,456 INFO ready to serve requests
2024-01-01 10:00:02,789 WARN something is slow here
"""
ERRORS = b"".join(
    b"2024/01/01 10:00:0%d [error] 12#0: *1 open() of /x failed, client: 10.0.0.%d, server: _, "
    b'request: "GET /x HTTP/1.1", host: "x"\n' % (number, number)
    for number in range(8)
)
ACCESS = b'127.0.0.1 - - [01/Jan/2024:10:00:00] "GET / HTTP/1.1" 200 12\n' * 5


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100), id="a picture"),
        pytest.param("picture", b"\x89PNG\r\n\x1a\n" + bytes(100), id="a picture without ending"),
        pytest.param("a.zip", archive("zip"), id="a ZIP archive"),
        pytest.param("a", archive("zip"), id="a ZIP archive without ending"),
        pytest.param("a.tar", archive("tar"), id="a tar archive"),
        pytest.param("a", archive("tar"), id="a tar archive without ending"),
        pytest.param("a.py", b"a,b\n1,2\n3,4\n", id="a script, however its text looks"),
        pytest.param("a.sql", b"1,2,3\n4,5,6\n7,8,9\n", id="SQL, however its text looks"),
        pytest.param("package.lock", b'{"a": 1}', id="a lock file"),
        pytest.param("page.html", b"<html></html>", id="HTML"),
        pytest.param("page", b"<!DOCTYPE html>\n<html></html>", id="HTML without ending"),
        pytest.param("README", PROSE, id="prose"),
        pytest.param("notes.txt", PROSE, id="prose in a text file"),
        pytest.param("main", CODE, id="source code"),
        pytest.param("app.log", LOG, id="a log with commas in its times"),
        pytest.param("access.log", ACCESS, id="an access log"),
        pytest.param("error.log", ERRORS, id="a log with as many commas in every line"),
        pytest.param("a.txt", b"one,two\n", id="a single line"),
        pytest.param("a.ini", b"[section]\na = 1\n", id="settings"),
        pytest.param("settings", b"[section]\na = 1\n", id="settings without ending"),
        pytest.param("marker", b"", id="no bytes and no ending"),
        pytest.param("noise", bytes(range(256)) * 10, id="binary noise"),
        pytest.param("list.txt", b"alpha\nbeta\ngamma\n", id="a list of words"),
    ],
)
def test_what_is_no_dataset_is_left_alone(name: str, data: bytes) -> None:
    assert read_file(name, MemoryFile(data)) is None


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        pytest.param("a.parquet", b"", "empty_file", id="an empty Parquet file"),
        pytest.param("a.json.gz", b"", "empty_file", id="an empty compressed file"),
        pytest.param("a.csv", archive("zip"), "mislabelled", id="a ZIP archive called CSV"),
        pytest.param("a.parquet", archive("zip"), "mislabelled", id="a ZIP archive called Parquet"),
        pytest.param("a.json", b"<html><body>503</body>", "mislabelled", id="HTML called JSON"),
        pytest.param("a.csv", b"<?xml version='1.0'?><a/>", "mislabelled", id="XML called CSV"),
        pytest.param("a.parquet", PROSE, "not_parquet", id="prose called Parquet"),
        pytest.param("a.avro", PROSE, "not_avro", id="prose called Avro"),
        pytest.param("a.orc", PROSE, "not_orc", id="prose called ORC"),
        pytest.param("a.json", PROSE, "not_json", id="prose called JSON"),
        pytest.param("a.json", bytes(range(256)), "not_text", id="noise called JSON"),
        pytest.param("part-0", b"PAR1" + bytes(500), "not_parquet", id="Parquet cut off, no ending"),
        pytest.param("a.csv", b"PAR1" + bytes(500), "not_text", id="Parquet cut off, called CSV"),
    ],
)  # fmt: skip
def test_a_file_that_breaks_its_promise_is_a_problem(name: str, data: bytes, code: str) -> None:
    with pytest.raises(UnreadableFile) as problem:
        read_file(name, MemoryFile(data))
    assert problem.value.code == code
    assert problem.value.reason.endswith(".")


def test_a_table_with_sentences_is_known_by_names_above_values() -> None:
    row = b"%d,a rather long remark of many words,and another one of several words\n"
    table = b"id,remark,answer\n" + b"".join(row % number for number in range(5))
    assert found("remarks.txt", table)[0] == "csv"


def test_text_that_begins_like_magic_bytes_is_still_text() -> None:
    for head in (b"ORC_id", b"PAR1", b"BZh1", b"Obj"):
        format, facts = found("a.csv", head + b",x\n1,2\n3,4\n")
        assert (format, facts.schema.fields[1].name) == ("csv", "x")


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        pytest.param("a.csv", b"PAR1\x15\x04", "parquet", id="magic bytes win over the name"),
        pytest.param("part-0", b"PAR1\x15\x04", "parquet", id="no ending"),
        pytest.param("A.CSV", b"a,b", "csv", id="upper case"),
        pytest.param("a.csv.gz", b"\x1f\x8b\x08", "csv", id="compressed"),
        pytest.param("x.png", b"\x89PNG", None, id="a picture"),
        pytest.param("README", b"read me", None, id="a text without ending"),
        pytest.param("events", LINES, "json", id="JSON without ending"),
    ],
)
def test_a_format_is_known_by_first_bytes_then_by_name(
    name: str, head: bytes, format: str | None
) -> None:
    identified = identify(name, head)
    assert (identified.name if identified else None) == format


@pytest.mark.parametrize("name", ["hours", "hours.txt", "010010-99999-2021.gz", "x.dat"])
@pytest.mark.parametrize(
    ("data", "names", "rows"),
    [
        (b"2021 01 01 00   -12  1003\n2021 01 01 01  -115   998\n", ["column_1"], 2),
        (b"site temp wind\nnorth 1.5 12\nsouth -2.25 7\n", ["site", "temp"], 2),
        (b'en "Main Page" 42 0\nde Haupt 7 12\nfr "La une" 9 1\n', ["column_1"], 3),
        (b"# at east north\n1.0 2.5e-3 4\n2.0 NaN 5\n", ["at", "east"], 2),
        (b"one other link_score\ncedar jade 110\nmaple river 37\n", ["one", "other"], 2),
        (
            b'2024-01-05T01:02:03.5Z lb-7 10.0.0.7:443 0.2 "GET /a b"\n'
            b'2024-01-05T01:02:04.1Z lb-7 10.0.0.9:443 1.5 "GET /c"\n',
            ["column_1"],
            2,
        ),
    ],
)
def test_columns_of_numbers_may_be_divided_by_spaces(
    name: str, data: bytes, names: list[str], rows: int
) -> None:
    format, facts = found(name, data)
    assert format == "csv"
    assert [field.name for field in facts.schema.fields][: len(names)] == names
    assert len(facts.schema.fields) > 2
    assert facts.row_count == rows


@pytest.mark.parametrize(
    "data",
    [
        b"It was 7 o'clock\nand 12 of them came\n",
        b"Jan 5 01:02:03 host sshd[7]: opened\nJan 5 01:02:04 host sshd[7]: closed\n",
        b'1.2.3.4 - - [05/Jan/2024:01:02:03 +0000] "GET / HTTP/1.1" 200 7\n' * 4,
        b"2024-01-05 01:02:03 INFO started 12\n2024-01-05 01:02:04 INFO stopped 15\n",
        b"1 2 3\n4 5\n6 7 8 9\n",
        b"1 2\n3 4\n5 6\n7 8\n",
        b"set max_size 5\nset min_size 3\nset pool_size 7\n",
        b"one other score\ncedar jade 110\nmaple river 37\n",
    ],
)
def test_words_between_spaces_are_no_table(data: bytes) -> None:
    assert read_file("notes", MemoryFile(data)) is None


def test_a_named_csv_is_not_divided_by_spaces() -> None:
    _, facts = found("x.csv", b"a b c\n1 2 3\n4 5 6\n")
    assert [field.name for field in facts.schema.fields] == ["a b c"]


@pytest.mark.parametrize(
    "name", ["part-r-00001", "part-00001", "part-m-00001.gz", "000000_0", "x.tbl"]
)
def test_a_part_needs_little_evidence_to_be_a_table(name: str) -> None:
    assert found(name, b"cedar\t4461\nharbor\t9107\n")[0] == "csv"
    assert read_file("notes", MemoryFile(b"cedar\t4461\nharbor\t9107\n")) is None
    assert read_file(name, MemoryFile(b"cedar\nharbor, a port\n")) is None


def _wide(format: str, columns: int) -> bytes:
    """A file of so many columns and no rows, or one where a format cannot do without."""
    names = [f"c{number}" for number in range(columns)]
    table = pa.table({name: pa.array([], pa.int64()) for name in names})
    if format == "parquet":
        return parquet_bytes(table)
    if format == "orc":
        return orc_bytes(table)
    if format == "avro":
        return avro_bytes([{"name": name, "type": "long"} for name in names], [])
    if format == "csv":
        return f"{','.join(names)}\n{','.join('1' * columns)}\n".encode()
    return b"{" + b",".join(b'"%s":1' % name.encode() for name in names) + b"}\n"


@pytest.mark.parametrize("format", ["parquet", "orc", "avro", "csv", "json"])
def test_every_format_has_the_same_limit_of_columns(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 20_000
    if format == "orc":
        # The writer takes half a megabyte of memory for each column.
        most = 200
        monkeypatch.setattr(interface, "MAX_COLUMNS", most)
    assert len(found(f"a.{format}", _wide(format, most))[1].schema.fields) == most
    with pytest.raises(UnreadableFile, match=f"{most + 1:,} columns; at most {most:,}") as problem:
        read_file(f"a.{format}", MemoryFile(_wide(format, most + 1)))
    assert problem.value.code == "too_many_columns"


def test_fields_inside_structs_count_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "MAX_COLUMNS", 3)
    wide = pa.table({"a": [{"x": 1, "y": 1}], "b": [[{"x": 1, "y": 1}]]})
    with pytest.raises(UnreadableFile, match="4 columns; at most 3"):
        read_file("a.parquet", MemoryFile(parquet_bytes(wide)))
