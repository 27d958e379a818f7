"""Delta tables that deltalake wrote: every fact is the one it tells itself."""

import datetime
import decimal
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from lumos.formats.tables.delta.reader import DeltaReader

from .delta_judge import ALL, columns, ours, read, theirs
from .folder import LocalFolder

Writer = Callable[[str], None]


def _orders(*numbers: int, **more: list[object]) -> pa.Table:
    days = [f"2024-05-0{1 + number % 3}" for number in numbers]
    return pa.table({"id": list(numbers), "day": days, **more})


def _appended(root: str) -> None:
    for number in range(3):
        write_deltalake(root, _orders(number, number + 1), mode="append", partition_by=["day"])


def _overwritten(root: str) -> None:
    _appended(root)
    write_deltalake(root, _orders(7), mode="overwrite")


def _deleted(root: str) -> None:
    _appended(root)
    DeltaTable(root).delete("id = 1")


def _checkpointed(root: str) -> None:
    _appended(root)
    DeltaTable(root).create_checkpoint()
    write_deltalake(root, _orders(8), mode="append")


def _widened(root: str) -> None:
    _appended(root)
    more = _orders(9, amount=[1.5], seen=[True])
    write_deltalake(root, more, mode="append", schema_mode="merge")
    write_deltalake(root, _orders(1, only=["x"]), mode="overwrite", schema_mode="overwrite")


def _optimised(root: str) -> None:
    _appended(root)
    DeltaTable(root).optimize.compact()


def _configured(root: str) -> None:
    _appended(root)
    table = DeltaTable(root)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 1 day"})
    table.alter.add_constraint({"positive": "id >= 0"})
    table.alter.set_table_description("Orders of the shop")
    table.alter.set_table_name("orders")
    table.alter.add_columns([Field("note", PrimitiveType("string"))])


def _vacuumed(root: str) -> None:
    _overwritten(root)
    DeltaTable(root).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def _tidied(root: str) -> None:
    _widened(root)
    DeltaTable(root).create_checkpoint()
    for commit in sorted(Path(root, "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()


def _compacted(root: str) -> None:
    _widened(root)
    DeltaTable(root).compact_logs(starting_version=1, ending_version=3)


def _restored(root: str) -> None:
    _overwritten(root)
    DeltaTable(root).restore(1)


def _oddly_named(root: str) -> None:
    days = ["a b", "50%", "ü", "x/y", "q=1", None]
    table = pa.table({"id": list(range(6)), "a day": days})
    write_deltalake(root, table, partition_by=["a day"])


def _of_all_types(root: str) -> None:
    at = datetime.datetime(2024, 5, 1, 12, 30)
    zoned = pa.timestamp("us", tz="UTC")
    point = pa.struct([pa.field("x", pa.int16()), pa.field("y", pa.int8(), nullable=False)])
    table = pa.table(
        {
            "flag": [True],
            "tiny": pa.array([1], pa.int8()),
            "small": pa.array([1], pa.int16()),
            "whole": pa.array([1], pa.int32()),
            "long": [1],
            "single": pa.array([1.0], pa.float32()),
            "double": [1.0],
            "money": pa.array([decimal.Decimal("1.50")], pa.decimal128(12, 2)),
            "text": ["x"],
            "bytes": [b"x"],
            "day": [datetime.date(2024, 5, 1)],
            "at": pa.array([at.replace(tzinfo=datetime.UTC)], zoned),
            "wall": pa.array([at], pa.timestamp("us")),
            "list": pa.array([[1]], pa.list_(pa.int64())),
            "point": pa.array([{"x": 1, "y": 2}], point),
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "points": pa.array([[{"x": 1, "y": 2}]], pa.list_(point)),
        }
    )
    write_deltalake(root, table)


TABLES = [
    _appended,
    _overwritten,
    _deleted,
    _checkpointed,
    _widened,
    _optimised,
    _configured,
    _vacuumed,
    _tidied,
    _compacted,
    _restored,
    _oddly_named,
    _of_all_types,
]


@pytest.mark.parametrize("write", TABLES, ids=lambda write: write.__name__.strip("_"))
def test_a_table_is_what_its_own_library_says(write: Writer, tmp_path: Path) -> None:
    write(str(tmp_path))
    assert ours(tmp_path) == theirs(tmp_path)


@pytest.mark.parametrize(
    "write", [_widened, _configured, _restored], ids=lambda write: write.__name__.strip("_")
)
def test_the_past_is_what_every_version_was(write: Writer, tmp_path: Path) -> None:
    write(str(tmp_path))
    past = read(LocalFolder(tmp_path)).past
    history = {entry["version"]: entry for entry in DeltaTable(tmp_path).history()}
    expected = []
    for version in sorted(history):
        then = theirs(tmp_path, version)
        if not expected or expected[-1][1] != then.schema:
            operation, at = history[version]["operation"], history[version]["timestamp"]
            expected.append((str(version), then.schema, operation, at))
    result = [
        (each.version, columns(each.schema), each.operation, int(each.at.timestamp() * 1000))
        for each in past
    ]
    assert result == expected
    assert all(each.exact_time for each in past)


def test_what_a_vacuumed_log_forgot_begins_with_its_checkpoint(tmp_path: Path) -> None:
    _widened(str(tmp_path))
    before = read(LocalFolder(tmp_path)).past
    DeltaTable(tmp_path).create_checkpoint()
    for commit in sorted(Path(tmp_path, "_delta_log").glob("*.json")):
        commit.unlink()
    facts = read(LocalFolder(tmp_path))
    assert [(each.version, each.exact_time) for each in facts.past] == [(facts.version, False)]
    assert facts.past[-1].schema == before[-1].schema


def test_a_table_is_known_again_where_it_was_moved_to(tmp_path: Path) -> None:
    _checkpointed(str(tmp_path / "here"))
    facts, memory = DeltaReader().read(LocalFolder(tmp_path / "here"), None, max_commits=ALL)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    moved = read(LocalFolder(tmp_path / "there"), memory)
    assert (moved.identity, moved.content) == (facts.identity, facts.content)
    assert [each.schema for each in moved.past] == [each.schema for each in facts.past]
