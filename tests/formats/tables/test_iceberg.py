"""Iceberg tables that pyiceberg wrote: every fact is the one that pyiceberg reads."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as JudgeSchema
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.sorting import SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform, MonthTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from lumos.formats.tables.interface import TableFacts
from lumos.model.conversions.arrow import schema_from_arrow
from lumos.model.schema import Schema

from .folder import LocalFolder
from .iceberg_tables import MOST, READER, catalog_at, facts_of

ROWS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("country", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
    ]
)


def rows(*ids: int, country: str = "de") -> pa.Table:
    times = [datetime(2024, 5, 1 + id % 28, 12, tzinfo=UTC) for id in ids]
    table = {"id": list(ids), "country": [country] * len(ids), "ts": times}
    return pa.table(table, schema=ROWS)


def folder_of(table: Table) -> LocalFolder:
    return LocalFolder(table.location().removeprefix("file://"))


def judged(table: Table) -> StaticTable:
    """The table as pyiceberg reads it from its current metadata file."""
    return StaticTable.from_metadata(table.metadata_location)


def described(schema: Schema) -> tuple[list[Any], dict[int | None, str | None]]:
    """Columns with the ids of all that is inside them, and comments by id."""
    columns = [
        (
            (each.name, str(each.type), each.nullable, each.field_id),
            sorted((nested.path, nested.field_id) for nested in each.nested),
        )
        for each in schema.fields
    ]
    parts = [part for each in schema.fields for part in (each, *each.nested)]
    return columns, {part.field_id: part.description for part in parts if part.description}


def as_judged(schema: JudgeSchema) -> tuple[list[Any], dict[int | None, str | None]]:
    """The same of the judge's schema, by way of Arrow; that leaves comments out."""
    columns, _ = described(schema_from_arrow(schema_to_pyarrow(schema)))
    fields = (schema.find_field(id) for id in schema.field_ids)
    return columns, {field.field_id: field.doc for field in fields if field.doc}


def assert_facts_are_the_judges(facts: TableFacts, table: Table, memory: bytes) -> None:
    judge = judged(table)
    files = judge.inspect.data_files().to_pylist() if judge.current_snapshot() else []
    current = judge.current_snapshot()
    assert facts.version == (str(current.snapshot_id) if current else "none")
    assert facts.identity == str(judge.metadata.table_uuid)
    assert described(facts.schema) == as_judged(judge.schema())
    assert (facts.files, facts.bytes) == (len(files), sum(f["file_size_in_bytes"] for f in files))
    live = list(READER.live(memory))
    root = table.location()
    assert sorted(f"{root}/{file.path}" for file in live) == sorted(f["file_path"] for f in files)
    assert sum(file.size for file in live) == facts.bytes
    assert (facts.rows, facts.rows_exact) == (judge.scan().count(), True)
    if current:
        # A snapshot that was rolled back to is older than the table's state.
        since = judge.history()[-1]
        assert since.snapshot_id == current.snapshot_id
        assert facts.at == datetime.fromtimestamp(since.timestamp_ms / 1000, UTC)
        assert facts.operation == current.summary.operation.value
    assert facts.past[-1].schema == facts.schema


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return catalog_at(tmp_path).create_table("n.t", ROWS)


def test_a_table_without_data_has_a_schema_and_no_files(table: Table) -> None:
    facts, memory = READER.read(folder_of(table), None, max_commits=MOST)
    assert_facts_are_the_judges(facts, table, memory)
    assert (facts.version, facts.files, facts.rows) == ("none", 0, 0)
    assert [past.exact_time for past in facts.past] == [True]


def test_appends_overwrites_and_deletes_leave_the_live_files(table: Table) -> None:
    for id in range(4):
        table.append(rows(id, id + 10))
    table.delete("id == 2")
    table.overwrite(rows(7, 8), overwrite_filter="id == 3")
    facts, memory = READER.read(folder_of(table), None, max_commits=MOST)
    assert_facts_are_the_judges(facts, table, memory)


