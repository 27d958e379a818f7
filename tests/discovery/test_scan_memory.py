"""What a scan of a database holds in memory, and that nothing is lost by it."""

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from lumos import Lumos
from lumos.config.secret import ConnectionString
from lumos.config.sources import SqlSourceSettings
from lumos.discovery.reports import IngestReport
from lumos.model.compressed_list import CompressedList
from lumos.model.json_codec import from_json, to_json
from lumos.sources.sql import SqlSource

pytestmark = pytest.mark.usefixtures("workplace")

COLUMNS = 40


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompressedList, "max_plain", 20)


def database(file: Path, tables: range) -> str:
    columns = ", ".join(f"column_{number} VARCHAR(40)" for number in range(COLUMNS))
    with closing(sqlite3.connect(file)) as connection:
        for number in tables:
            connection.execute(
                f"CREATE TABLE table_{number:04} (id INTEGER PRIMARY KEY, {columns})"
            )
        connection.commit()
    return f"sqlite:///{file}"


def peak_of_scan(url: str, tables: int) -> int:
    """The bytes at the peak of a scan."""
    tracemalloc.start()
    try:
        report = Lumos(overrides={"sources": [{"type": "sql", "connection_string": url}]}).ingest()
        assert report.summary.datasets_new + report.summary.datasets_unchanged == tables
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_memory_of_a_scan_hardly_grows_with_the_number_of_tables(tmp_path: Path) -> None:
    url = database(tmp_path / "shop.db", range(130))
    # Imports and the new store.
    peak_of_scan(url, 130)
    few = peak_of_scan(url, 130)
    database(tmp_path / "shop.db", range(130, 330))
    for _ in range(2):
        # The columns of a table alone take 15 KB.
        assert peak_of_scan(url, 330) - few < 200 * 6_000


def test_a_scan_of_many_tables_reports_and_records_all_of_them(tmp_path: Path) -> None:
    url = database(tmp_path / "shop.db", range(130))
    lumos = Lumos(overrides={"sources": [{"type": "sql", "connection_string": url}]})
    first = lumos.ingest()
    names = [f"main.table_{number:04}" for number in range(130)]
    assert [each.name for each in first.datasets] == names
    assert {len(each.schema.fields) for each in first.datasets} == {COLUMNS + 1}
    assert first.summary.datasets_new == 130
    second = lumos.ingest()
    assert [(each.name, each.change) for each in second.datasets] == [
        (name, "unchanged") for name in names
    ]
    decoded = msgspec.json.decode(to_json(second.datasets))
    assert [each["name"] for each in decoded] == names
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("DROP TABLE table_0007")
        connection.execute("ALTER TABLE table_0120 ADD COLUMN more TEXT")
        connection.commit()
    third = lumos.ingest()
    assert [each.rpartition("/")[2] for each in third.missing] == ["table_0007"]
    assert [each.name for each in third.datasets if each.change == "changed"] == ["main.table_0120"]
    assert third.summary.datasets_unchanged == 128


def test_a_dataset_of_two_sources_is_reported_once(tmp_path: Path) -> None:
    url = database(tmp_path / "shop.db", range(60))
    sections = [
        {"type": "sql", "connection_string": url, "tables": [pattern]}
        for pattern in ("table_000*", "table_*")
    ]
    report = Lumos(overrides={"sources": sections}).ingest()
    assert len(report.datasets) == 60
    assert len({each.urn for each in report.datasets}) == 60
    assert report.summary.datasets_new + report.summary.datasets_unchanged == 60


def test_a_report_of_many_tables_is_read_from_its_json(tmp_path: Path) -> None:
    url = database(tmp_path / "shop.db", range(60))
    report = Lumos(overrides={"sources": [{"type": "sql", "connection_string": url}]}).ingest()
    assert list(from_json(to_json(report), IngestReport).datasets) == list(report.datasets)


def test_a_source_lists_all_tables_in_a_compressed_list(tmp_path: Path) -> None:
    url = database(tmp_path / "shop.db", range(60))
    source = SqlSource(SqlSourceSettings(connection_string=ConnectionString(url)))
    found = source.read(lambda _: None).datasets
    assert isinstance(found, CompressedList)
    assert len(found) == 60
