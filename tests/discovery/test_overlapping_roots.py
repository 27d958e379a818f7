"""What is remembered of a dataset's schemas belongs to the dataset, not to the scanned root."""

import os
import shutil
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import delete

from files import write_parquet, write_text
from lumos import Lumos
from lumos.discovery.scan_recorder import ScanRecorder
from lumos.model.change import EventType
from lumos.model.discovery import Discovery
from lumos.store import Store, tables

pytestmark = pytest.mark.usefixtures("spark", "workplace")

_seconds = count(1_700_000_000)


def write_columns(file: Path, *columns: str) -> None:
    """Writes a Parquet file that is newer than the ones before."""
    write_parquet(file, **dict.fromkeys(columns, pa.int64()))
    set_time(file)


def write_lines(file: Path, *lines: str) -> None:
    write_text(file, list(lines))
    set_time(file)


def set_time(file: Path) -> None:
    second = next(_seconds)
    os.utime(file, (second, second))


def changes(root: Path) -> list[tuple[str, list[str]]]:
    """How each dataset of a root changed, and the fields that were added, removed or changed."""
    return [
        (each.change, sorted(row.path for row in each.changes))
        for each in Lumos().ingest(root).datasets
    ]


def customers_with_drift(lake: Path) -> Path:
    """Three files, each scanned with the whole lake; only the second one has `c25`."""
    folder = lake / "ops/customers"
    for part, columns in enumerate((("a", "b"), ("a", "b", "c25"), ("a", "b"))):
        write_columns(folder / f"part-{part}.parquet", *columns)
        Lumos().ingest(lake)
    return folder


@pytest.mark.parametrize("order", [("ops", ""), ("ops/customers", "ops", ""), ("", "ops")])
def test_scans_of_overlapping_roots_report_no_change(tmp_path: Path, order: tuple[str]) -> None:
    lake = tmp_path / "lake"
    customers_with_drift(lake)
    for root in order * 2:
        assert changes(lake / root) == [("unchanged", [])]
    (dataset,) = Lumos().ingest(lake).datasets
    assert [each.type for each in Store.open(Lumos().database).events(dataset.urn)] == [
        EventType.CREATED,
        EventType.SCHEMA_CHANGED,
        EventType.MODIFIED,
    ]