def test_schemas_of_the_past_have_the_times_of_their_commits(table: Table) -> None:
    expected = [(table.schema(), table.metadata.last_updated_ms, "none")]
    table.append(rows(1))
    version = str(table.current_snapshot().snapshot_id)
    with table.update_schema() as update:
        update.add_column("amount", DecimalType(10, 2), doc="In euros")
    expected.append((table.schema(), table.metadata.last_updated_ms, version))
    with table.update_schema() as update:
        update.rename_column("country", "land")
    expected.append((table.schema(), table.metadata.last_updated_ms, version))
    table.append(
        pa.table(
            {"id": [5], "land": ["fr"], "ts": [None], "amount": [None]},
            schema=schema_to_pyarrow(table.schema(), include_field_ids=False),
        )
    )
    with table.update_schema() as update:
        update.delete_column("amount")
    expected.append(
        (table.schema(), table.metadata.last_updated_ms, str(table.current_snapshot().snapshot_id))
    )
    facts = facts_of(folder_of(table))
    assert [(described(past.schema), past.at, past.version) for past in facts.past] == [
        (as_judged(schema), datetime.fromtimestamp(at / 1000, UTC), version)
        for schema, at, version in expected
    ]
    assert all(past.exact_time for past in facts.past)
    renamed = [[field.field_id for field in past.schema.fields][1] for past in facts.past]
    assert renamed == [2, 2, 2, 2]


def test_every_type_that_pyiceberg_writes_is_read(tmp_path: Path) -> None:
    types = [
        BooleanType(), IntegerType(), LongType(), FloatType(), DoubleType(), DecimalType(38, 9),
        DateType(), TimeType(), TimestampType(), TimestamptzType(), StringType(), FixedType(16),
        BinaryType(),
        ListType(element_id=101, element_type=StringType(), element_required=True),
        MapType(
            key_id=102, key_type=StringType(), value_id=103,
            value_type=StructType(NestedField(104, "x", LongType(), required=True, doc="inner")),
        ),
        StructType(NestedField(105, "a", ListType(106, StructType(NestedField(107, "b", DateType()))))),
    ]  # fmt: skip
    fields = [NestedField(n, f"c{n}", type, required=n % 2 == 0) for n, type in enumerate(types, 1)]
    table = catalog_at(tmp_path).create_table("n.t", JudgeSchema(*fields))
    facts, memory = READER.read(folder_of(table), None, max_commits=MOST)
    assert_facts_are_the_judges(facts, table, memory)
    assert facts.schema.fields[13].native_type == "list<string>"


def test_partitions_keys_and_order_are_described_in_words(tmp_path: Path) -> None:
    schema = JudgeSchema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "country", StringType()),
        NestedField(3, "ts", TimestamptzType()),
        identifier_field_ids=[1],
    )
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "country"))
    order = SortOrder(SortField(1, transform=BucketTransform(4), direction=SortDirection.DESC))
    catalog = catalog_at(tmp_path)
    table = catalog.create_table(
        "n.t",
        schema,
        partition_spec=spec,
        sort_order=order,
        properties={"comment": "Orders", "a": "b"},
    )
    table.append(rows(1, 2))
    table.append(rows(3, country="fr"))
    with table.update_spec() as update:
        update.add_field("ts", MonthTransform(), "ts_month")
        update.add_field("id", BucketTransform(16), "bucket")
    facts, memory = READER.read(folder_of(table), None, max_commits=MOST)
    assert_facts_are_the_judges(facts, table, memory)
    assert facts.partition_by == ("country", "months(ts)", "bucket[16](id)")
    assert [(field.key, field.partition) for field in facts.schema.fields] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert facts.description == "Orders"
    assert facts.properties["a"] == "b"
    assert facts.properties["iceberg.sort-order"] == "bucket[4](id) desc nulls last"
    partitions = sorted(file.partition for file in READER.live(memory))
    assert partitions == [(("country", "de"),), (("country", "fr"),)]


def test_branches_and_tags_are_reported(table: Table) -> None:
    table.append(rows(1))
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "2024").create_branch(first, "audit").commit()
    table.append(rows(2))
    properties = facts_of(folder_of(table)).properties
    assert properties["iceberg.tags"] == f"2024 at {first}"
    assert properties["iceberg.branches"] == f"audit at {first}"


def test_a_moved_table_is_read_where_it_is_found(table: Table, tmp_path: Path) -> None:
    table.append(rows(1, 2))
    with table.update_schema() as update:
        update.add_column("b", LongType())
    before = facts_of(folder_of(table))
    moved = Path(folder_of(table).root).rename(tmp_path / "elsewhere")
    assert facts_of(LocalFolder(moved)) == before
    assert len(before.past) == 2


