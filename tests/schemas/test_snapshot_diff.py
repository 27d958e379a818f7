"""The schemas of two snapshots are compared as those of two folders are."""

from pathlib import Path

import msgspec
import pytest

from lumos import Lumos
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Versioning
from lumos.model.schema import parse_schema
from lumos.schemas.diff_inputs import NotComparable
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.writer import write_snapshot
from snapshots.sample_inventories import FACTS


def entry(name: str, schema: str, version: str = "1.0.0") -> CatalogEntry:
    return CatalogEntry(
        urn=f"lumos://s3/lake/{name}",
        name=name,
        platform="s3",
        format="parquet",
        schema=parse_schema(schema),
        versioning=Versioning(cloud_version="S-1", schema_version=version),
    )


@pytest.mark.parametrize("ending", [".json", ".yaml", ".jsonl", ".jsonl.zst", ".parquet"])
def test_two_snapshots_are_compared_schema_by_schema(workplace: Path, ending: str) -> None:
    same, before, gone = entry("a", "id INT64"), entry("b", "id INT64\nx STRING"), entry("c", "")
    after, new = entry("b", "id INT64", "2.0.0"), entry("d", "id INT64")
    old, now = workplace / f"yesterday{ending}", workplace / f"today{ending}"
    write_snapshot(old, FACTS, [same, before, gone])
    write_snapshot(now, FACTS, [same, after, new])
    report = Lumos().schema.diff(old, now)
    found = {dataset.urn.rpartition("/")[2]: dataset for dataset in report.datasets}
    assert list(found) == ["b", "c", "d"]
    assert (found["b"].from_version, found["b"].to_version) == ("1.0.0", "2.0.0")
    assert [(change.kind, change.path) for change in found["b"].changes] == [("removed", "x")]
    assert [found[name].changes[0].rule for name in "cd"] == ["dataset-removed", "dataset-added"]
    assert Lumos().schema.diff(old, old).datasets == ()


def test_what_a_part_does_not_speak_of_is_no_change(workplace: Path) -> None:
    whole, part = workplace / "whole.jsonl", workplace / "part.jsonl"
    write_snapshot(whole, FACTS, [entry("a", "id INT64"), entry("b", "id INT64")])
    changed = [entry("b", "id STRING"), msgspec.structs.replace(entry("c", "x INT64"), schema=None)]
    incremental = msgspec.structs.replace(FACTS, scope="incremental")
    write_snapshot(part, incremental, changed)
    report = Lumos().schema.diff(whole, part)
    assert [dataset.urn.rpartition("/")[2] for dataset in report.datasets] == ["b", "c"]


def test_a_snapshot_is_only_compared_with_another_one(workplace: Path) -> None:
    write_snapshot(workplace / "a.json", FACTS, [entry("a", "id INT64")])
    (workplace / "a.schema").write_text("id INT64\n")
    with pytest.raises(NotComparable, match="is a snapshot, the other a single schema"):
        Lumos().schema.diff("a.json", "a.schema")


def test_a_damaged_snapshot_says_where(workplace: Path) -> None:
    write_snapshot(workplace / "a.json", FACTS, [entry("a", "id INT64")])
    text = (workplace / "a.json").read_text()
    (workplace / "b.json").write_text(text[: len(text) // 2])
    with pytest.raises(SnapshotError, match=r"b\.json: line \d+"):
        Lumos().schema.diff("a.json", "b.json")
