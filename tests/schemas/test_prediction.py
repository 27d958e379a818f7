"""What would break, by proposals in every form."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lumos.errors import LumosError
from lumos.model.conversions.arrow import schema_to_arrow
from lumos.model.conversions.avro import schema_to_avro
from lumos.model.conversions.json_schema import schema_to_json_schema
from lumos.model.conversions.sql_type_reader import quoted
from lumos.model.conversions.sql_types import Dialect, type_to_sql
from lumos.model.schema import Schema, parse_schema
from lumos.schemas.files import UnreadableSchema
from lumos.schemas.reports import PredictReport
from lumos.schemas.service import Schemas
from lumos.store import Database, Store
from lumos.store.errors import UnknownDataset
from schema_histories import day, record

ORDERS = "lumos://s3/lake/orders"
CURRENT = """
id INT32 NOT NULL
Amount DECIMAL(9,2)
price FLOAT32
small UINT8 NOT NULL
placed TIMESTAMP(ms)
zoned TIMESTAMPTZ(us)
item STRUCT<sku: STRING NOT NULL, n: INT16, tags: ARRAY<STRING NOT NULL>>
facts MAP<STRING, INT16>
note STRING
dt DATE PARTITION
"""
DIALECTS: tuple[Dialect, ...] = ("postgres", "snowflake", "bigquery", "hive")


@pytest.fixture
def schemas(tmp_path: Path) -> Schemas:
    database = Database.sqlite(tmp_path / "lumos.db")
    store = Store.open(database, create=True)
    record(store, ORDERS, CURRENT, day("2024-01-01"))
    return Schemas(lambda: store)


def without_partition(text: str = CURRENT) -> Schema:
    fields = parse_schema(text).fields
    return Schema(fields=tuple(field for field in fields if not field.partition))


def create_table(schema: Schema, dialect: Dialect) -> str:
    columns = [
        f"{quoted(field.name, dialect)} {type_to_sql(field.type, dialect)}"
        + ("" if field.nullable else " NOT NULL")
        for field in schema.fields
        if not (field.partition and dialect == "hive")
    ]
    partitioned = {"hive": "PARTITIONED BY (dt date)", "postgres": "PARTITION BY RANGE (dt)"}
    return f"CREATE TABLE sales.orders (\n{', '.join(columns)}) {partitioned.get(dialect, '')};"


def dbt(schema: Schema) -> str:
    columns = [
        {
            "name": field.name.upper(),
            "data_type": type_to_sql(field.type, "hive"),
            "constraints": [] if field.nullable else [{"type": "not_null"}],
        }
        for field in reversed(schema.fields)
    ]
    contract = {"contract": {"enforced": True}}
    return json.dumps({"models": [{"name": "orders", "config": contract, "columns": columns}]})


def proposals(text: str) -> dict[str, tuple[str, Any, dict[str, Any]]]:
    """The same schema in every form: file name, content, and options."""
    schema, plain = parse_schema(text), without_partition(text)
    forms: dict[str, tuple[str, Any, dict[str, Any]]] = {
        "lumos": ("p.schema", str(schema), {}),
        "avro": ("p.avsc", json.dumps(schema_to_avro(plain)), {}),
        "json-schema": ("p.json", json.dumps(schema_to_json_schema(plain), sort_keys=True), {}),
        "dbt": ("p.yml", dbt(schema), {"dialect": "hive"}),
        "parquet": ("p.parquet", plain, {}),
    }
    for dialect in DIALECTS:
        forms[dialect] = ("p.sql", create_table(schema, dialect), {"dialect": dialect})
    return forms


FORMS = tuple(proposals(CURRENT))


def predict(schemas: Schemas, folder: Path, form: str, text: str) -> PredictReport:
    name, content, options = proposals(text)[form]
    if isinstance(content, Schema):
        pq.write_table(schema_to_arrow(content).empty_table(), folder / name)
    else:
        (folder / name).write_text(content, encoding="utf-8")
    return schemas.predict("orders", folder / name, **options)


@pytest.mark.parametrize("form", FORMS)
def test_the_present_schema_changes_nothing_in_any_form(
    schemas: Schemas, tmp_path: Path, form: str
) -> None:
    report = predict(schemas, tmp_path, form, CURRENT)
    assert [each.changes for each in report.datasets] == []


@pytest.mark.parametrize("form", FORMS)
def test_what_breaks_is_found_in_every_form(schemas: Schemas, tmp_path: Path, form: str) -> None:
    proposed = CURRENT.replace("id INT32", "id STRING").replace("note STRING\n", "")
    proposed = proposed.replace("dt DATE", "coupon STRING\ndt DATE")
    report = predict(schemas, tmp_path, form, proposed)
    (found,) = report.datasets
    assert (found.urn, found.from_version, found.to_version) == (ORDERS, "1.0.0", "2.0.0")
    breaking = {(row.path, row.kind) for row in found.changes if row.consumer.value == "breaking"}
    assert breaking == {("id", "type_changed"), ("note", "removed")}
    rest = {(row.path.lower(), row.kind) for row in found.changes} - breaking
    assert rest == {("coupon", "added")}
    assert report.summary.breaking == 2


@pytest.mark.parametrize("form", ["lumos", "avro", "json-schema", "bigquery", "hive", "parquet"])
def test_what_breaks_inside_a_column_is_found(schemas: Schemas, tmp_path: Path, form: str) -> None:
    proposed = CURRENT.replace("n: INT16, tags", "n: STRING, tags")
    (found,) = predict(schemas, tmp_path, form, proposed).datasets
    assert [(row.path, row.before, row.after) for row in found.changes] == [
        ("item.n", "INT16", "STRING")
    ]


def put(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def test_the_report_says_what_was_read_and_how(schemas: Schemas, tmp_path: Path) -> None:
    file = put(
        tmp_path / "schema.yml", "models: [{name: orders, columns: [{name: ID}, {name: x.y}]}]"
    )
    report = schemas.predict(ORDERS, file, output=tmp_path / "out.json")
    assert (report.proposed.kind, report.proposed.file) == ("dbt", str(file))
    assert [row.kind for row in report.datasets[0].changes] == ["removed"] * 9
    assert len(report.remarks) == 2
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["summary"] == {
        "datasets": 1, "changes": 9, "breaking": 9, "compatible": 0, "informational": 0,
        "undetermined": 0,
    }  # fmt: skip
    assert written["format_version"] == "1.0"


def test_a_recursive_proposal_is_undetermined_where_it_is_cut(
    schemas: Schemas, tmp_path: Path
) -> None:
    properties = schema_to_json_schema(without_partition())
    properties["properties"]["item"] = {"$ref": "#"}
    (found,) = schemas.predict("orders", put(tmp_path / "p.json", json.dumps(properties))).datasets
    assert [(row.path, row.consumer.value) for row in found.changes] == [("item", "undetermined")]


def test_an_unknown_dataset_or_file_is_refused(schemas: Schemas, tmp_path: Path) -> None:
    with pytest.raises(UnknownDataset, match="No dataset order in the store"):
        schemas.predict("order", put(tmp_path / "p.schema", "a INT32"))
    for path in (tmp_path / "nothing.sql", tmp_path):
        with pytest.raises(UnreadableSchema, match=r"there is no such file|this is a folder"):
            schemas.predict("orders", path)


ODD = """
id INT32 NOT NULL
small UINT8
amount DECIMAL(9,2)
price FLOAT32
placed TIMESTAMP(ms)
state ENUM('a','b')
code UUID
short STRING(10)
raw BINARY
item STRUCT<n: INT16, price: FLOAT32>
"""
ORDINARY = {
    "id": {"type": "integer"},
    "small": {"type": "integer"},
    "amount": {"type": "number"},
    "price": {"type": "number"},
    "placed": {"type": "string", "format": "date-time"},
    "state": {"type": "string"},
    "code": {"type": "string"},
    "short": {"type": "string"},
    "raw": {"type": "string"},
    "item": {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "price": {"type": "number"}},
    },
}


@pytest.fixture
def odd(tmp_path: Path) -> Schemas:
    store = Store.open(Database.sqlite(tmp_path / "lumos.db"), create=True)
    record(store, ORDERS, ODD, day("2024-01-01"))
    return Schemas(lambda: store)


def ordinary(tmp_path: Path, **properties: object) -> Path:
    schema = {"type": "object", "properties": {**ORDINARY, **properties}, "required": ["id"]}
    return put(tmp_path / "proposed.json", json.dumps(schema))


def change_texts(report: PredictReport) -> list[tuple[str, str]]:
    return [(row.path, row.rule) for each in report.datasets for row in each.changes]


def test_an_ordinary_json_schema_of_the_same_data_changes_nothing(
    odd: Schemas, tmp_path: Path
) -> None:
    assert change_texts(odd.predict("orders", ordinary(tmp_path))) == []


@pytest.mark.parametrize(
    ("name", "schema", "change"),
    [
        ("id", {"type": "integer", "format": "int64"}, ("id", "integer-widened")),
        ("id", {"type": "number"}, ("id", "integer-to-float64")),
        ("id", {"type": "string"}, ("id", "scalar-to-string")),
        (
            "amount",
            {"type": "number", "format": "double"},
            ("amount", "decimal-to-other-number"),
        ),
        ("placed", {"type": "string"}, ("placed", "scalar-to-string")),
        (
            "item",
            {
                "type": "object",
                "properties": {
                    "n": {"type": "integer", "format": "int64"},
                    "price": {"type": "number", "format": "float"},
                },
            },
            ("item.n", "integer-widened"),
        ),
    ],
)
def test_what_a_json_schema_does_say_is_a_change(
    odd: Schemas, tmp_path: Path, name: str, schema: object, change: tuple[str, str]
) -> None:
    assert change_texts(odd.predict("orders", ordinary(tmp_path, **{name: schema}))) == [change]


@pytest.mark.parametrize(
    ("dialect", "present", "type"),
    [
        ("snowflake", "a INT32", "INTEGER"),
        ("snowflake", "a UINT16", "NUMBER"),
        ("snowflake", "a TIMESTAMP(us)", "TIMESTAMP_NTZ"),
        ("snowflake", "a UUID", "VARCHAR"),
        ("postgres", "a TIMESTAMPTZ(ms)", "timestamptz"),
        ("postgres", "a TIMESTAMP(ns)", "timestamp"),
        ("bigquery", "a INT16", "INT64"),
        ("bigquery", "a FLOAT32", "FLOAT64"),
        ("hive", "a TIMESTAMPTZ(us)", "TIMESTAMP"),
    ],
)
@pytest.mark.parametrize("form", ["sql", "dbt"])
def test_a_dialect_is_not_asked_for_more_than_it_can_say(
    tmp_path: Path, dialect: Dialect, present: str, type: str, form: str
) -> None:
    store = Store.open(Database.sqlite(tmp_path / "lumos.db"), create=True)
    record(store, ORDERS, present, day("2024-01-01"))
    texts = {
        "sql": f"CREATE TABLE orders (a {type});",
        "dbt": "models:\n  - name: orders\n    config: {contract: {enforced: true}}\n"
        f"    columns:\n      - name: a\n        data_type: {type}\n",
    }
    file = put(tmp_path / f"p.{'yml' if form == 'dbt' else 'sql'}", texts[form])
    assert change_texts(Schemas(lambda: store).predict("orders", file, dialect=dialect)) == []


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        pytest.param(
            "p.avsc",
            '{"type":"record","name":"r","fields":[{"name":"a","type":"strng"}]}',
            r"at a: there is no type named 'strng'",
            id="Avro type",
        ),
        pytest.param(
            "p.json",
            '{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/x"}}}}',
            r"at a\[\]: the reference #/\$defs/x does not exist",
            id="reference to nothing",
        ),
        pytest.param("p.json", '{"$ref":"#"}', "only refers to itself", id="only itself"),
        pytest.param(
            "p.json",
            '{"type":"object","properties":{"a":{"type":"strng"}}}',
            "at a: there is no type named 'strng'",
            id="JSON type",
        ),
        pytest.param("p.json", "5", "neither a JSON Schema nor an Avro schema", id="a number"),
        pytest.param("p.csv", "a,b\n1,2\n", "data, not a schema", id="CSV"),
        pytest.param(
            "p.yml", "models:\n" + "- " * 3_000 + "x\n", "p.yml", id="dbt that nests deeply"
        ),
        pytest.param("p.yml", "models: " + "[" * 3_000, "p.yml", id="dbt of brackets"),
    ],
)
def test_a_proposal_that_is_none_is_refused_with_its_place(
    odd: Schemas, tmp_path: Path, file: str, text: str, problem: str
) -> None:
    with pytest.raises(LumosError, match=problem):
        odd.predict("orders", put(tmp_path / file, text))