def test_the_next_reading_opens_new_manifests_only(table: Table) -> None:
    for id in range(3):
        table.append(rows(id))
    folder = folder_of(table)
    _, memory = READER.read(folder, None, max_commits=MOST)
    folder.opened.clear()
    facts, again = READER.read(folder, memory, max_commits=MOST)
    assert [path for path in folder.opened if path.endswith("-m0.avro")] == []
    assert (facts, again) == READER.read(folder, None, max_commits=MOST)
    table.append(rows(9))
    folder.opened.clear()
    facts, memory = READER.read(folder, memory, max_commits=MOST)
    assert len([path for path in folder.opened if path.endswith("-m0.avro")]) == 1
    assert facts == facts_of(folder)
    assert_facts_are_the_judges(facts, table, memory)


@pytest.mark.parametrize("memory", [b"", b"\x00", b"\x95\x01", b"\x94\x63\xa0\x90\x80"])
def test_a_memory_that_cannot_be_used_is_passed_over(table: Table, memory: bytes) -> None:
    table.append(rows(1))
    assert facts_of(folder_of(table), memory) == facts_of(folder_of(table))


def test_the_signature_changes_with_every_commit_and_opens_nothing(table: Table) -> None:
    folder = folder_of(table)
    seen = {READER.signature(folder)}
    table.append(rows(1))
    seen.add(READER.signature(folder))
    with table.update_schema() as update:
        update.add_column("b", LongType())
    seen.add(READER.signature(folder))
    assert len(seen) == 3
    assert READER.signature(folder) in seen
    assert folder.opened == []


STEPS = ("append", "delete", "overwrite", "add", "rename", "drop", "spec", "rollback")


@pytest.mark.filterwarnings("ignore:Delete operation did not match")
@pytest.mark.parametrize(
    "examples",
    [pytest.param(8, id="few"), pytest.param(200, id="many", marks=pytest.mark.slow)],
)
def test_after_any_steps_the_facts_are_the_judges(tmp_path_factory: Any, examples: int) -> None:
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(steps=st.lists(st.sampled_from(STEPS), max_size=6), scanned=st.integers(0, 6))
    def check(steps: list[str], scanned: int) -> None:
        table = catalog_at(tmp_path_factory.mktemp("lake")).create_table("n.t", ROWS)
        folder = folder_of(table)
        schemas, memory = [as_judged(table.schema())], None
        for number, step in enumerate(steps):
            take(table, step, number)
            schemas.append(as_judged(table.schema()))
            if number == scanned:
                _, memory = READER.read(folder, None, max_commits=MOST)
        facts, left = READER.read(folder, memory, max_commits=MOST)
        assert_facts_are_the_judges(facts, table, left)
        distinct = [each for n, each in enumerate(schemas) if n == 0 or each != schemas[n - 1]]
        assert [described(past.schema) for past in facts.past] == distinct

    check()


def take(table: Table, step: str, number: int) -> None:
    """One step of a table's life; what cannot be done now is left out."""
    names = [field.name for field in table.schema().fields]
    extra = [name for name in names if name.startswith("x")]
    data = rows(number, number + 1)
    while data.num_columns < len(names):
        data = data.append_column(names[data.num_columns], pa.nulls(data.num_rows, pa.int64()))
    data = data.rename_columns(names)
    match step:
        case "append":
            table.append(data)
        case "delete" if table.current_snapshot():
            table.delete(f"id == {number - 1}")
        case "overwrite":
            table.overwrite(data)
        case "add":
            with table.update_schema() as update:
                update.add_column(f"x{number}", LongType())
        case "rename":
            with table.update_schema() as update:
                update.rename_column(names[1], f"country{number}")
        case "drop" if extra:
            with table.update_schema() as update:
                update.delete_column(extra[-1])
        case "spec" if not table.spec().fields:
            with table.update_spec() as update:
                update.add_field("id", IdentityTransform(), "by_id")
        case "rollback" if len(table.history()) > 1:
            table.manage_snapshots().set_current_snapshot(
                snapshot_id=table.history()[0].snapshot_id
            ).commit()
