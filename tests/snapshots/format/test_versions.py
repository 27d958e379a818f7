"""A later version of the format reads earlier ones by its table of steps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lumos.model.catalog import CatalogEntity, GlossaryTerm
from lumos.model.dataset import Documentation
from lumos.snapshots.format.document import DATASETS, EntryKind
from lumos.snapshots.format.encodings import encoding_of
from lumos.snapshots.format.errors import NewerSnapshot, SnapshotError
from lumos.snapshots.format.reader import OpenSnapshot, open_snapshot
from lumos.snapshots.format.validation import validate
from lumos.snapshots.format.versions import STEPS, FormatUpgrade, upgrade_container
from lumos.snapshots.format.writer import write_snapshot
from snapshots.format.test_encodings import NAMES
from snapshots.format.test_legacy_layout import NESTED
from snapshots.sample_inventories import FACTS, many


def next_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """A version in which what exports is called by a longer name."""
    return {
        **header,
        "format_version": "1.2",
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
    "1.1": FormatUpgrade("1.2", next_header, next_entry),
    "1.2": FormatUpgrade("2.0", lambda header: {**header, "format_version": "2.0"}, last_entry),
}


def opened_by_a_later_lumos(file: Path) -> OpenSnapshot:
    """The snapshot as a Lumos whose present version is 2.0 sees it."""
    return OpenSnapshot(
        file, upgrade_container(file, encoding_of(file).open(file), steps=LATER, current="2.0")
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
    file.write_text(file.read_text().replace('"format_version":"1.1"', '"format_version":"2.0"'))
    assert opened_by_a_later_lumos(file).header.format_version == "2.0"
    with pytest.raises(NewerSnapshot, match=r"reads 1\.1 and older"):
        upgrade_container(file, encoding_of(file).open(file))


# Written by the release that had version 1.0.
VERSION_1_0 = [
    Path(__file__).parent / "data" / f"version-1.0.{ending}"
    for ending in ("json", "yaml", "jsonl", "parquet")
]


@pytest.mark.parametrize("file", VERSION_1_0, ids=lambda file: file.suffix)
def test_version_1_0_is_read_and_valid(file: Path) -> None:
    assert list(validate(file)) == []
    with open_snapshot(file) as snapshot:
        assert snapshot.header.format_version == "1.0"
        snapshot.check_header()
        assert list(snapshot.terms()) == [
            GlossaryTerm(
                name="Order", definition="A purchase", raw={"openmetadata": {"synonyms": ["sale"]}}
            )
        ]
        orders, _ = snapshot.datasets()
        assert orders.raw == {"datahub": {"deprecation": [{"body": {"deprecated": True}}]}}
        (tag,) = snapshot.others()
        assert (tag.kind, tag.raw.keys()) == ("tag", {"datahub"})
        assert isinstance(tag, CatalogEntity)


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_an_edit_of_version_1_0_is_noticed_and_another_layout_is_not_one(
    tmp_path: Path, ending: str
) -> None:
    text = (Path(__file__).parent / "data" / f"version-1.0.{ending}").read_text()
    laid_out = tmp_path / f"laid-out.{ending}"
    laid_out.write_text(text.replace('"platform":"s3","format"', '"platform": "s3", "format"'))
    assert list(validate(laid_out)) == []
    for number, (old, new) in enumerate(
        [('"deprecated":true', '"deprecated":false'), ('"Personal"', '"Public"'),
         ('"platform":"local"', '"platform":"other"'), ('"users":1', '"users":2')]
    ):  # fmt: skip
        edited = tmp_path / f"edited-{number}.{ending}"
        edited.write_text(text.replace(old, new))
        assert any(problem.severity == "error" for problem in validate(edited)), old
