"""What is read of Hudi tables, what is remembered of them, and what is said of broken ones."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.hudi.properties import java_properties
from lumos.formats.tables.hudi.reader import HudiReader
from lumos.formats.tables.interface import TableFacts, TableFeature, TableSchemaVersion
from lumos.model.types import INT32, INT64, STRING

from .folder import MemoryFolder
from .hudi_tables import (
    BEGINNING,
    COLUMNS,
    HudiTable,
    avro_schema,
    later,
    microseconds,
    moment_of,
    table_of,
)

READER = HudiReader()
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def folder_of(table: HudiTable) -> MemoryFolder:
    return MemoryFolder(dict(table.files), modified=dict(table.modified))


def facts_of(table: HudiTable, *, max_commits: int = 1000) -> TableFacts:
    return READER.read(folder_of(table), None, max_commits=max_commits)[0]


def problem_of(table: HudiTable) -> UnreadableFile:
    with pytest.raises(UnreadableFile) as problem:
        facts_of(table)
    return problem.value


def versions_of(past: tuple[TableSchemaVersion, ...]) -> list[tuple[str, list[str]]]:
    return [(each.version, [str(field) for field in each.schema.fields]) for each in past]


@VERSIONS
def test_every_schema_is_reported_with_the_write_that_brought_it(version: int) -> None:
    table = HudiTable(version)
    first = table.write({"a": 1})
    table.write({"b": 1})
    table.schema = avro_schema({**COLUMNS, "age": "int"})
    third = table.write({"c": 1}, operation="BULK_INSERT")

    facts = facts_of(table)

    columns = ["id INT32 KEY", "name STRING", "country STRING PARTITION"]
    assert versions_of(facts.past) == [(first, columns), (third, [*columns, "age INT32"])]
    assert facts.schema == facts.past[-1].schema
    assert facts.past[-1].operation == facts.operation == "BULK_INSERT"
    ended = moment_of(later(third)) if version >= 8 else moment_of(third)
    assert facts.past[-1].at == facts.at == ended
    assert facts.past[-1].exact_time


@pytest.mark.parametrize("operation", ["COMPACT", "CLUSTER", "LOG_COMPACT"])
def test_a_service_with_an_older_schema_changes_nothing(operation: str) -> None:
    table = HudiTable(9, merged_on_read=True)
    table.schema = avro_schema({**COLUMNS, "age": "int"})
    table.write({"a": 1})
    table.schema = avro_schema(COLUMNS)
    table.write({"a": 1}, operation=operation, action="commit")

    facts = facts_of(table)

    assert facts.schema.field("age") is not None
    assert len(facts.past) == 1
    assert facts.operation == operation


def test_the_schema_of_a_service_counts_where_no_other_is_left() -> None:
    table = HudiTable(6, properties={"hoodie.table.create.schema": avro_schema({"id": "int"})})
    table.write({"a": 1}, operation="COMPACT")
    assert facts_of(table).schema.field("name") is not None


@pytest.mark.parametrize("given", [None, '"null"'], ids=["no schema", "null"])
def test_a_write_without_a_schema_leaves_the_one_before(given: str | None) -> None:
    table = HudiTable()
    table.write({"a": 1})
    table.schema = given
    table.write({"a": 0}, operation="DELETE")
    facts = facts_of(table)
    assert [field.name for field in facts.schema.fields] == list(COLUMNS)


def test_defaults_of_null_come_and_go_without_a_new_version() -> None:
    table = HudiTable()
    table.write({"a": 1})
    record = json.loads(avro_schema(COLUMNS))
    for field in record["fields"]:
        field["default"] = None
    table.schema = json.dumps(record)
    table.write({"a": 1})
    assert len(facts_of(table).past) == 1


def test_own_columns_of_hudi_are_left_out_and_that_is_said() -> None:
    table = HudiTable()
    table.schema = avro_schema({"_hoodie_commit_time": "string", **COLUMNS})
    table.write({"a": 1})
    facts = facts_of(table)
    assert [field.name for field in facts.schema.fields] == list(COLUMNS)
    assert facts.properties["hudi.meta_columns"] == "left out of the schema"


def test_columns_that_only_paths_hold_are_columns_all_the_same() -> None:
    table = HudiTable(properties={"hoodie.datasource.write.drop.partition.columns": "true"})
    table.schema = avro_schema({"id": "int"})
    table.write({"a": 1})
    field = facts_of(table).schema.field("country")
    assert field is not None
    assert (field.type, field.partition) == (STRING, True)


def test_numbered_columns_have_ids_also_inside_of_columns() -> None:
    table = HudiTable()
    point = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
    table.schema = avro_schema(
        {"id": "int", "at": point, "tags": {"type": "array", "items": point}}
    )
    members = [{"id": 5, "name": "x", "type": "int"}]
    numbered = [
        {"id": 0, "name": "id", "type": "int", "doc": "The number."},
        {"id": 1, "name": "at", "type": {"type": "record", "fields": members}},
        {"id": 2, "name": "tags", "type": {"type": "array", "element-id": 3, "element": "x"}},
    ]
    table.extra = {"latest_schema": json.dumps({"type": "record", "fields": numbered})}
    table.write({"a": 1})

    fields = facts_of(table).schema.fields

    assert [field.field_id for field in fields] == [0, 1, 2]
    assert fields[0].description == "The number."
    assert {each.path: each.field_id for field in fields for each in field.nested} == {
        "at.x": 5,
        "tags[]": 3,
    }


def test_partitions_by_time_are_described_in_words_and_are_no_columns() -> None:
    table = HudiTable(
        properties={
            "hoodie.table.keygenerator.type": "TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
        }
    )
    table.write({"a": 1}, partition="2024/05")
    facts, memory = READER.read(folder_of(table), None, max_commits=10)
    assert facts.partition_by == ("format[yyyy/MM](country)",)
    assert [file.partition for file in READER.live(memory)] == [
        (("format[yyyy/MM](country)", "2024/05"),)
    ]
    assert not any(field.partition for field in facts.schema.fields)


@pytest.mark.parametrize(
    ("partition", "value"),
    [
        pytest.param("de", "de", id="plain"),
        pytest.param("__HIVE_DEFAULT_PARTITION__", None, id="null"),
        pytest.param("c%C3%B4te", "côte", id="encoded"),
    ],
)
def test_values_of_partitions_are_read_from_paths(partition: str, value: str | None) -> None:
    table = HudiTable(properties={"hoodie.datasource.write.partitionpath.urlencode": "true"})
    table.write({"a": 1}, partition=partition)
    _, memory = READER.read(folder_of(table), None, max_commits=10)
    assert [file.partition for file in READER.live(memory)] == [(("country", value),)]


@pytest.mark.parametrize(
    ("scenario", "rows", "exact"),
    [
        pytest.param("updated", 8, True, id="base files alone"),
        pytest.param("overwritten", 4, True, id="replaced groups do not count"),
        pytest.param("logged", 5, False, id="logs change rows"),
        pytest.param("logs alone", 5, False, id="logs hold all rows"),
    ],
)
def test_rows_are_counted_as_far_as_commits_contain_them(
    scenario: str, rows: int, exact: bool
) -> None:
    facts = facts_of(table_of(scenario, 9))
    assert (facts.rows, facts.rows_exact) == (rows, exact)


def test_rows_of_files_from_an_unread_archive_are_unknown() -> None:
    facts = facts_of(table_of("archived", 6))
    assert facts.rows is None
    assert facts.files == 3


@VERSIONS
def test_a_log_after_a_planned_compaction_counts_before_it_ran(version: int) -> None:
    table = HudiTable(version, merged_on_read=True)
    table.write({"a": 3})
    planned = table.instant()
    table.files[f"{table.timeline}/{planned}.compaction.requested"] = b"plan"
    table.write({"a": 1}, logs=True, base_instant=planned)
    assert facts_of(table).files == 2


@VERSIONS
def test_files_of_a_saved_write_count_although_later_ones_are_archived(version: int) -> None:
    table = HudiTable(version)
    saved = table.write({"a": 1})
    gone = table.write({"b": 1})
    table.write({"c": 1})
    table.files[f"{table.timeline}/{table.ended_name(saved, 'savepoint')}"] = b"x"
    table.archive(gone)
    assert facts_of(table).files == 3


@pytest.mark.parametrize("hours", [-8, 0, 9])
def test_times_of_an_unknown_zone_are_those_of_the_files(hours: int) -> None:
    table = HudiTable(6, zone="LOCAL")
    instant = table.write({"a": 1})
    written = moment_of(instant) - timedelta(hours=hours)
    table.modified[f".hoodie/{instant}.commit"] = microseconds(written)
    past = facts_of(table).past[0]
    assert (past.at, past.exact_time) == (written, False)


def test_the_modification_time_of_a_copied_file_is_not_used() -> None:
    table = HudiTable(6, zone="LOCAL")
    instant = table.write({"a": 1})
    table.modified[f".hoodie/{instant}.commit"] = microseconds(datetime(2030, 1, 1, tzinfo=UTC))
    assert facts_of(table).past[0].at == moment_of(instant)


def test_no_write_is_before_the_one_that_it_follows() -> None:
    table = HudiTable(6, zone="LOCAL")
    first = table.write({"a": 1})
    table.schema = avro_schema({**COLUMNS, "age": "int"})
    second = table.write({"a": 2})
    written = moment_of(first) + timedelta(hours=9)
    table.modified[f".hoodie/{first}.commit"] = microseconds(written)
    # Somebody copied this one, years later.
    table.modified[f".hoodie/{second}.commit"] = microseconds(datetime(2030, 1, 1, tzinfo=UTC))
    assert [past.at for past in facts_of(table).past] == [written, written]


@VERSIONS
def test_a_table_without_a_write_has_the_schema_it_was_created_with(version: int) -> None:
    table = HudiTable(version, properties={"hoodie.table.create.schema": avro_schema(COLUMNS)})
    table.write({"a": 1}, ends=False)
    facts = facts_of(table)
    assert [field.name for field in facts.schema.fields] == list(COLUMNS)
    assert (facts.files, facts.rows, facts.past, facts.version) == (0, 0, (), "00000000000000")
    assert facts.at == BEGINNING + timedelta(microseconds=123456)


def test_an_empty_table_without_a_time_is_as_old_as_its_files() -> None:
    table = HudiTable(9, properties={"hoodie.table.create.schema": avro_schema(COLUMNS)})
    place = ".hoodie/hoodie.properties"
    table.files[place] = table.files[place].replace(b"#Properties", b"#")
    table.modified[place] = microseconds(BEGINNING)
    assert facts_of(table).at == BEGINNING


@VERSIONS
def test_a_table_without_a_write_and_a_schema_is_half_written(version: int) -> None:
    table = HudiTable(version)
    table.write({"a": 1}, ends=False)
    assert problem_of(table).code == "half_written_table"


def test_a_folder_without_properties_and_writes_is_half_written() -> None:
    table = HudiTable()
    del table.files[".hoodie/hoodie.properties"]
    assert problem_of(table).code == "half_written_table"


@VERSIONS
def test_a_copy_of_the_properties_stands_in_for_them(version: int) -> None:
    table = HudiTable(version)
    table.write({"a": 1})
    data = table.files.pop(".hoodie/hoodie.properties")
    table.files[".hoodie/hoodie.properties.backup"] = data
    assert facts_of(table).files == 1


def _cut(table: HudiTable, name: str) -> None:
    table.files[name] = table.files[name][: len(table.files[name]) // 2]


def _empty(table: HudiTable, name: str) -> None:
    table.files[name] = b""


def _trash(table: HudiTable, name: str) -> None:
    table.files[name] = b"\x00\xff" * 50


@VERSIONS
@pytest.mark.parametrize("damage", [_cut, _trash])
@pytest.mark.parametrize("place", [0, -1], ids=["first write", "last write"])
def test_a_damaged_write_makes_the_table_broken_and_is_named(
    version: int, damage: Callable[[HudiTable, str], None], place: int
) -> None:
    table = HudiTable(version)
    instants = [table.write({"a": 1}), table.write({"a": 2})]
    name = table.ended_name(instants[place], "commit")
    damage(table, f"{table.timeline}/{name}")
    problem = problem_of(table)
    assert problem.code == "broken_table"
    assert name in problem.reason


@VERSIONS
def test_an_empty_last_write_did_not_end_yet(version: int) -> None:
    table = HudiTable(version)
    first = table.write({"a": 1})
    last = table.write({"a": 2})
    _empty(table, f"{table.timeline}/{table.ended_name(last, 'commit')}")
    facts = facts_of(table)
    assert (facts.version, facts.rows) == (first, 1)
    assert [remark.code for remark in facts.remarks] == ["half_written_table"]


@VERSIONS
def test_an_empty_write_that_others_followed_is_broken(version: int) -> None:
    table = HudiTable(version)
    first = table.write({"a": 1})
    table.write({"a": 2})
    _empty(table, f"{table.timeline}/{table.ended_name(first, 'commit')}")
    assert problem_of(table).code == "broken_table"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"hoodie.table.version=9\n", "no hoodie.table.name"),
        (b"hoodie.table.name=t\nhoodie.table.version=nine\n", "not a number: 'nine'"),
        (b"hoodie.table.name=t\nhoodie.table.version=6\n", "No write in the timeline has"),
    ],
)
def test_properties_that_cannot_be_used_are_named(data: bytes, reason: str) -> None:
    table = HudiTable(6)
    table.schema = None
    table.write({"a": 1})
    table.files[".hoodie/hoodie.properties"] = data
    problem = problem_of(table)
    assert problem.code == "broken_table"
    assert reason in problem.reason


def test_missing_properties_of_a_table_with_writes_are_a_break() -> None:
    table = table_of("updated", 9)
    del table.files[".hoodie/hoodie.properties"]
    assert problem_of(table).code == "broken_table"


@VERSIONS
def test_a_second_reading_opens_what_is_new_alone(version: int) -> None:
    table = HudiTable(version)
    for _ in range(3):
        table.write({"a": 1})
    _, memory = READER.read(folder_of(table), None, max_commits=100)
    newest = table.write({"b": 2})

    folder = folder_of(table)
    facts, memory = READER.read(folder, memory, max_commits=100)

    name = f"{table.timeline}/{table.ended_name(newest, 'commit')}"
    assert folder.opened == [".hoodie/hoodie.properties", name]
    assert facts == facts_of(table)
    assert facts.rows == 3


@VERSIONS
def test_what_was_read_is_remembered_after_it_is_archived(version: int) -> None:
    table = HudiTable(version)
    first = table.write({"a": 1})
    table.schema = avro_schema({**COLUMNS, "age": "int"})
    second = table.write({"b": 2})
    before, memory = READER.read(folder_of(table), None, max_commits=100)
    table.write({"c": 3})
    table.archive(first)

    facts, _ = READER.read(folder_of(table), memory, max_commits=100)

    assert facts.past == before.past
    assert [past.version for past in facts.past] == [first, second]
    assert facts.rows == 6


def test_an_archive_is_read_where_nothing_is_remembered() -> None:
    table = table_of("archived", 9)
    facts = facts_of(table)
    assert [past.schema.field("age") is None for past in facts.past] == [True, False]
    assert facts.remarks == ()
    assert facts.rows == 9


@pytest.mark.parametrize("name", ["manifest_1", "_version_", ".parquet"])
def test_a_broken_archive_is_a_remark(name: str) -> None:
    table = table_of("archived", 9)
    for path in table.files:
        if "/history/" in path and path.endswith(name):
            _trash(table, path)
    facts = facts_of(table)
    assert [remark.code for remark in facts.remarks] == ["incomplete_history"]
    assert facts.files == 3


def test_an_archive_of_old_versions_is_a_remark() -> None:
    facts = facts_of(table_of("archived", 6))
    assert [remark.code for remark in facts.remarks] == ["incomplete_history"]


@VERSIONS
def test_a_write_that_was_rolled_back_is_forgotten(version: int) -> None:
    table = HudiTable(version)
    table.write({"a": 1})
    table.schema = avro_schema({**COLUMNS, "age": "int"})
    taken_back = table.write({"b": 2})
    _, memory = READER.read(folder_of(table), None, max_commits=100)
    table.roll_back(taken_back)

    facts, _ = READER.read(folder_of(table), memory, max_commits=100)

    assert facts == facts_of(table)
    assert facts.schema.field("age") is None


@pytest.mark.parametrize("memory", [b"", b"\x00trash", b"\x92\x02\x90"])
def test_a_memory_that_cannot_be_used_is_passed_over(memory: bytes) -> None:
    table = table_of("evolved", 9)
    assert READER.read(folder_of(table), memory, max_commits=100)[0] == facts_of(table)


@VERSIONS
def test_no_more_writes_are_opened_than_asked_for(version: int) -> None:
    table = table_of("overwritten", version)
    table.write({"d": 1})
    folder = folder_of(table)
    facts, _ = READER.read(folder, None, max_commits=1)
    # What was replaced must be known all the same.
    assert len(folder.opened) == 3
    assert facts.files == 3


@VERSIONS
def test_the_signature_changes_with_writes_and_not_with_their_beginnings(version: int) -> None:
    table = table_of("updated", version)
    before = READER.signature(folder_of(table))
    table.write({"a": 9}, ends=False)
    assert READER.signature(folder_of(table)) == before
    table.write({"a": 9})
    assert READER.signature(folder_of(table)) != before


def test_a_signature_follows_the_timeline_that_the_properties_name() -> None:
    table = HudiTable(9, properties={"hoodie.timeline.path": "instants"})
    table.write({"a": 1})
    before, files = READER.signature(folder_of(table)), facts_of(table).files
    table.write({"a": 9}, ends=False)
    assert READER.signature(folder_of(table)) == before
    table.write({"b": 1})
    assert READER.signature(folder_of(table)) != before
    assert facts_of(table).files == files + 1


def test_a_signature_opens_nothing() -> None:
    folder = folder_of(table_of("updated", 9))
    READER.signature(folder)
    assert folder.opened == []
    assert "**" not in folder.listed


@VERSIONS
def test_content_changes_with_live_files_alone(version: int) -> None:
    table = HudiTable(version)
    first = table.write({"a": 1, "b": 1})
    table.write({"a": 2})
    before = facts_of(table).content
    table.clean(("a", first))
    assert facts_of(table).content == before
    table.write({"a": 3})
    assert facts_of(table).content != before


def test_newer_features_are_named_and_the_rest_is_read() -> None:
    table = HudiTable(
        10,
        merged_on_read=True,
        properties={
            "hoodie.table.cdc.enabled": "true",
            "hoodie.bootstrap.base.path": "s3://lake/old",
        },
    )
    table.write({"a": 1})
    facts = facts_of(table)
    assert facts.features == (
        TableFeature("table version 10", False),
        TableFeature("merge on read", True),
        TableFeature("change data capture", True),
        TableFeature("bootstrapped from files elsewhere", False),
    )
    (remark,) = facts.remarks
    assert remark.code == "unsupported_feature"
    assert remark.reason.endswith(": table version 10, bootstrapped from files elsewhere.")
    assert facts.outside_locations == ("s3://lake/old",)
    assert facts.rows == 1


def test_properties_are_read_without_secrets_and_volatile_values() -> None:
    own = {"hoodie.table.checksum": "1", "hoodie.x": "y", "hoodie.x.password": "hush"}
    table = HudiTable(properties=own)
    table.write({"a": 1})
    properties = facts_of(table).properties
    assert "hush" not in properties.values()
    assert properties["hoodie.x"] == "y"
    assert "hoodie.table.checksum" not in properties


def test_strangers_among_the_files_do_not_count() -> None:
    table = HudiTable(9, merged_on_read=True)
    instant = table.write({"a": 1})
    place = table.place(None)
    for name in (
        "part-0.parquet",
        f"notes_{instant}.parquet",
        f".a_{instant}.log.1_0-1-1.cdc",
        f"a_0-1-1_{instant}.parquet.crc",
    ):
        table.files[place + name] = b"x"
    table.files[f"b_0-1-1_{instant}.parquet"] = b"not in a partition"
    assert facts_of(table).files == 1


def test_types_are_those_of_avro() -> None:
    table = HudiTable()
    table.schema = avro_schema({"id": "int", "n": "long"})
    table.write({"a": 1})
    assert [field.type for field in facts_of(table).schema.fields] == [INT32, INT64]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=b", {"a": "b"}),
        ("a : b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("# a=b\n! c=d\n\n", {}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a\\=b=c\\:d", {"a=b": "c:d"}),
        ("a=\\u00e9\\t\\\\", {"a": "é\t\\"}),
        ("a", {"a": ""}),
        ("a=b\r\nc=d\\", {"a": "b", "c": "d"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, values: dict[str, str]) -> None:
    assert java_properties(text) == values
