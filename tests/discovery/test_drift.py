"""What a dataset's schema is over several scans, from files to recorded events."""

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from files import write_parquet
from lumos import Lumos
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Dataset
from lumos.store import Store

pytestmark = pytest.mark.usefixtures("spark", "workplace")

A = {"id": pa.int64(), "name": pa.string()}
B = {"id": pa.int64(), "name": pa.string(), "price": pa.float64()}


class Lake:
    """One dataset's folder, written step by step and scanned after each step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "lake" / "orders"
        self.folder.mkdir(parents=True)
        self.lumos = Lumos()
        self.written = 0

    def write(self, name: str, columns: dict[str, pa.DataType]) -> None:
        self.young(write_parquet(self.folder / name, **columns))

    def young(self, file: Path) -> None:
        """Makes a file younger than all before it, whatever the clock's resolution."""
        self.written += 1
        seconds = 1_700_000_000 + self.written
        os.utime(file, (seconds, seconds))

    def write_json(self, name: str, *records: dict[str, Any]) -> None:
        file = self.folder / name
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
        self.young(file)

    def write_frame(self, name: str, frame: pd.DataFrame) -> None:
        frame.to_parquet(self.folder / name)
        self.young(self.folder / name)

    def scan(self) -> list[ChangeEvent]:
        """The schema changes that a scan records."""
        before = len(self.events()) if self.written and self.scanned() else 0
        self.lumos.ingest(self.folder.parent)
        return [event for event in self.events()[before:] if event.type in _SCHEMA_EVENTS]

    def scanned(self) -> bool:
        return Path(".lumos/lumos.db").exists()

    def store(self) -> Store:
        return Store.open(self.lumos.database)

    def events(self) -> tuple[ChangeEvent, ...]:
        store = self.store()
        return store.events(store.find("orders"))

    def dataset(self) -> Dataset:
        store = self.store()
        return store.get(store.find("orders"))

    def columns(self) -> dict[str, str]:
        schema = self.dataset().schema
        assert schema is not None
        return {field.name: field.type.text for field in schema.fields}


_SCHEMA_EVENTS = {EventType.SCHEMA_CHANGED, EventType.METADATA_CHANGED}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_an_added_column_is_one_change(lake: Lake) -> None:
    lake.write("part-1.parquet", A)
    assert lake.scan() == []
    lake.write("part-2.parquet", B)
    (event,) = lake.scan()
    assert (event.breaking, [finding.change.path for finding in event.findings]) == (
        False,
        ["price"],
    )
    assert lake.scan() == []


def test_a_dropped_column_breaks_once_although_old_files_remain(lake: Lake) -> None:
    lake.write("part-1.parquet", B)
    lake.scan()
    for number in (2, 3, 4):
        lake.write(f"part-{number}.parquet", A)
        events = lake.scan()
        assert [event.breaking for event in events] == ([True] if number == 2 else [])
    (drift,) = lake.dataset().drift or ()
    assert (drift.file_count, drift.differences) == (1, ("price FLOAT64 instead of nothing",))
    assert drift.first_seen == drift.last_seen
    assert [Path(path).name for path in drift.examples] == ["part-1.parquet"]


def test_a_backfill_with_the_old_schema_is_drift_and_no_version(lake: Lake) -> None:
    lake.write("dt=2024-01-02/part-0.parquet", A)
    lake.scan()
    lake.write("dt=2024-01-03/part-0.parquet", B)
    assert len(lake.scan()) == 1
    lake.write("dt=2024-01-01/part-0.parquet", A)
    assert lake.scan() == []
    assert lake.scan() == []
    (drift,) = lake.dataset().drift or ()
    assert drift.file_count == 2


@pytest.mark.parametrize("overwriting", [False, True])
def test_writers_that_alternate_are_flagged_and_nothing_flaps(
    lake: Lake, overwriting: bool
) -> None:
    changes = 0
    for step in range(10):
        name = "part-0.parquet" if overwriting else f"part-{step}.parquet"
        lake.write(name, B if step % 2 else A)
        changes += len(lake.scan())
    assert changes == 1
    statistics = lake.dataset().statistics
    assert statistics is not None
    assert statistics.alternating


@pytest.mark.parametrize("overwriting", [False, True])
def test_a_real_return_is_reverted_once(lake: Lake, overwriting: bool) -> None:
    seen = []
    for step, columns in enumerate((A, B, A, A, A, A)):
        name = "part-0.parquet" if overwriting else f"part-{step}.parquet"
        lake.write(name, columns)
        seen.extend(event.flags for event in lake.scan())
    assert seen == [(), ("reverted",)]
    assert lake.scan() == []


def test_compaction_with_the_same_schema_changes_no_schema(lake: Lake) -> None:
    for number in range(4):
        lake.write(f"part-{number}.parquet", A)
    lake.scan()
    for number in range(4):
        (lake.folder / f"part-{number}.parquet").unlink()
    lake.write("part-9.parquet", A)
    assert lake.scan() == []
    statistics = lake.dataset().statistics
    assert statistics is not None
    assert statistics.file_count == 1


def test_a_first_scan_of_two_versions_is_always_the_same(lake: Lake) -> None:
    lake.write("dt=2024-01-02/part-0.parquet", B)
    lake.write("dt=2024-01-01/part-0.parquet", A)
    lake.scan()
    assert list(lake.columns()) == ["id", "name", "price", "dt"]
    assert lake.scan() == []


