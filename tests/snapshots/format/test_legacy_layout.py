"""The layouts that came before format 1.0 are read, and everything in them has a place."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import yaml

from lumos.model.catalog import CatalogEntry, GlossaryTerm, Group, Timestamps, User
from lumos.model.dataset import (
    Cost,
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    Quality,
    UpstreamEdge,
    Versioning,
    VersionRecord,
)
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING, Timestamp
from lumos.snapshots.format.document import SnapshotCounts
from lumos.snapshots.format.errors import NewerSnapshot, SnapshotError
from lumos.snapshots.format.reader import open_snapshot
from lumos.snapshots.format.validation import validate
from lumos.snapshots.format.writer import write_snapshot

NESTED = """
lumos_snapshot:
  version: "1.0.0"
  exported_at: "2024-01-15T10:30:00Z"
  exported_by: "lumos-framework"
  source_platform: "datahub"
  target_platform: null  # for any
  metadata:
    total_datasets: 2
    total_lineage_relationships: 1
    export_scope: "all"
  datasets:
    - urn: "urn:li:dataset:(postgres,users,DEV)"
      name: "users"
      platform: "postgres"
      environment: "DEV"
    - urn: "urn:li:dataset:(urn:li:dataPlatform:csv,user_data,DEV)"
      name: "user_data"
      platform: "csv"
      environment: "DEV"
      schema:
        fields:
          - name: "user_id"
            type: "string"
            nullable: false
            description: "Who it is"
          - name: "age"
            type: "bigint"
            nullable: true
            default: null
      properties:
        description: "What we know of users"
        custom_properties:
          source_path: "/data/users"
          files: 3
      lineage:
        upstream:
          - urn: "urn:li:dataset:(postgres,users,DEV)"
            type: "COPIED"
            relationship_type: "Produces"
        downstream:
          - urn: "urn:li:dataset:(postgres,users,DEV)"
            type: "Consumes"
      ownership:
        owners:
          - urn: "urn:li:corpuser:john.doe"
            type: "TECHNICAL_OWNER"
          - urn: "urn:li:corpGroup:data-team"
            type: "DATA_STEWARD"
      governance:
        tags: ["PII", "user-data"]
        glossary_terms: ["Customer"]
        compliance: ["GDPR"]
      versioning:
        cloud_version: "S-312"
        schema_version: "2.0.0"
        version_history:
          - version: "S-311"
            schema_version: "1.0.0"
            timestamp: "2024-01-01T00:00:00Z"
            changes: ["Added age"]
      cost:
        monthly_storage_cost: 45.50
        monthly_compute_cost: 120.00
        currency: "EUR"
        last_calculated: "2024-01-15T08:00:00Z"
      quality:
        quality_score: 0.85
        last_profiled: "2024-01-14T08:00:00Z"
        quality_metrics:
          completeness: 0.95
          accuracy: 0.90
      timestamps:
        created: "2024-01-01T00:00:00Z"
        last_modified: "2024-01-15T09:00:00"
        last_accessed: "2024-01-15T11:00:00+01:00"
"""
FLAT = {
    "lumos_version": "1.0.0",
    "export_timestamp": "2024-01-15T10:30:00Z",
    "source_platform": "datahub",
    "statistics": {"datasets": 1, "lineage_edges": 1, "owners": 2, "tags": 2},
    "datasets": [
        {
            "urn": "lumos://snowflake/FINANCE/customers",
            "name": "customers",
            "platform": "snowflake",
            "database": "FINANCE",
            "schema": {
                "fields": [
                    {"name": "email", "type": "STRING", "nullable": True, "pii": True},
                    {"name": "at", "type": "TIMESTAMP", "nullable": False},
                ]
            },
            "lineage": {"upstream": ["lumos://kafka/events.signup"], "downstream": []},
            "ownership": {
                "owners": [
                    {"user": "jane.smith", "type": "TECHNICAL_OWNER"},
                    {"group": "finance-data-team", "type": "DATA_STEWARD"},
                ]
            },
            "tags": ["pii", "tier-1"],
            "quality": {
                "score": 98.5,
                "freshness": "2024-01-15T08:00:00Z",
                "completeness": 99.2,
            },
            "documentation": {"description": "All customers", "business_context": "Who pays"},
        }
    ],
    "glossary": ["Customer", {"name": "Client", "definition": "The same"}],
    "users": [{"name": "jane.smith", "email": "jane@example.com", "floor": 3}],
    "groups": [{"group": "finance-data-team", "members": ["jane.smith"]}],
}


def time(day: int, hour: int = 0) -> datetime:
    return datetime(2024, 1, day, hour, tzinfo=UTC)


@pytest.fixture(params=["yaml", "json"])
def nested(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The layout below `lumos_snapshot`, in either encoding."""
    file = tmp_path / f"nested.{request.param}"
    is_yaml = request.param == "yaml"
    plain = msgspec.json.encode(yaml.safe_load(NESTED)).decode()
    file.write_text(NESTED if is_yaml else plain)
    return file


