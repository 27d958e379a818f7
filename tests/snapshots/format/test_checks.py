"""What the types of the format allow and nobody can mean."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lumos.model.catalog import CatalogEntry, Job
from lumos.model.dataset import Lineage, Quality, UpstreamEdge, Versioning
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING
from lumos.snapshots.format.checks import SnapshotProblem
from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.validation import validate
from lumos.snapshots.format.writer import write_snapshot
from lumos.snapshots.on_spark import compare_schemas
from snapshots.format.test_damage import replaced, written
from snapshots.sample_inventories import FACTS, customers, many

EDGE = UpstreamEdge(urn="lumos://s3/a")
TWICE = Schema(fields=(Field(name="a", type=INT64), Field(name="a", type=INT64)))


def found(folder: Path, **aspects: Any) -> list[tuple[str, str, str]]:
    """What is told of a dataset with these aspects."""
    entry = CatalogEntry(**({"urn": "lumos://s3/a", "name": "a", "platform": "s3"} | aspects))
    write_snapshot(folder / "a.json", FACTS, [entry])
    return [(each.severity, each.code, each.path) for each in validate(folder / "a.json")]


@pytest.mark.parametrize(
    ("aspects", "severity", "code", "path"),
    [
        ({"schema": TWICE}, "error", "duplicate", "schema.fields[1].name"),
        ({"name": ""}, "warning", "value", "name"),
        ({"platform": "kafka"}, "warning", "value", "platform"),
        ({"platform": "s"}, "warning", "value", "platform"),
        (
            {"lineage": Lineage(upstream=(EDGE, EDGE))},
            "warning",
            "duplicate",
            "lineage.upstream[1].urn",
        ),
        (
            {"versioning": Versioning(cloud_version="banana", schema_version="1.0.0")},
            "warning",
            "value",
            "versioning.cloud_version",
        ),
        (
            {"versioning": Versioning(cloud_version="S-1", schema_version="x.y")},
            "warning",
            "value",
            "versioning.schema_version",
        ),
        ({"quality": Quality(score=98.5)}, "warning", "value", "quality.score"),
        (
            {"quality": Quality(dimensions={"accuracy": -1.0})},
            "warning",
            "value",
            "quality.dimensions.accuracy",
        ),
    ],
)
def test_impossible_values_are_reported_with_their_path(
    tmp_path: Path, aspects: dict[str, Any], severity: str, code: str, path: str
) -> None:
    assert found(tmp_path, **aspects) == [(severity, code, f"datasets[0].{path}")]


@pytest.mark.parametrize("urn", ["lumos://s3/a", "lumos://s3@eu/a?env=DEV"])
def test_a_dataset_of_its_urns_platform_is_not_odd(tmp_path: Path, urn: str) -> None:
    assert found(tmp_path, urn=urn) == []


def test_a_job_with_an_invalid_urn_is_reported(tmp_path: Path) -> None:
    jobs = [
        Job(urn=urn, name="a", platform="airflow")
        for urn in ("lumos://airflow/a", "not a urn", "urn:li:dataJob:(a,b)")
    ]
    write_snapshot(tmp_path / "a.json", FACTS, [], jobs=jobs)
    (problem,) = validate(tmp_path / "a.json")
    assert (problem.code, problem.severity, problem.path) == ("urn", "warning", "jobs[1].urn")


def test_a_comparison_says_why_schemas_cannot_be_compared(tmp_path: Path) -> None:
    before, after = (
        msgspec.structs.replace(customers(), lineage=None, schema=schema)
        for schema in (TWICE, Schema(fields=(Field(name="a", type=STRING),)))
    )
    for name, entry in (("a.json", before), ("b.json", after)):
        write_snapshot(tmp_path / name, FACTS, [entry])
    (difference,) = compare(
        tmp_path / "a.json", tmp_path / "b.json", compare_schemas=compare_schemas
    )
    assert "is defined twice" in difference.notes[0]


@pytest.mark.parametrize("name", ["a.yaml", "a.jsonl", "a.parquet"])
def test_missing_entries_are_reported_in_addition_to_other_damage(
    tmp_path: Path, name: str
) -> None:
    write_snapshot(tmp_path / name, FACTS, many(5))
    spoiled = _spoiled(tmp_path / name)
    counts = [problem for problem in spoiled if problem.code == "count"]
    assert [(each.path, each.severity) for each in counts] == [("counts.datasets", "error")]
    assert len(spoiled) > len(counts)


def _spoiled(file: Path) -> list[SnapshotProblem]:
    """The problems of a snapshot whose first dataset is edited and whose last one is lost."""
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        part = file / "datasets-00000.parquet"
        rows = pq.read_table(part).to_pylist()[:-1]
        rows[0]["body"] = rows[0]["body"].replace('"platform":"s3"', '"platform":3')
        pq.write_table(pq.read_table(part).from_pylist(rows), part)
        return list(validate(file))
    text = file.read_text()
    end = text.rindex("\n- urn:") if file.suffix == ".yaml" else text.rindex('{"dataset":')
    old, new = ("platform: s3", "platform: 3") if file.suffix == ".yaml" else ('"s3"', "3")
    file.write_text(text[:end].replace(old, new, 1) + "\n")
    return list(validate(file))


def test_a_snapshot_edited_by_hand_is_valid_without_its_hashes(tmp_path: Path) -> None:
    file = written(tmp_path, "estate.json")
    document = json.loads(file.read_text())
    del document["hashes"]
    for kind in ("datasets", "glossary", "users", "groups", "jobs", "others"):
        for entry in document[kind]:
            del entry["content_hash"]
    document["datasets"][0]["ownership"] = {"owners": [{"name": "john.doe"}]}
    document["datasets"][0]["governance"] = {"tags": ["new"]}
    file.write_text(json.dumps(document))
    severities = {problem.path: problem.severity for problem in validate(file)}
    assert severities == {"counts.owners": "warning", "counts.tags": "warning", "hashes": "warning"}
    document["users"].pop()
    file.write_text(json.dumps(document))
    severities = {problem.path: problem.severity for problem in validate(file)}
    assert severities["counts.users"] == "error"


@pytest.mark.parametrize(
    ("old", "new", "impact"),
    [
        ('"tags":["PII"]', '"tags":[]', "breaking"),
        ('"tags":["PII"]', '"tags":["pii"]', "informational"),
        ('"tags":["PII"]', '"tags":["PII","x"]', "informational"),
    ],
)
def test_the_mark_of_private_data_on_a_column_is_missed(
    tmp_path: Path, old: str, new: str, impact: str
) -> None:
    before = written(tmp_path, "before.json")
    after = replaced(written(tmp_path, "after.json"), old, new)
    document = json.loads(after.read_text())
    del document["datasets"][1]["content_hash"]
    after.write_text(json.dumps(document))
    (difference,) = compare(before, after, compare_schemas=compare_schemas)
    assert (difference.aspect, difference.change, difference.impact) == ("schema", "tags", impact)
