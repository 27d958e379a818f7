"""JSON: records in every layout, and types from what they hold."""

import json

import pytest

from lumos.formats.interface import UnreadableFile

from .material import COMPRESS, MemoryFile, facts_of, found, read_file


def schema_of(text: str, name: str = "data.json") -> str:
    return str(facts_of(name, text.encode()).schema)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param('{"a": 1}\n{"a": 2}\n', 2, id="lines"),
        pytest.param('{"a": 1}\r\n{"a": 2}\r\n', 2, id="Windows lines"),
        pytest.param('{"a": 1}\n\n\n{"a": 2}', 2, id="lines with gaps"),
        pytest.param('[{"a": 1}, {"a": 2}]', 2, id="an array"),
        pytest.param('[\n  {\n    "a": 1\n  },\n  {\n    "a": 2\n  }\n]\n', 2, id="an array over many lines"),
        pytest.param('{"a": 1}', 1, id="one object"),
        pytest.param('{\n  "a": 1\n}\n', 1, id="one object over many lines"),
        pytest.param('{\n  "a": 1\n}\n{\n  "a": 2\n}\n', 2, id="objects over many lines"),
        pytest.param('{"a": 1}{"a": 2} {"a": 3}', 3, id="objects without line ends"),
        pytest.param("  \n\t" + '{"a": 1}', 1, id="space in front"),
        pytest.param("\ufeff" + '{"a": 1}\n{"a": 2}\n', 2, id="a byte order mark"),
    ],
)  # fmt: skip
def test_records_are_found_in_every_layout(text: str, rows: int) -> None:
    format, facts = found("x.json", text.encode())
    assert (format, str(facts.schema)) == ("json", "a INT64")
    assert (facts.row_count, facts.row_count_exact, facts.remarks) == (rows, True, ())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_common_encodings_are_understood(encoding: str) -> None:
    data = '{"größe": 1}\n{"größe": 2}\n'.encode(encoding)
    assert str(facts_of("x.json", data).schema) == "`größe` INT64"


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        pytest.param('[{"b": 1, "a": "x"}, {"c": true}]', "b INT64\na STRING\nc BOOLEAN", id="keys as they appear"),
        pytest.param('[{"a": 1}, {"a": 2.5}]', "a FLOAT64", id="integers and floats"),
        pytest.param('[{"a": 1}, {"a": "x"}]', "a STRING", id="integers and texts"),
        pytest.param('[{"a": 1}, {"a": true}]', "a STRING", id="integers and booleans"),
        pytest.param('[{"a": null}, {}]', "a NULL", id="only nulls"),
        pytest.param('[{"a": null}, {"a": 1}]', "a INT64", id="nulls and integers"),
        pytest.param('{"a": 9223372036854775808}', "a DECIMAL(38,0)", id="overflow stays exact"),
        pytest.param('[{"a": 9223372036854775808}, {"a": 1.5}]', "a STRING", id="overflow never is a float"),
        pytest.param('{"a": ' + "9" * 39 + "}", "a STRING", id="more digits than a decimal has"),
        pytest.param('{"a": ' + "9" * 5000 + "}", "a STRING", id="more digits than Python reads"),
        pytest.param('{"a": 1e400}', "a FLOAT64", id="a number beyond floats"),
        pytest.param('{"a": NaN}\n{"a": Infinity}\n{"a": 1}', "a FLOAT64", id="what Python writes for no number"),
        pytest.param('{"a": "2024-01-31", "b": "2024-01-31T10:00:00Z"}', "a STRING\nb STRING", id="texts stay texts"),
        pytest.param('{"a": {"x": 1, "y": {"z": null}}}', "a STRUCT<x: INT64, y: STRUCT<z: NULL>>", id="objects"),
        pytest.param('[{"a": {"x": 1}}, {"a": {"y": 2}}]', "a STRUCT<x: INT64, y: INT64>", id="objects with other keys"),
        pytest.param('{"a": [1, 2.5, null]}', "a ARRAY<FLOAT64>", id="arrays"),
        pytest.param('{"a": []}', "a ARRAY<NULL>", id="an empty array"),
        pytest.param('{"a": [1, "x", {"y": 1}]}', "a ARRAY<STRING>", id="an array of anything"),
        pytest.param('{"a": [{"x": 1}, {"y": "z"}]}', "a ARRAY<STRUCT<x: INT64, y: STRING>>", id="an array of objects"),
        pytest.param('{"a": [[1], [2.5]]}', "a ARRAY<ARRAY<FLOAT64>>", id="an array of arrays"),
        pytest.param('[{"a": {}}, {"a": [1]}]', "a STRING", id="an object or an array"),
        pytest.param('{"a": 1, "a": "x"}', "a STRING", id="a key twice"),
        pytest.param('{"": 1}', "column_1 INT64", id="a key without letters"),
        pytest.param('{"\\ud800": 1}', "`\ufffd` INT64", id="half a character as a key"),
        pytest.param("[1, 2]", "value INT64", id="an array of numbers"),
        pytest.param("[1]\n[2.5]\n", "value ARRAY<FLOAT64>", id="lines of arrays"),
        pytest.param("[]", "", id="an empty array of records"),
        pytest.param("{}", "", id="an empty object"),
    ],
)  # fmt: skip
def test_types_are_the_union_of_all_records(text: str, schema: str) -> None:
    assert schema_of(text) == schema