@pytest.fixture(params=["yaml", "json"])
def flat(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The layout that begins with `lumos_version`, in either encoding."""
    file = tmp_path / f"flat.{request.param}"
    is_yaml = request.param == "yaml"
    file.write_text(yaml.safe_dump(FLAT) if is_yaml else msgspec.json.encode(FLAT).decode())
    return file


def test_all_of_the_nested_layout_has_a_place(nested: Path) -> None:
    with open_snapshot(nested) as snapshot:
        assert snapshot.header.platform == "datahub"
        assert snapshot.header.exported_by == "lumos-framework"
        assert snapshot.header.exported_at == datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
        assert snapshot.header.scope == "all"
        assert snapshot.header.counts == SnapshotCounts(datasets=2, lineage_edges=1)
        first, second = snapshot.datasets()
    assert second == CatalogEntry(
        urn="lumos://postgres/users?env=DEV", name="users", platform="postgres"
    )
    assert first == CatalogEntry(
        urn="lumos://csv/user_data?env=DEV",
        name="user_data",
        platform="csv",
        schema=Schema(
            fields=(
                Field(name="user_id", type=STRING, nullable=False, description="Who it is"),
                Field(name="age", type=INT64, native_type="bigint"),
            )
        ),
        properties={"source_path": "/data/users", "files": "3"},
        documentation=Documentation(description="What we know of users"),
        lineage=Lineage(
            upstream=(UpstreamEdge(urn="lumos://postgres/users?env=DEV", type="COPIED"),),
            downstream=(UpstreamEdge(urn="lumos://postgres/users?env=DEV"),),
        ),
        ownership=Ownership(
            owners=(
                Owner(name="john.doe"),
                Owner(name="data-team", kind="group", type="DATA_STEWARD"),
            )
        ),
        governance=Governance(tags=("PII", "user-data"), terms=("Customer",), compliance=("GDPR",)),
        versioning=Versioning(
            cloud_version="S-312",
            schema_version="2.0.0",
            history=(
                VersionRecord(
                    cloud_version="S-311",
                    schema_version="1.0.0",
                    at=time(1),
                    changes=("Added age",),
                ),
            ),
        ),
        cost=Cost(
            currency="EUR",
            period="monthly",
            own={"storage": 45.5, "compute": 120.0},
            calculated_at=time(15, 8),
        ),
        quality=Quality(
            score=0.85, measured_at=time(14, 8), dimensions={"completeness": 0.95, "accuracy": 0.9}
        ),
        timestamps=Timestamps(
            created=time(1), last_modified=time(15, 9), last_accessed=time(15, 10)
        ),
    )


def test_all_of_the_flat_layout_has_a_place(flat: Path) -> None:
    with open_snapshot(flat) as snapshot:
        assert snapshot.header.counts == SnapshotCounts(
            datasets=1, lineage_edges=1, owners=2, tags=2
        )
        (customers,) = snapshot.datasets()
        assert list(snapshot.terms()) == [
            GlossaryTerm(name="Client", definition="The same"),
            GlossaryTerm(name="Customer"),
        ]
        assert list(snapshot.users()) == [
            User(name="jane.smith", email="jane@example.com", raw={"founding": {"floor": 3}})
        ]
        assert list(snapshot.groups()) == [Group(name="finance-data-team", members=("jane.smith",))]
    assert customers == CatalogEntry(
        urn="lumos://snowflake/FINANCE/customers",
        name="customers",
        platform="snowflake",
        schema=Schema(
            fields=(
                Field(name="email", type=STRING, tags=("PII",)),
                Field(name="at", type=Timestamp("us"), nullable=False, native_type="TIMESTAMP"),
            )
        ),
        lineage=Lineage(upstream=(UpstreamEdge(urn="lumos://kafka/events.signup"),)),
        ownership=Ownership(
            owners=(
                Owner(name="jane.smith"),
                Owner(name="finance-data-team", kind="group", type="DATA_STEWARD"),
            )
        ),
        governance=Governance(tags=("pii", "tier-1")),
        quality=Quality(score=0.985, freshness=time(15, 8), dimensions={"completeness": 0.992}),
        documentation=Documentation(description="All customers", business_context="Who pays"),
    )


def test_an_earlier_layout_validates(nested: Path) -> None:
    assert list(validate(nested)) == []


def test_a_dangling_edge_of_an_earlier_layout_is_reported_with_its_position(flat: Path) -> None:
    (problem,) = validate(flat)
    assert problem.code == "reference"
    assert problem.path.endswith("datasets[0].lineage.upstream[0]")
    assert "lumos://kafka/events.signup" in problem.text


def test_an_earlier_layout_can_be_written_as_the_present_one(nested: Path, tmp_path: Path) -> None:
    with open_snapshot(nested) as snapshot:
        entries = list(snapshot.datasets())
        write_snapshot(tmp_path / "now.jsonl", snapshot.header.facts, entries)
    with open_snapshot(tmp_path / "now.jsonl") as now:
        assert list(now.datasets()) == entries
    assert list(validate(tmp_path / "now.jsonl")) == []


def test_keys_that_nobody_knows_are_carried_along(tmp_path: Path) -> None:
    file = tmp_path / "flat.json"
    dataset = FLAT["datasets"][0] | {"tier": 1, "database": "ELSEWHERE"}  # type: ignore[index]
    file.write_bytes(msgspec.json.encode(FLAT | {"datasets": [dataset]}))
    with open_snapshot(file) as snapshot:
        (entry,) = snapshot.datasets()
    assert entry.raw == {"founding": {"tier": 1, "database": "ELSEWHERE"}}


def written(folder: Path, **parts: object) -> Path:
    """A file in the flat layout with one dataset, or other parts."""
    head = {"lumos_version": "1.0.0", "export_timestamp": "2024-01-15T10:30:00Z"}
    (folder / "flat.json").write_bytes(msgspec.json.encode(head | parts))
    return folder / "flat.json"


@pytest.mark.parametrize(
    ("part", "raw"),
    [
        ({"schema": {"fields": [], "primary_key": ["id"]}}, {"schema.primary_key": ["id"]}),
        (
            {"schema": {"fields": [{"name": "a", "type": "string", "classification": "secret"}]}},
            {"schema.fields[0].classification": "secret"},
        ),
        ({"lineage": {"source": "parser"}}, {"lineage.source": "parser"}),
        (
            {"lineage": {"upstream": [{"urn": "lumos://s3/b", "confidence": 0.8}]}},
            {"lineage.upstream[0].confidence": 0.8},
        ),
        (
            {"lineage": {"upstream": [{"urn": "lumos://s3/b", "relationship_type": "Feeds"}]}},
            {"lineage.upstream[0].relationship_type": "Feeds"},
        ),
        ({"ownership": {"last_changed": "2024"}}, {"ownership.last_changed": "2024"}),
        (
            {"ownership": {"owners": [{"user": "ann", "email": "a@example.com"}]}},
            {"ownership.owners[0].email": "a@example.com"},
        ),
        ({"governance": {"retention": "7y"}}, {"governance.retention": "7y"}),
        ({"documentation": {"wiki": "x"}}, {"documentation.wiki": "x"}),
        ({"properties": {"wiki": "x"}}, {"properties.wiki": "x"}),
        ({"versioning": {"branch": "main"}}, {"versioning.branch": "main"}),
        ({"cost": {"cost_center": "CC1"}}, {"cost.cost_center": "CC1"}),
        (
            {"cost": {"monthly_storage_cost": 1.0, "monthly_total_cost": 3.0}},
            {"cost.monthly_total_cost": 3.0},
        ),
        ({"quality": {"score": 98.5, "grade": "A"}}, {"quality.grade": "A"}),
        (
            {"quality": {"quality_score": 0.9, "rules": ["r"], "quality_metrics": {"a": "b"}}},
            {"quality.rules": ["r"], "quality.quality_metrics": {"a": "b"}},
        ),
        ({"timestamps": {"archived": "2024-02-01"}}, {"timestamps.archived": "2024-02-01"}),
        ({"schedule": {"cron": "0 3 * * *", "calendar": "bank"}}, {"schedule.calendar": "bank"}),
        ({"usage": {"readers": [{"name": "bi", "team": "x"}]}}, {"usage.readers[0].team": "x"}),
    ],
)
def test_keys_inside_of_parts_are_carried_along_by_their_path(
    tmp_path: Path, part: dict[str, object], raw: dict[str, object]
) -> None:
    file = written(tmp_path, datasets=[{"urn": "lumos://s3/a"} | part])
    with open_snapshot(file) as snapshot:
        (entry,) = snapshot.datasets()
    assert entry.raw == {"founding": raw}


def test_what_the_present_format_knows_is_not_carried_but_read(tmp_path: Path) -> None:
    step = {"version": "S-1", "schema_version": "1.0.0", "timestamp": "2024-01-01T00:00:00Z"}
    versioning = {"cloud_version": "S-1", "schema_version": "1.0.0"}
    dataset = {
        "urn": "lumos://s3/a",
        "schema": {"fields": []},
        "versioning": versioning | {"version_history": [step | {"author": "bob"}]},
        "governance": {"glossary_terms": ["urn:li:glossaryTerm:Sales: Net"]},
    }
    with open_snapshot(written(tmp_path, datasets=[dataset])) as snapshot:
        (entry,) = snapshot.datasets()
    assert entry.schema == Schema()
    assert entry.versioning is not None
    assert entry.versioning.history[0].author == "bob"
    assert entry.governance == Governance(terms=("Sales: Net",))
    assert entry.raw == {}


def test_names_keep_their_colons_and_people_their_descriptions(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        glossary=["Sales: Net", {"name": "urn:li:glossaryTerm:Costs: Net", "description": "d"}],
        users=[{"user": "urn:li:corpuser:bob", "description": "the boss"}],
        groups=[{"group": "g", "description": "a group"}],
        jobs=[
            {"urn": "lumos://airflow/d", "name": "d", "platform": "airflow", "team": "x"}
            | {"inputs": ["urn:li:dataset:(s3,a,PROD)"]}
        ],
    )
    with open_snapshot(file) as snapshot:
        assert list(snapshot.terms()) == [
            GlossaryTerm(name="Costs: Net", definition="d"),
            GlossaryTerm(name="Sales: Net"),
        ]
        carried = {"founding": {"description": "the boss"}}
        assert list(snapshot.users()) == [User(name="bob", raw=carried)]
        assert list(snapshot.groups()) == [Group(name="g", description="a group")]
        (job,) = snapshot.jobs()
    assert job.inputs == ("lumos://s3/a",)
    assert job.raw == {"founding": {"team": "x"}}


@pytest.mark.parametrize(
    ("platform", "type", "read"),
    [
        ("snowflake", "NUMBER(38,2)", "DECIMAL(38,2)"),
        ("csv", "NUMBER(38,2)", "DECIMAL(38,2)"),
        ("bigquery", "BIGNUMERIC", "DECIMAL(76,38)"),
        ("postgres", "int", "INT32"),
        ("snowflake", "int", "DECIMAL(38,0)"),
        ("csv", "money bag", "UNKNOWN('money bag')"),
    ],
)
def test_types_are_read_in_the_words_of_their_platform(
    tmp_path: Path, platform: str, type: str, read: str
) -> None:
    schema = {"fields": [{"name": "a", "type": type}]}
    dataset = {"urn": f"lumos://{platform}/a", "schema": schema}
    with open_snapshot(written(tmp_path, datasets=[dataset])) as snapshot:
        (entry,) = snapshot.datasets()
    assert entry.schema is not None
    assert entry.schema.fields[0].type.text == read
    assert entry.schema.fields[0].native_type == type


@pytest.mark.parametrize(
    ("head", "code", "path"),
    [
        ({"lumos_version": 2}, "newer_version", "lumos_version"),
        ({"lumos_snapshot": {"version": 2.0}}, "newer_version", "lumos_snapshot.version"),
        ({"lumos_snapshot": {"version": "x"}}, "format", "lumos_snapshot.version"),
        ({"lumos_version": "1.0.0"}, "format", "export_timestamp"),
        ({"lumos_snapshot": {"version": "1.0"}}, "format", "lumos_snapshot.exported_at"),
        (
            {"lumos_version": "1.0", "export_timestamp": "2024-01-15T10:30:00Z"}
            | {"statistics": {"datasets": 3}},
            "count",
            "statistics.datasets",
        ),
        (
            {
                "lumos_snapshot": {
                    "version": "1.0.0",
                    "exported_at": "2024-01-15T10:30:00Z",
                    "metadata": {"total_datasets": 3},
                }
            },
            "count",
            "lumos_snapshot.metadata.total_datasets",
        ),
    ],
)
def test_problems_of_an_earlier_header_have_the_paths_of_its_layout(
    tmp_path: Path, head: dict[str, object], code: str, path: str
) -> None:
    (tmp_path / "a.json").write_bytes(msgspec.json.encode(head))
    (problem,) = validate(tmp_path / "a.json")
    assert (problem.code, problem.path) == (code, path)


@pytest.mark.parametrize("version", ["1.1.0", "2.0", "10.0.0"])
@pytest.mark.parametrize("key", ["lumos_version", "lumos_snapshot"])
def test_a_later_version_of_an_earlier_layout_is_refused(
    tmp_path: Path, key: str, version: str
) -> None:
    file = tmp_path / "later.json"
    head = {key: version} if key == "lumos_version" else {key: {"version": version}}
    file.write_bytes(msgspec.json.encode(head | {"datasets": []}))
    with pytest.raises(NewerSnapshot, match=f"format {version}"):
        open_snapshot(file)


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"urn": 1}, ".urn"),
        ({"urn": "urn:li:chart:(looker,1)"}, ".urn"),
        ({"urn": "lumos://s3/"}, ".urn"),
        ({"schema": []}, ".schema"),
        ({"schema": {"fields": {}}}, ".schema.fields"),
        ({"schema": {"fields": [{"name": "a"}]}}, ".schema.fields[0].type"),
        ({"schema": {"fields": [{"type": "STRING"}]}}, ".schema.fields[0]"),
        ({"lineage": {"upstream": [7]}}, ".lineage.upstream[0]"),
        ({"lineage": {"upstream": ["nowhere"]}}, ".lineage.upstream[0]"),
        (
            {"lineage": {"upstream": [{"urn": "lumos://s3/a", "type": "ODD"}]}},
            ".lineage.upstream[0].type",
        ),
        ({"ownership": {"owners": [{"type": "X"}]}}, ".ownership.owners[0]"),
        ({"quality": {"score": "high"}}, ".quality.score"),
        ({"quality": {"quality_score": "high"}}, ".quality.quality_score"),
        ({"cost": {"monthly_storage_cost": "4 EUR"}}, ".cost.monthly_storage_cost"),
        ({"timestamps": {"created": "yesterday"}}, ".timestamps.created"),
        (
            {"versioning": {"version_history": [{"timestamp": "later"}]}},
            ".versioning.version_history[0].timestamp",
        ),
    ],
)
def test_what_is_wrong_in_an_earlier_layout_is_reported_with_its_position(
    tmp_path: Path, part: dict[str, object], path: str
) -> None:
    file = tmp_path / "flat.json"
    file.write_bytes(
        msgspec.json.encode(
            {"lumos_version": "1.0.0", "export_timestamp": "2024-01-15T10:30:00Z"}
            | {"datasets": [{"urn": "lumos://s3/a"} | part]}
        )
    )
    (problem,) = (each for each in validate(file) if each.code == "format")
    assert problem.path == f"datasets[0]{path}"
    with pytest.raises(SnapshotError, match=r"datasets\[0\]"), open_snapshot(file) as snapshot:
        list(snapshot.datasets())


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("urn:li:dataset:(csv,user_data,PROD)", "lumos://csv/user_data"),
        ("urn:li:dataset:(urn:li:dataPlatform:s3,lake/raw/a.b,PROD)", "lumos://s3/lake/raw/a.b"),
        (
            "urn:li:dataset:(postgres,shop.public.users,DEV)",
            "lumos://postgres/shop/public/users?env=DEV",
        ),
        ("urn:li:dataset:(kafka,events, odd,PROD)", "lumos://kafka/events,%20odd"),
        ("lumos://s3/lake/a", "lumos://s3/lake/a"),
    ],
)
def test_urns_of_other_catalogs_become_those_of_lumos(
    tmp_path: Path, given: str, meant: str
) -> None:
    head = {"lumos_version": "1.0.0", "export_timestamp": "2024-01-15T10:30:00Z"}
    (tmp_path / "a.json").write_bytes(msgspec.json.encode(head | {"datasets": [{"urn": given}]}))
    with open_snapshot(tmp_path / "a.json") as snapshot:
        assert [entry.urn for entry in snapshot.datasets()] == [meant]
