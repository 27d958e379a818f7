"""Proposed schemas in every form, read from files."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from files import write_parquet
from lumos.errors import MisuseError
from lumos.schemas.files import UnreadableSchema
from lumos.schemas.proposal_reader import (
    ProposalKind,
    ProposalTarget,
    SchemaProposal,
    detect_kind,
    read_proposal,
)

ORDERS = ProposalTarget(name="orders", platform="file")
DBT = """
version: 2
models:
  - name: other
    columns: [{name: z, data_type: int}]
  - name: orders
    config: {contract: {enforced: true}}
    constraints:
      - {type: primary_key, columns: [id]}
    columns:
      - name: id
        data_type: bigint
        description: "{{ doc('id') }}"
      - name: amount
        data_type: decimal(9,2)
        constraints: [{type: not_null}]
      - name: note
        data_tests: [unique, {not_null: {severity: warn}}]
      - name: item.price
"""


def read(
    file: Path, kind: ProposalKind | None = None, target: ProposalTarget = ORDERS
) -> SchemaProposal:
    return read_proposal(file, kind=kind, target=target)


def put(folder: Path, name: str, content: Any) -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


AVRO = {"type": "record", "name": "o", "fields": [{"name": "id", "type": "long"}]}
JSON_SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("p.schema", "id INT64 NOT NULL", "lumos"),
        ("p.txt", "id INT64 NOT NULL", "lumos"),
        ("p.avsc", AVRO, "avro"),
        ("p.json", AVRO, "avro"),
        ("p.json", JSON_SCHEMA, "json-schema"),
        ("p.sql", "CREATE TABLE orders (id bigint NOT NULL)", "sql"),
        ("p", "create or replace table orders (id bigint not null)", "sql"),
        ("p.yml", "models:\n- name: orders\n  columns:\n  - {name: id, data_type: bigint, tests: [not_null]}", "dbt"),
        ("p", "version: 2\nmodels:\n- {name: orders, columns: [{name: id, data_type: bigint, tests: [not_null]}]}", "dbt"),
    ],
)  # fmt: skip
def test_the_kind_is_known_by_ending_or_content(
    tmp_path: Path, name: str, content: Any, kind: ProposalKind
) -> None:
    file = put(tmp_path, name, content)
    assert detect_kind(file) == kind
    assert str(read(file).schema) == "id INT64 NOT NULL"


def test_a_parquet_file_is_a_proposal_whatever_it_is_called(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "p.bin", id=pa.int64(), note=pa.string())
    found = read(file)
    assert (found.kind, str(found.schema)) == ("parquet", "id INT64\nnote STRING")
    assert not found.format.has_partitions


def test_the_kind_may_be_given(tmp_path: Path) -> None:
    file = put(tmp_path, "p.json", "CREATE TABLE orders (id bigint)")
    assert read(file, kind="sql").kind == "sql"


def test_a_dbt_model_is_read_with_its_contract_keys_and_tests(tmp_path: Path) -> None:
    found = read(put(tmp_path, "schema.yml", DBT))
    assert str(found.schema) == (
        "id INT64 NOT NULL KEY COMMENT '{{ doc(''id'') }}'\n"
        "amount DECIMAL(9,2) NOT NULL\n"
        "note UNKNOWN NOT NULL"
    )
    assert found.remarks == ("nested column item.price is not compared",)


def test_a_model_without_a_contract_is_remarked_on(tmp_path: Path) -> None:
    found = read(
        put(tmp_path, "schema.yml", DBT),
        target=ProposalTarget(name="x", platform="file", model="other"),
    )
    assert "contract of other is not enforced" in found.remarks[0]


def test_a_table_is_picked_by_name(tmp_path: Path) -> None:
    file = put(tmp_path, "p.sql", "CREATE TABLE a (x int); CREATE TABLE ORDERS (y int)")
    assert str(read(file).schema) == "y INT32"
    picked = read(file, target=ProposalTarget(name="orders", platform="file", model="A"))
    assert str(picked.schema) == "x INT32"
    with pytest.raises(MisuseError, match=r"No table in .* named 'b'\. Known: ORDERS, a"):
        read(file, target=ProposalTarget(name="orders", platform="file", model="b"))
    with pytest.raises(UnreadableSchema, match="choose with --model from: a, ORDERS"):
        read(file, target=ProposalTarget(name="customers", platform="file"))


@pytest.mark.parametrize(
    ("platform", "dialect", "type", "expected"),
    [
        ("snowflake", None, "int", "DECIMAL(38,0)"),
        ("postgres", None, "int", "INT32"),
        ("file", "bigquery", "int", "INT64"),
        pytest.param("file", None, "jsonb", "JSON", id="guessed"),
    ],
)
def test_types_are_those_of_the_platform_or_the_dialect(
    tmp_path: Path, platform: str, dialect: Any, type: str, expected: str
) -> None:
    file = put(tmp_path, "p.sql", f"CREATE TABLE orders (id {type})")
    found = read(file, target=ProposalTarget(name="orders", platform=platform, dialect=dialect))
    assert found.schema.fields[0].type.text == expected


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("p.schema", "a INT64\nb INTEGER\n", r"p\.schema:2:3: no type named 'INTEGER'. Did you mean 'INT32'"),
        ("p.schema", "a INT64\na STRING\n", r"p\.schema:2:1: the field 'a' is listed twice"),
        ("p.schema", "a STRUCT<b: INT64, b: STRING>\n", "the field 'a.b' is listed twice"),
        ("p.schema", "a " + "ARRAY<" * 5000, r"p\.schema:1:603: a type nests deeper than 100 levels"),
        ("p.schema", "# nothing\n", "it has no fields"),
        ("p.avsc", '{"type": "record",\n "fields": [}', r"p\.avsc:2:13: this is not valid JSON"),
        ("p.avsc", {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}] * 2}, "the field 'a' is defined twice"),
        ("p.avsc", "3", "this is not an Avro schema"),
        ("p.json", '{"properties": {"a": {"type": "string"}, "a": {"type": "null"}}}', "the name 'a' is defined twice"),
        ("p.json", '{"a": 1}', "neither a JSON Schema nor an Avro schema"),
        ("p.json", "[" * 100_000, "nests too deeply"),
        ("p.json", '{"a":' * 100_000, "nests too deeply"),
        ("p.sql", "SELECT 1", "no CREATE TABLE"),
        ("p.sql", "CREATE TABLE t (a int,\n a int)", r"p\.sql:2:2: the column 'a' is listed twice"),
        ("p.yml", "models:\n  - name: a\n   b: c", r"p\.yml:3:4: This is not valid YAML"),
        ("p.yml", "models:\n- name: orders\n  columns:\n  - name: a\n  - name: a", r"p\.yml:5: The column 'a' is defined twice"),
        ("p.yml", "macros: []", "it contains no models"),
        ("p.yml", "- " * 5_000, "nests deeper"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, name: str, content: Any, problem: str
) -> None:
    with pytest.raises(MisuseError, match=problem):
        read(put(tmp_path, name, content))


def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "p.schema").write_bytes(b"a INT64\nb \xff STRING\n")
    with pytest.raises(UnreadableSchema, match=r"p\.schema:2:3: this is not UTF-8 text"):
        read(tmp_path / "p.schema")


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UnreadableSchema, match="does not end with Parquet"):
        read(tmp_path / "p.parquet")


def nested_avro(levels: int) -> Any:
    schema: Any = "long"
    for level in range(levels):
        fields = [{"name": "a", "type": schema}]
        schema = {"type": "record", "name": f"r{level}", "fields": fields}
    return schema


def test_a_schema_that_nests_deeply_is_cut_and_remarked_on(tmp_path: Path) -> None:
    found = read(put(tmp_path, "p.avsc", nested_avro(150)))
    assert "a nests deeper than 100 levels" in found.remarks[0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.avsc", {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]}),
        ("p.json", {"properties": {"next": {"$ref": "#"}}, "title": "node"}),
    ],
)  # fmt: skip
def test_types_that_hold_themselves_are_cut(tmp_path: Path, name: str, content: Any) -> None:
    found = read(put(tmp_path, name, content))
    assert str(found.schema) == "next UNKNOWN('recursive:node')"


def test_a_byte_order_mark_and_windows_lines_are_no_problem(tmp_path: Path) -> None:
    file = tmp_path / "p.schema"
    file.write_bytes("\ufeffa INT64\r\n# x\r\nb STRING COMMENT 'é'\r\n".encode())
    assert [field.name for field in read(file).schema.fields] == ["a", "b"]