def test_the_lake_continues_what_a_scan_of_a_folder_began(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for part, columns in enumerate((("a", "b"), ("a", "b", "c25"), ("a", "b"))):
        write_columns(lake / f"ops/customers/part-{part}.parquet", *columns)
        Lumos().ingest(lake / "ops")
    for root in ("", "ops", "", "ops/customers"):
        assert changes(lake / root) == [("unchanged", [])]


@pytest.mark.parametrize("first", ["", "ops", "ops/customers"])
def test_a_change_is_reported_once_whichever_root_is_scanned_first(
    tmp_path: Path, first: str
) -> None:
    lake = tmp_path / "lake"
    folder = customers_with_drift(lake)
    roots = [first, *({"", "ops", "ops/customers"} - {first})]
    for root in roots:
        changes(lake / root)
    write_columns(folder / "part-3.parquet", "a", "c26")
    reported = [changes(lake / root) for root in roots * 2]
    assert reported == [[("changed", ["b", "c25", "c26"])], *[[("unchanged", [])]] * 5]


def test_deleted_state_reports_no_change(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    folder = customers_with_drift(lake)
    for root in ("", "ops"):
        shutil.rmtree(".lumos/lumos.state")
        assert changes(lake / root) == [("unchanged", [])]
    shutil.rmtree(".lumos/lumos.state")
    write_columns(folder / "part-3.parquet", "a", "b", "c26")
    assert changes(lake) == [("changed", ["c25", "c26"])]
    assert changes(lake / "ops") == [("unchanged", [])]


@pytest.mark.parametrize("has_state", [True, False], ids=["state kept", "state deleted"])
def test_a_store_without_memories_goes_on_with_the_recorded_schemas(
    tmp_path: Path, has_state: bool
) -> None:
    lake = tmp_path / "lake"
    customers_with_drift(lake)
    # A dataset whose recorded schema has a column that its files lack.
    write_columns(lake / "ops/orders/dt=2024-01-01/part-0.parquet", "a", "b", "c25")
    write_columns(lake / "ops/orders/dt=2024-01-02/part-0.parquet", "a", "b")
    Lumos().ingest(lake)
    database = Lumos().database
    with database.writing() as connection:
        connection.execute(delete(tables.schema_memory))
    if not has_state:
        shutil.rmtree(".lumos/lumos.state")
    for root in ("ops", "", "ops"):
        assert changes(lake / root) == [("unchanged", [])] * 2
    write_columns(lake / "ops/orders/dt=2024-01-03/part-0.parquet", "a", "b", "c26")
    assert sorted(changes(lake)) == [("changed", ["c26"]), ("unchanged", [])]


def test_a_return_to_an_earlier_schema_is_reported_once(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    folder = customers_with_drift(lake)
    (folder / "part-1.parquet").unlink()
    reported = []
    for part, root in enumerate(("ops", "", "ops", ""), start=3):
        write_columns(folder / f"part-{part}.parquet", "a", "b")
        reported += changes(lake / root)
    # The last scan of the lake already saw the earlier schema written once.
    assert [fields for _, fields in reported] == [["c25"], [], [], []]


def test_types_inferred_from_csv_stay_as_wide_in_every_root(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_lines(lake / "ops/rates/part-0.csv", "id,rate", "1,1.5")
    Lumos().ingest(lake)
    write_lines(lake / "ops/rates/part-0.csv", "id,rate", "1,2")
    Lumos().ingest(lake)
    for root in ("ops", "", "ops"):
        assert changes(lake / root) == [("unchanged", [])]
    shutil.rmtree(".lumos/lumos.state")
    assert changes(lake) == [("unchanged", [])]


@pytest.mark.parametrize("lost", [False, True], ids=["other root", "state deleted"])
def test_of_two_formats_in_a_folder_the_recorded_one_keeps_the_name(
    tmp_path: Path, lost: bool
) -> None:
    lake = tmp_path / "lake"
    write_lines(lake / "t/part-0.csv", "id,name", "1,Ann")
    Lumos().ingest(lake / "t")
    write_columns(lake / "t/part-0.parquet", "id", "x")
    before = {each.urn: each.format for each in Lumos().ingest(lake / "t").datasets}
    if lost:
        shutil.rmtree(".lumos/lumos.state")
    for root in (lake / "t", lake) if lost else (lake, lake / "t"):
        found = Lumos().ingest(root).datasets
        assert {each.urn: each.format for each in found} == before
        assert [each.change for each in found] == ["unchanged"] * 2


def test_a_root_that_holds_a_part_of_a_dataset_changes_nothing(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for year, columns in ((2023, ("a", "b")), (2024, ("a", "b", "c25")), (2025, ("a", "b"))):
        write_columns(lake / f"orders/year={year}/part-0.parquet", *columns)
        Lumos().ingest(lake)
    for root in ("orders/year=2025", "", "orders/year=2023", "orders", ""):
        assert changes(lake / root) == [("unchanged", [])]


def test_a_part_that_was_scanned_first_becomes_the_whole_dataset(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for year in (2023, 2024):
        for month in (1, 2):
            write_columns(lake / f"orders/year={year}/month={month}/part-0.parquet", "a", "b")
    roots = ("orders/year=2024/month=2", "orders/year=2024", "orders", "")
    urns = {each.urn for root in roots for each in Lumos().ingest(lake / root).datasets}
    assert urns == {f"lumos://file{lake}/orders"}
    for root in roots:
        assert changes(lake / root) == [("unchanged", [])]


def test_a_dataset_that_comes_back_has_the_schema_of_its_files(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    folder = customers_with_drift(lake)
    write_columns(lake / "ops/orders/part-0.parquet", "id")
    Lumos().ingest(lake)
    shutil.rmtree(folder)
    Lumos().ingest(lake, accept_removals=True)
    write_columns(folder / "part-4.parquet", "a", "b")
    assert ("changed", ["c25"]) in changes(lake)
    assert ("unchanged", ["c25"]) not in changes(lake)


def test_a_scan_that_another_root_overtook_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    folder = customers_with_drift(lake)
    Lumos().ingest(lake / "ops")
    record = ScanRecorder.record
    overtaking = []

    def record_late(self: ScanRecorder, discovery: Discovery, **options: bool) -> object:
        if not overtaking:
            # The scan of the lake has listed its files and not recorded them yet.
            overtaking.append("ops")
            write_columns(folder / "part-3.parquet", "a", "b", "c26")
            overtaking.append(changes(lake / "ops"))
        return record(self, discovery, **options)

    monkeypatch.setattr(ScanRecorder, "record", record_late)
    assert changes(lake) == [("unchanged", [])]
    assert overtaking[1:] == [[("changed", ["c25", "c26"])]]
    assert changes(lake) == [("unchanged", [])]
    assert changes(lake / "ops") == [("unchanged", [])]
