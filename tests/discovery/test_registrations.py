"""Tables and partitions of a metastore in the state of its scans."""

from pathlib import Path

import pytest

from lumos.discovery import registrations
from lumos.discovery.registrations import RegistrationStore
from lumos.sources.interface import RegisteredPartition, RegisteredTable

TABLES = [
    RegisteredTable("shop/a", "s3://lake/a", "parquet", True, ("dt", "h"), 1, 2, 3, 2),
    RegisteredTable("shop/b", "s3://lake/b"),
]
PARTITIONS = [
    RegisteredPartition("shop/a", ("2024-01-01", "1"), "s3://lake/a/dt=2024-01-01/h=1"),
    RegisteredPartition("shop/a", ("ü'\"", ""), ""),
]


def _write(store: RegistrationStore, name: str, tables: list[RegisteredTable]) -> None:
    writer = store.writer(name)
    for row in (*PARTITIONS, *tables):
        writer.add(row)
    writer.finish()


def _parts(folder: Path) -> set[str]:
    return {file.name for file in (folder / "registrations").iterdir()}


def test_what_was_registered_is_read_again_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registrations, "_PART_ROWS", 1)
    store = RegistrationStore(str(tmp_path))
    _write(store, "1", TABLES)
    index = store.index("1")
    assert index is not None
    assert len(index.partitions) == 2
    assert list(store.tables(index)) == TABLES
    assert list(store.partitions(index, first="shop/a", last="shop/a")) == PARTITIONS
    assert list(store.partitions(index, first="shop/b", last="shop/z")) == []


def test_an_unchanged_scan_writes_no_parts_and_old_ones_are_deleted(tmp_path: Path) -> None:
    store = RegistrationStore(str(tmp_path))
    _write(store, "1", TABLES)
    before = _parts(tmp_path)
    _write(store, "2", TABLES)
    assert _parts(tmp_path) == before
    _write(store, "3", TABLES[:1])
    store.delete_all_but({"3"})
    assert store.index("1") is None
    index = store.index("3")
    assert index is not None
    assert list(store.tables(index)) == TABLES[:1]
    assert len(_parts(tmp_path)) == 2


def test_a_damaged_index_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"\xc1")
    assert RegistrationStore(str(tmp_path)).index("1") is None
