"""A later version of the format reads earlier ones by its table of steps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lumos.model.dataset import Documentation
from lumos.snapshots.format.document import DATASETS, EntryKind
from lumos.snapshots.format.encodings import encoding_of
from lumos.snapshots.format.errors import NewerSnapshot, SnapshotError
from lumos.snapshots.format.reader import OpenSnapshot
from lumos.snapshots.format.versions import STEPS, FormatUpgrade, upgrade_container
from lumos.snapshots.format.writer import write_snapshot
from snapshots.format.test_encodings import NAMES
from snapshots.format.test_legacy_layout import NESTED
from snapshots.sample_inventories import FACTS, many


def next_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """A version in which what exports is called by a longer name."""
    return {
        **header,
        "format_version": "1.1",
        "exported_by": f"The program {header['exported_by']}",
    }


def next_entry(kind: EntryKind, entry: dict[str, Any]) -> dict[str, Any]:
    """A version in which every dataset has a description."""
    return {**entry, "documentation": {"description": "none yet"}} if kind is DATASETS else entry


def last_entry(kind: EntryKind, entry: dict[str, Any]) -> dict[str, Any]:
    """A version in which every dataset has a domain as well."""
    if kind is not DATASETS:
        return entry
    return {**entry, "documentation": entry["documentation"] | {"domain": "all"}}


LATER = STEPS | {
    "1.0": FormatUpgrade("1.1", next_header, next_entry),
    "1.1": FormatUpgrade("2.0", lambda header: {**header, "format_version": "2.0"}, last_entry),
}


def opened_by_a_later_lumos(file: Path) -> OpenSnapshot:
    """The snapshot as a Lumos whose present version is 2.0 sees it."""
    return OpenSnapshot(
        file, upgrade_container(file, encoding_of(file).open(file), steps=LATER, present="2.0")
    )


@pytest.mark.parametrize("name", NAMES)
def test_entries_go_through_all_steps_on_their_way(tmp_path: Path, name: str) -> None:
    write_snapshot(tmp_path / name, FACTS, many(3))
    with opened_by_a_later_lumos(tmp_path / name) as snapshot:
        assert snapshot.header.exported_by == "The program lumos 0.1.0"
        described = [entry.documentation for entry in snapshot.datasets()]
    assert described == [Documentation(description="none yet", domain="all")] * 3


def test_layouts_from_before_the_first_version_go_through_them_too(tmp_path: Path) -> None:
    (tmp_path / "nested.yaml").write_text(NESTED)
    with opened_by_a_later_lumos(tmp_path / "nested.yaml") as snapshot:
        assert {entry.documentation.domain for entry in snapshot.datasets()} == {"all"}


def test_what_was_edited_is_noticed_before_it_is_upgraded(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    write_snapshot(file, FACTS, many(3))
    file.write_text(file.read_text().replace('"format":"parquet"', '"format":"orc"', 1))
    with (
        opened_by_a_later_lumos(file) as snapshot,
        pytest.raises(SnapshotError, match=r"line 2.*content hash"),
    ):
        list(snapshot.datasets())


def test_a_lumos_of_today_refuses_what_is_later(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    write_snapshot(file, FACTS, many(1))
    file.write_text(file.read_text().replace('"format_version":"1.0"', '"format_version":"2.0"'))
    assert opened_by_a_later_lumos(file).header.format_version == "2.0"
    with pytest.raises(NewerSnapshot, match=r"reads 1\.0 and older"):
        upgrade_container(file, encoding_of(file).open(file))