def test_an_object_with_very_many_keys_is_a_map() -> None:
    ids = {f"user_{number}": {"n": number} for number in range(3000)}
    assert schema_of(json.dumps({"by_id": ids})) == "by_id MAP<STRING, STRUCT<n: INT64>>"


def test_more_keys_than_any_table_has_columns_are_refused() -> None:
    with pytest.raises(UnreadableFile) as problem:
        schema_of(json.dumps({f"k{number}": 1 for number in range(20_001)}))
    assert problem.value.code == "too_many_columns"


@pytest.mark.parametrize("depth", [90, 200])
def test_values_nest_as_deep_as_types_can(depth: int) -> None:
    text = schema_of('{"a":' * depth + "1" + "}" * depth)
    assert ("too deep" in text) is (depth > 100)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param('{"a": 1', "not_json", id="an object cut off"),
        pytest.param('[{"a": 1}, {"a"', "corrupt_file", id="an array cut off"),
        pytest.param('[{"a": 1} {"a": 2}]', "corrupt_file", id="an array without commas"),
        pytest.param("hello", "not_json", id="text"),
        pytest.param("42", "not_json", id="a single value"),
        pytest.param(" \n ", "empty_file", id="only space"),
        pytest.param('{"a":' * 100_000, "too_deep", id="endless depth"),
        pytest.param("[" * 100_000, "too_deep", id="endless depth of arrays"),
        pytest.param(
            '{"a": 1}\nx\ny\nz\n{\n{\n', "corrupt_file", id="more bad lines than good ones"
        ),
    ],
)
def test_what_holds_no_records_is_refused_with_a_code(text: str, code: str) -> None:
    with pytest.raises(UnreadableFile) as problem:
        schema_of(text)
    assert problem.value.code == code


@pytest.mark.parametrize(
    "bad", ["oops", '{"a": }', '{"a": 1} x', '{"a', "7", '"text"'], ids=lambda bad: bad
)
@pytest.mark.parametrize("many", [False, True], ids=["whole", "sampled"])
def test_a_bad_line_among_good_ones_is_a_remark(bad: str, many: bool) -> None:
    good = '{"a": 1}\n' * (20_000 if many else 5)
    format, facts = found("x.jsonl", ('{"a": 1}\n' + bad + "\n" + good).encode())
    assert (format, str(facts.schema)) == ("json", "a INT64")
    assert [remark.code for remark in facts.remarks] == ["bad_records"]


@pytest.mark.parametrize("layout", ["lines", "array", "array over lines", "objects over lines"])
def test_the_beginning_of_a_large_file_is_enough(layout: str) -> None:
    records = [{"id": number, "at": {"x": [number], "t": "}, ]"}} for number in range(50_000)]
    text = {
        "lines": lambda: "".join(json.dumps(record) + "\n" for record in records),
        "array": lambda: json.dumps(records),
        "array over lines": lambda: json.dumps(records, indent=2),
        "objects over lines": lambda: "\n".join(json.dumps(record, indent=2) for record in records),
    }[layout]()
    file = MemoryFile(text.encode())
    result = read_file("x.json", file)
    assert result is not None
    assert str(result[1].schema) == "id INT64\nat STRUCT<x: ARRAY<INT64>, t: STRING>"
    assert result[1].row_count == pytest.approx(50_000, rel=0.1)
    assert not result[1].row_count_exact
    assert file.reads == [("head", 64 * 1024)]


@pytest.mark.parametrize("ending", COMPRESS)
def test_rows_of_a_large_compressed_file_are_unknown(ending: str) -> None:
    lines = "".join(json.dumps({"id": n * 7919 % 99_991}) + "\n" for n in range(200_000))
    facts = facts_of(f"a.jsonl.{ending}", COMPRESS[ending](lines.encode()))
    assert (str(facts.schema), facts.row_count) == ("id INT64", None)


def test_a_huge_object_shows_the_list_that_makes_it_huge() -> None:
    records = [{"event": "x", "n": {"m": number}} for number in range(100_000)]
    text = json.dumps({"version": 1, "Records": records, "later": True})
    file = MemoryFile(text.encode())
    result = read_file("trail.json", file)
    assert result is not None
    assert str(result[1].schema) == (
        "version INT64\nRecords ARRAY<STRUCT<event: STRING, n: STRUCT<m: INT64>>>"
    )
    assert [remark.code for remark in result[1].remarks] == ["cut_record"]
    assert max(length for _, length in file.reads) == 1024 * 1024


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a": "' + "x" * 3_000_000 + '"}', id="one long text"),
        pytest.param('[{"a": "' + "x" * 3_000_000 + '"}]', id="one long text in an array"),
        pytest.param('{"a": {' + ",".join(f'"k{n}": 1' for n in range(300_000)) + "}}", id="one large object"),
        pytest.param('{"a": [' + "1," * 2_000_000 + "1]}", id="one long list of numbers"),
    ],
)  # fmt: skip
def test_a_record_longer_than_any_sample_is_refused(text: str) -> None:
    file = MemoryFile(text.encode())
    with pytest.raises(UnreadableFile) as problem:
        read_file("x.json", file)
    assert problem.value.code == "line_too_long"
    assert sum(length for _, length in file.reads) < 2 * 1024 * 1024
