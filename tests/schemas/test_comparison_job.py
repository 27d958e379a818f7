"""Estates compared on Spark: the same answer as in memory, from what differs alone."""

import random
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from files import write_text
from lumos import Lumos
from lumos.errors import LumosError, MisuseError
from lumos.model.json_codec import to_json, to_plain
from lumos.model.schema import Field, Schema
from lumos.model.types import INT32, INT64, STRING, Array, Member, Struct
from lumos.schemas import comparison_job as schema_comparison
from lumos.schemas.comparison_job import InventoryDiffCounts, compare_inventories
from lumos.schemas.findings import (
    ChangeCounts,
    FingerprintedSchema,
    change_rows,
    change_table_rows,
    find_differences,
)
from lumos.schemas.inventory_file import InventoryRow, write_inventory

TYPES = (INT32, INT64, STRING, Array(Struct([Member("x", INT32)])), Array(Struct([])))


def schema(chance: random.Random) -> Schema:
    names = chance.sample("abcdefgh", k=chance.randint(1, 6))
    return Schema(
        fields=tuple(
            Field(
                name=name,
                type=chance.choice(TYPES),
                nullable=chance.random() < 0.5,
                description=chance.choice((None, "words")),
            )
            for name in names
        )
    )


def inventories(
    datasets: int,
) -> tuple[dict[str, FingerprintedSchema], dict[str, FingerprintedSchema]]:
    chance = random.Random(7)
    formats = ("parquet", "delta", "csv", None)
    before = {
        f"lumos://s3/lake/t{number}": FingerprintedSchema.of(schema(chance), formats[number % 4])
        for number in range(datasets)
    }
    after = {
        urn: FingerprintedSchema.of(schema(chance), known.format)
        if chance.random() < 0.2
        else known
        for urn, known in before.items()
        if chance.random() < 0.95
    }
    after |= {
        f"lumos://s3/new/t{number}": FingerprintedSchema.of(schema(chance)) for number in range(9)
    }
    return before, after


def rows(inventory: dict[str, FingerprintedSchema]) -> Iterator[InventoryRow]:
    for urn, known in inventory.items():
        yield InventoryRow(urn, known.fingerprint, to_json(known.schema), known.format)


def compared(spark: SparkSession, folder: Path) -> tuple[InventoryDiffCounts, list[dict[str, Any]]]:
    before, after = (spark.read.parquet(str(folder / name)) for name in ("before", "after"))
    sums = compare_inventories(before, after, compare=change_table_rows, to=str(folder / "found"))
    return sums, spark.read.parquet(str(folder / "found/changes")).toArrow().to_pylist()


@pytest.mark.parametrize(
    "few",
    [
        pytest.param(500_000, id="sent around", marks=pytest.mark.slow),
        pytest.param(3, id="joined"),
    ],
)
def test_spark_finds_what_is_found_in_memory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(schema_comparison, "_MAX_BROADCAST_URNS", few)
    before, after = inventories(400)
    expected = find_differences(before, after)
    assert len(expected.changed) > 50
    assert len(expected.removed) > 5
    for name, inventory in (("before", before), ("after", after)):
        write_inventory(rows(inventory), tmp_path / name)
    sums, found = compared(spark, tmp_path)

    wanted = [
        {
            **to_plain(row),
            "urn": urn,
            "before": to_json(row.before).decode(),
            "after": to_json(row.after).decode(),
        }
        for urn, findings in expected.changed.items()
        for row in change_rows(urn, findings)
    ]
    by_fingerprint = itemgetter("fingerprint")
    assert sorted(found, key=by_fingerprint) == [
        {**row, "flags": list(row["flags"]), "notes": list(row["notes"])}
        for row in sorted(wanted, key=by_fingerprint)
    ]
    assert sums == InventoryDiffCounts(
        changed=len(expected.changed),
        added=len(expected.added),
        removed=len(expected.removed),
        verdicts=Counter(row["consumer"] for row in wanted),
    )
    datasets = spark.read.parquet(str(tmp_path / "found/datasets")).toArrow().to_pylist()
    change_by_urn = {row["urn"]: row["change"] for row in datasets}
    assert change_by_urn == {
        **dict.fromkeys(expected.changed, "changed"),
        **dict.fromkeys(expected.added, "added"),
        **dict.fromkeys(expected.removed, "removed"),
    }


def test_only_what_differs_is_decoded(spark: SparkSession, tmp_path: Path) -> None:
    before, after = inventories(60)
    changed = find_differences(before, after).changed
    same = {urn for urn in before if urn in after and urn not in changed}
    assert same
    for name, inventory in (("before", before), ("after", after)):
        broken = (
            row._replace(body=b"no JSON") if row.urn in same else row for row in rows(inventory)
        )
        write_inventory(broken, tmp_path / name)
    assert {row["urn"] for row in compared(spark, tmp_path)[1]} == set(changed)


def test_a_table_that_is_no_snapshot_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("u", "f")], "urn string, fingerprint string")
    with pytest.raises(MisuseError, match="no column body, format"):
        compare_inventories(frame, frame, compare=change_table_rows, to=str(tmp_path / "found"))
    assert not (tmp_path / "found").exists()


@pytest.mark.usefixtures("spark")
def test_snapshots_of_a_store_are_compared_and_the_differences_kept(workplace: Path) -> None:
    lumos = Lumos()
    write_text(workplace / "lake/users/users.csv", ["id,name", "1,Ann"])
    write_text(workplace / "lake/old/old.csv", ["id", "1"])
    write_text(workplace / "lake/same/same.csv", ["id", "1"])
    lumos.ingest(str(workplace / "lake"))
    assert lumos.schema_inventory.snapshot("monday.parquet").datasets == 3
    write_text(workplace / "lake/users/users.csv", ["id,city", "1,Rome"])
    write_text(workplace / "lake/fresh/fresh.csv", ["id", "1"])
    (workplace / "lake/old/old.csv").unlink()
    lumos.ingest(str(workplace / "lake"), accept_removals=True)
    assert lumos.schema_inventory.snapshot("tuesday.parquet").datasets == 3

    report = lumos.schema_inventory.compare("monday.parquet", "tuesday.parquet", to="differences")
    assert (report.added, report.removed) == (1, 1)
    assert report.summary == ChangeCounts(datasets=1, changes=2, breaking=1, compatible=1)
    with pytest.raises(LumosError, match="already exists"):
        lumos.schema_inventory.compare("monday.parquet", "tuesday.parquet", to="differences")
