"""lumos show of a table: what its log tells, and by which ids it knows its columns."""

from typing import Any

import msgspec
import pytest

from lumos import Lumos
from lumos.model.dataset import Statistics
from lumos.model.discovery import SourceMetadata
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import parse_type
from recorded_lake import RecordedLake, urn_of

FIELDS = (
    Field(name="id", type=parse_type("INT64"), field_id=1, key=True),
    Field(
        name="who",
        type=parse_type("STRUCT<city: STRING, zip: STRING>"),
        field_id=2,
        nested=(
            NestedField(path="who.city", field_id=3),
            NestedField(path="who.zip", field_id=12, description="of the house"),
        ),
    ),
    Field(name="later", type=parse_type("STRING")),
)


def see(
    name: str,
    format: str,
    properties: dict[str, str],
    fields: tuple[Field, ...],
    *,
    files: int = 1,
) -> None:
    sightings = RecordedLake(Lumos())
    found = msgspec.structs.replace(
        sightings._found(name, Schema(fields=fields), None),
        format=format,
        source_metadata=SourceMetadata(properties=properties),
        statistics=Statistics(file_count=files, total_size_bytes=0),
    )
    list(sightings.recorder().record([(urn_of(found.path), found)]))


@pytest.mark.usefixtures("workplace")
def test_ids_of_fields_are_a_column_where_there_are_any(lumos: Any) -> None:
    see("visits", "iceberg", {"table.version": "7"}, FIELDS)
    lines = lumos("show", "visits").out.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("FIELD"))
    assert [line.split() for line in lines[at:]] == [
        ["FIELD", "TYPE", "NULL", "ID"],
        ["id", "INT64", "yes", "1", "key"],
        ["who", "STRUCT", "yes", "2"],
        ["who.city", "STRING", "yes", "3"],
        ["who.zip", "STRING", "yes", "12", "description:", "of", "the", "house"],
        ["later", "STRING", "yes"],
    ]
    fields = lumos("show", "visits", "--json").json["dataset"]["schema"]["fields"]
    assert [field.get("field_id") for field in fields] == [1, 2, None]
    assert "field_id" not in fields[2]
    assert [note["field_id"] for note in fields[1]["nested"]] == [3, 12]


@pytest.mark.usefixtures("workplace")
def test_without_ids_there_is_no_such_column(lumos: Any) -> None:
    see("orders", "delta", {"table.version": "7"}, FIELDS[2:])
    assert "ID" not in lumos("show", "orders").out.split()


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(
    ("format", "version", "shown"),
    [
        ("delta", "5", "table version 5 (WRITE)"),
        ("iceberg", "2867607288094440125", "snapshot 2867607288094440125 (WRITE)"),
        ("iceberg", "none", "snapshot none"),
        ("hudi", "20240101000000000", "instant 20240101000000000 (WRITE)"),
    ],
)
def test_a_version_is_called_as_its_format_calls_it(
    format: str, version: str, shown: str, lumos: Any
) -> None:
    operation = {} if version == "none" else {"table.operation": "WRITE"}
    see("t", format, {"table.version": version, **operation}, FIELDS)
    assert shown in lumos("show", "t").words


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(("default", "shown"), [("9", "default 9"), ("", "default ''")])
def test_defaults_of_columns_are_shown(default: str, shown: str, lumos: Any) -> None:
    city = NestedField(path="who.city", default=default)
    see("t", "delta", {}, (Field(name="a", type=parse_type("INT64"), default=default),))
    see("u", "delta", {}, (Field(name="who", type=FIELDS[1].type, nested=(city,)),))
    assert f"a INT64 yes {shown}" in lumos("show", "t").words
    assert f"who.city STRING yes {shown}" in lumos("show", "u").words


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(("format", "is_counted"), [("iceberg", True), ("table", False)])
def test_a_table_without_files_has_none_and_one_of_a_database_never_has(
    format: str, is_counted: bool, lumos: Any
) -> None:
    see("t", format, {}, FIELDS, files=0)
    assert ("files 0" in lumos("show", "t").words) == is_counted


@pytest.mark.usefixtures("workplace")
def test_settings_stand_below_one_another(lumos: Any) -> None:
    expected = {
        "table.version": "3",
        "table.features": "appendOnly, rowTracking (not read)",
        "b": "1\n2",
        "a": "x=y",
        "comment": "all of them",
    }
    see("orders", "delta", expected, FIELDS)
    lines = lumos("show", "orders").out.splitlines()
    assert "features       appendOnly, rowTracking (not read)" in lines
    at = lines.index("settings       a=x=y")
    assert lines[at + 1] == r"               b=1\n2"
    assert lines[at + 2].startswith("version")


@pytest.mark.usefixtures("workplace")
def test_what_is_no_table_has_neither(lumos: Any) -> None:
    see("loose", "parquet", {"some": "thing"}, FIELDS[2:])
    shown = lumos("show", "loose").out.split()
    assert not {"settings", "features", "snapshot"} & set(shown)
