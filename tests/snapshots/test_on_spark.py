"""Parquet snapshots on Spark: the same answers as in one process."""

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Governance, Lineage, Owner, Ownership, UpstreamEdge
from lumos.snapshots.format.checks import SnapshotProblem
from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.differences import COMPARED, OPTIONAL_ASPECTS
from lumos.snapshots.format.encodings import parquet_folder
from lumos.snapshots.format.validation import validate
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.on_spark import compare_folders, compare_schemas, validate_folder
from snapshots.sample_inventories import FACTS, everything, many


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many files with many row groups even of small estates."""
    monkeypatch.setattr(parquet_folder, "ROWS_PER_FILE", 40)
    monkeypatch.setattr(parquet_folder, "ROWS_PER_GROUP", 10)


def by_path(problems: Any) -> list[SnapshotProblem]:
    return sorted(problems, key=lambda problem: (problem.path, problem.code))


def edited(folder: Path, number: int, change: Any) -> None:
    """Rewrites one file of datasets with other rows."""
    file = folder / f"datasets-{number:05}.parquet"
    rows = pq.read_table(file).to_pylist()
    change(rows)
    schema = pa.schema([(name, pa.string()) for name in ("urn", "content_hash", "body")])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), file, row_group_size=10)


def test_a_sound_estate_has_no_problems_and_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    given = everything()
    given["datasets"] = [*given["datasets"], *many(200)]
    header = write_snapshot(tmp_path / "a.parquet", FACTS, **given)
    examined = validate_folder(spark, tmp_path / "a.parquet")
    assert examined.problems == ()
    assert examined.left_out == 0
    assert examined.header == header
    assert examined.counts == header.counts
    assert len(list((tmp_path / "a.parquet").glob("datasets-*"))) == 6


def spoil(rows: list[dict[str, Any]]) -> None:
    rows[3]["body"] = rows[3]["body"].replace('"parquet"', '"orc"')
    rows[5]["content_hash"] = None
    rows[7]["body"] = rows[7]["body"].replace('"platform":"s3"', '"platform":3')
    rows[8]["body"] = "nonsense"
    rows[9]["body"] = None
    rows[12]["urn"] = "lumos://s3/other"
    rows[14], rows[15] = rows[15], rows[14]
    body = json.loads(rows[18]["body"])
    rows[18]["body"] = json.dumps(body | {"colour": "blue"})


def test_spark_finds_what_one_process_finds(spark: SparkSession, tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a.parquet", FACTS, many(150))
    edited(tmp_path / "a.parquet", 1, spoil)
    expected = by_path(validate(tmp_path / "a.parquet"))
    assert {problem.code for problem in expected} == {
        "hash",
        "format",
        "order",
        "reference",
        "unknown_key",
    }
    found = validate_folder(spark, tmp_path / "a.parquet").problems
    # One process cannot know whose body it was that is lost; rows have keys beside their bodies.
    lost = ("t0000048", "t0000049")
    assert by_path(found) == [
        each for each in expected if not any(urn in each.text for urn in lost)
    ]


@pytest.mark.parametrize(
    "what", ["row twice", "file twice", "row lost", "counts", "header", "users"]
)
def test_what_only_the_whole_shows_is_found(spark: SparkSession, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "a.parquet"
    given = everything()
    given["datasets"] = [*given["datasets"], *many(150)]
    if what == "users":
        given["users"] = given["users"][:1]
        given["datasets"].append(
            CatalogEntry(
                urn="lumos://s3/zz", name="zz", platform="s3",
                ownership=Ownership(owners=(Owner(name="nobody"),)),
            )
        )  # fmt: skip
    write_snapshot(folder, FACTS, **given)
    manifest = json.loads((folder / "manifest.json").read_text())
    if what == "row twice":
        edited(folder, 1, lambda rows: rows.insert(0, rows[0]))
    elif what == "file twice":
        manifest["files"]["datasets"].insert(2, "datasets-00001.parquet")
    elif what == "row lost":
        edited(folder, 1, lambda rows: rows.pop())
    elif what == "counts":
        manifest["counts"]["tags"] += 1
    elif what == "header":
        manifest["platform"] = "elsewhere"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    expected = by_path(validate(folder))
    found = by_path(validate_folder(spark, folder).problems)
    assert expected
    if what == "file twice":
        # A file is read once on Spark; that its rows are missing from the second place shows.
        assert found
    else:
        assert found == expected


def test_more_problems_than_are_shown_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a.parquet", FACTS, list(many(100))[::2])
    examined = validate_folder(spark, tmp_path / "a.parquet", max_problems=10)
    assert len(examined.problems) == 10
    assert examined.left_out == 39
    assert {problem.code for problem in examined.problems} == {"reference"}


def inventories() -> tuple[list[CatalogEntry], list[CatalogEntry]]:
    dice = random.Random(3)
    before, after = [], []
    for entry in many(300):
        if dice.random() < 0.9:
            before.append(entry)
        if dice.random() < 0.1:
            continue
        if dice.random() < 0.1:
            entry = msgspec.structs.replace(entry, schema=None)
        if dice.random() < 0.1:
            entry = msgspec.structs.replace(entry, documentation=Documentation(description="x"))
        if dice.random() < 0.1:
            entry = msgspec.structs.replace(
                entry, governance=Governance(tags=("PII",)), deleted=True
            )
        if dice.random() < 0.1:
            edge = UpstreamEdge(urn="lumos://s3/lake/t0000000", type="COPIED")
            entry = msgspec.structs.replace(entry, lineage=Lineage(upstream=(edge,)))
        after.append(entry)
    return before, after


@pytest.mark.parametrize("aspects", [COMPARED, (*COMPARED, *OPTIONAL_ASPECTS)], ids=["main", "all"])
def test_spark_compares_as_one_process_does(
    spark: SparkSession, tmp_path: Path, aspects: tuple[str, ...]
) -> None:
    before, after = inventories()
    write_snapshot(tmp_path / "a.parquet", FACTS, before)
    write_snapshot(tmp_path / "b.parquet", FACTS, after)
    expected = list(
        compare(
            tmp_path / "a.parquet",
            tmp_path / "b.parquet",
            compare_schemas=compare_schemas,
            aspects=aspects,
        )
    )
    sums = compare_folders(
        spark, tmp_path / "a.parquet", tmp_path / "b.parquet", to=tmp_path / "out", aspects=aspects
    )
    rows = spark.read.parquet(str(tmp_path / "out/differences")).toArrow().to_pylist()
    found = [
        {**row, "before": json.loads(row["before"]), "after": json.loads(row["after"])}
        for row in rows
    ]
    wanted = [json.loads(msgspec.json.encode(each)) for each in expected]
    order = json.dumps
    assert sorted(found, key=order) == sorted(wanted, key=order)
    assert sum(sums.impacts.values()) == len(expected)
    assert sums.removed == sum(
        each.change == "removed" and each.aspect == "entry" for each in expected
    )
    assert sums.added == sum(each.change == "added" and each.aspect == "entry" for each in expected)
    assert sums.changed == len({each.key for each in expected if each.aspect != "entry"})


def test_an_estate_without_datasets_is_compared_too(spark: SparkSession, tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a.parquet", FACTS, ())
    write_snapshot(tmp_path / "b.parquet", FACTS, many(3))
    sums = compare_folders(
        spark, tmp_path / "a.parquet", tmp_path / "b.parquet", to=tmp_path / "out"
    )
    assert (sums.added, sums.removed, sums.impacts) == (3, 0, {"non-breaking": 3})


def test_parts_and_other_encodings_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    part = msgspec.structs.replace(FACTS, scope="incremental")
    write_snapshot(tmp_path / "a.parquet", FACTS, many(3))
    write_snapshot(tmp_path / "b.parquet", part, many(3))
    write_snapshot(tmp_path / "c.jsonl", FACTS, many(3))
    with pytest.raises(MisuseError, match="Partial exports cannot be compared"):
        compare_folders(spark, tmp_path / "a.parquet", tmp_path / "b.parquet", to=tmp_path / "out")
    with pytest.raises(MisuseError, match="not a folder of Parquet"):
        validate_folder(spark, tmp_path / "c.jsonl")