def test_sparse_keys_of_json_break_nothing(lake: Lake) -> None:
    lake.write_json("part-1.json", {"id": 1, "note": "x"}, {"id": 2})
    lake.scan()
    for number in (2, 3):
        lake.write_json(f"part-{number}.json", {"id": number})
        assert lake.scan() == []
    assert lake.columns() == {"id": "INT64", "note": "STRING"}


def test_a_rare_key_of_an_overwritten_json_file_does_not_flap(lake: Lake) -> None:
    for step in range(8):
        rare = {"note": "x"} if step % 2 == 0 else {}
        lake.write_json("orders.json", {"id": step, **rare})
        assert lake.scan() == []
    events = []
    for number in range(3):
        lake.write_json("orders.json", {"id": 9 + number})
        events += lake.scan()
    assert [event.breaking for event in events] == [True]


@pytest.mark.parametrize(
    "other",
    [["a,b", ",2", ",4"], ["a,b"], ["a,b", "1,2", "3,4"]],
    ids=["an empty column", "a header alone", "narrower values"],
)
def test_a_csv_file_overwritten_with_less_breaks_nothing(lake: Lake, other: list[str]) -> None:
    for step in range(8):
        lines = other if step % 2 else ["a,b", "1.5,2", "3,4"]
        (lake.folder / "orders.csv").write_text("\n".join(lines) + "\n")
        lake.young(lake.folder / "orders.csv")
        assert lake.scan() == []
    assert lake.columns() == {"a": "FLOAT64", "b": "INT64"}


def test_a_csv_column_that_is_gone_or_of_another_type_is_a_change(lake: Lake) -> None:
    file = lake.folder / "orders.csv"
    seen = []
    for lines in (["a,b", "1,2"], ["a", "1"], ["a", "x"]):
        file.write_text("\n".join(lines) + "\n")
        lake.young(file)
        seen.append([event.breaking for event in lake.scan()])
    assert seen == [[], [True], [True]]
    assert lake.columns() == {"a": "STRING"}


def test_a_lake_may_hold_the_store_and_the_state_of_its_scans(lake: Lake) -> None:
    lake.write("part-0.parquet", A)
    lumos = Lumos(overrides={"storage.path": str(lake.folder.parent / "lumos.db")})
    reports = [lumos.ingest(lake.folder.parent) for _ in range(3)]
    assert [len(report.datasets) for report in reports] == [1, 1, 1]
    assert [each.name for each in reports[-1].datasets] == ["orders"]


def test_an_all_null_column_breaks_nothing(lake: Lake) -> None:
    lake.write("part-1.parquet", A)
    lake.scan()
    lake.write("part-2.parquet", {"id": pa.int64(), "name": pa.null()})
    assert lake.scan() == []
    (lake.folder / "part-1.parquet").unlink()
    assert lake.scan() == []
    assert lake.columns() == {"id": "INT64", "name": "STRING"}


@pytest.mark.parametrize("first_has_gaps", [False, True])
def test_integers_that_pandas_wrote_as_doubles_break_nothing(
    lake: Lake, first_has_gaps: bool
) -> None:
    gaps = pd.DataFrame({"id": [1, 2, 3], "count": [1, None, 3]})
    whole = pd.DataFrame({"id": [1, 2, 3], "count": [1, 2, 3]})
    lake.write_frame("part-0.parquet", gaps if first_has_gaps else whole)
    lake.scan()
    for number, frame in enumerate((whole, gaps, gaps, whole, gaps), start=1):
        lake.write_frame(f"part-{number}.parquet", frame)
        assert lake.scan() == []


def test_doubles_that_are_no_integers_are_a_change(lake: Lake) -> None:
    lake.write_frame("part-0.parquet", pd.DataFrame({"count": [1, 2, 3]}))
    lake.scan()
    lake.write_frame("part-1.parquet", pd.DataFrame({"count": [1.5, None, 3]}))
    assert [event.breaking for event in lake.scan()] == [True]


def test_a_partition_value_of_another_type_widens_and_breaks_nothing(lake: Lake) -> None:
    lake.write("region=1/part-0.parquet", A)
    lake.scan()
    assert lake.columns()["region"] == "INT64"
    lake.write("region=eu/part-0.parquet", A)
    (event,) = lake.scan()
    assert not event.breaking
    assert lake.columns()["region"] == "STRING"
    assert lake.scan() == []


def test_column_statistics_are_recorded_where_wanted(lake: Lake) -> None:
    lake.write_frame("part-0.parquet", pd.DataFrame({"id": [1, 5], "name": ["x", None]}))
    lake.scan()
    statistics = lake.dataset().statistics
    assert statistics is not None
    assert statistics.columns == {}
    report = lake.lumos.ingest(lake.folder.parent, column_stats=True)
    assert report.summary.files_read == 1
    statistics = lake.dataset().statistics
    assert statistics is not None
    id, name = statistics.columns["id"], statistics.columns["name"]
    assert (id.minimum, id.maximum, id.null_count) == ("1", "5", 0)
    assert (name.minimum, name.maximum, name.null_count) == (None, None, 1)
    (dataset,) = report.datasets
    assert dataset.statistics is not None
    assert dataset.statistics.columns["id"].maximum == "5"
    lake.lumos.annotations.tags.set("orders", "pii")
    again = lake.lumos.ingest(lake.folder.parent, column_stats=True)
    assert again.summary.files_read == 0
    (private,) = again.datasets
    assert private.statistics is not None
    assert private.statistics.columns["id"].maximum is None
