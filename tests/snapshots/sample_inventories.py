"""Estates to make snapshots of: one that has everything, and ones of any size."""

from collections.abc import Iterator
from datetime import UTC, datetime

from lumos.model.catalog import (
    CatalogEntity,
    CatalogEntry,
    GlossaryTerm,
    Group,
    Job,
    Timestamps,
    User,
)
from lumos.model.dataset import (
    ColumnReads,
    Cost,
    Documentation,
    Governance,
    Lineage,
    Location,
    Owner,
    Ownership,
    Quality,
    QualityCheck,
    Reader,
    Schedule,
    Statistics,
    UpstreamEdge,
    Usage,
    Versioning,
    VersionRecord,
)
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, JobRun, UseKind
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import INT64, STRING, parse_type
from lumos.snapshots.format.document import SnapshotFacts

NOON = datetime(2024, 1, 15, 12, tzinfo=UTC)
FACTS = SnapshotFacts(exported_at=NOON, exported_by="lumos 0.1.0", platform="local")

CUSTOMERS = "lumos://snowflake@eu/FINANCE/customers"
SIGNUPS = "lumos://kafka/events.customer_signup"
LOAD = "lumos://airflow/nightly/load_customers"


def everything() -> dict[str, list[object]]:
    """The arguments of a snapshot in which every kind and every aspect is used."""
    return {
        "datasets": [customers(), signups()],
        "glossary": [
            GlossaryTerm(
                name="Customer", definition="Somebody who pays", parent="Sales", related=("Client",)
            ),
            GlossaryTerm(name="Client"),
            GlossaryTerm(name="Sales", owners=("jane.smith",), properties={"a": "b"}),
        ],
        "users": [
            User(name="jane.smith", email="jane@example.com", groups=("finance-data-team",)),
            User(name="john.doe", active=False, raw={"datahub": {"corpUserStatus": [1, 2.5]}}),
        ],
        "groups": [Group(name="finance-data-team", members=("jane.smith",))],
        "jobs": [
            Job(
                urn=LOAD,
                name="load_customers",
                platform="airflow",
                inputs=(SIGNUPS,),
                outputs=(CUSTOMERS,),
                owner="jane.smith",
                schedule=Schedule(cron="0 3 * * *", timezone="Europe/Berlin"),
                cost=Cost(currency="USD", period="monthly", own={"compute": 12.5}),
                runs=(JobRun(run_id="1", job=LOAD, started_at=NOON, state="COMPLETE"),),
            )
        ],
        "others": [
            CatalogEntity(urn="urn:li:dashboard:(looker,1)", raw={"datahub": {"title": "x"}})
        ],
    }


def customers() -> CatalogEntry:
    return CatalogEntry(
        urn=CUSTOMERS,
        name="customers",
        platform="snowflake",
        format="table",
        location=Location(uri="snowflake://eu/FINANCE/customers"),
        schema=Schema(
            fields=(
                Field(name="customer_id", type=STRING, nullable=False, key=True),
                Field(name="e-mail", type=STRING, tags=("PII",), native_type="VARCHAR"),
                Field(
                    name="address",
                    type=parse_type("STRUCT<street: STRING, `zip code`: INT32 NOT NULL>"),
                    nested=(NestedField(path="address.street", description="and number"),),
                ),
            )
        ),
        statistics=Statistics(row_count=12, row_count_exact=True, last_modified=NOON),
        lineage=Lineage(
            upstream=(
                UpstreamEdge(
                    urn=SIGNUPS,
                    type="COPIED",
                    columns=(
                        ColumnMapping(
                            upstream="id",
                            downstream="customer_id",
                            transformation="lower(id)",
                            derivation=Derivation.TRANSFORMATION,
                            cast_to="STRING",
                            positional=True,
                            file="models/customers.sql",
                            line=14,
                        ),
                    ),
                    uses=(
                        ColumnUse(
                            upstream="signed_up",
                            usage=UseKind.FILTER,
                            expression="signed_up NOT IN ('1970-01-01')",
                            negated=True,
                            file="models/customers.sql",
                            line=21,
                        ),
                    ),
                ),
            )
        ),
        ownership=Ownership(
            owners=(
                Owner(name="jane.smith"),
                Owner(name="finance-data-team", kind="group", type="DATA_STEWARD"),
            )
        ),
        governance=Governance(tags=("pii", "tier-1"), terms=("Customer",), compliance=("GDPR",)),
        documentation=Documentation(
            description="Master customer table", business_context="Who pays", domain="Finance"
        ),
        properties={"z": "last", "a": "first", "über": "größe"},
        versioning=Versioning(
            cloud_version="S-312",
            schema_version="2.0.0",
            history=(
                VersionRecord(
                    cloud_version="S-311", schema_version="1.0.0", at=NOON, changes=("Added email",)
                ),
            ),
        ),
        schedule=Schedule(cron="0 4 * * *", availability_lag_minutes=30),
        usage=Usage(
            readers=(Reader(name="bi", reads=7, last_read=NOON),),
            last_accessed=NOON,
            since=NOON.date(),
            columns={"id": ColumnReads(reads=7, last_read=NOON.date())},
        ),
        quality=Quality(
            score=0.985,
            freshness=NOON,
            dimensions={"completeness": 0.992, "accuracy": 1.0},
            checks=(QualityCheck(name="unique", status="PASSED"),),
        ),
        cost=Cost(currency="USD", period="monthly", own={"storage": 45.5}, calculated_at=NOON),
        timestamps=Timestamps(created=NOON, last_modified=NOON, last_accessed=NOON),
        raw={"datahub": {"siblings": {"primary": True, "siblings": ["urn:li:x"]}}},
    )


def signups() -> CatalogEntry:
    return CatalogEntry(
        urn=SIGNUPS,
        name="events.customer_signup",
        platform="kafka",
        schema=Schema(fields=(Field(name="id", type=STRING),)),
        lineage=Lineage(downstream=(UpstreamEdge(urn=CUSTOMERS),)),
    )


def many(count: int, *, fields: int = 3) -> Iterator[CatalogEntry]:
    """As many datasets, each made from the one before it."""
    for number in range(count):
        before = f"lumos://s3/lake/t{number - 1:07}"
        yield CatalogEntry(
            urn=f"lumos://s3/lake/t{number:07}",
            name=f"t{number:07}",
            platform="s3",
            format="parquet",
            schema=Schema(
                fields=tuple(
                    Field(name=f"column_{n}", type=INT64 if n % 3 == 0 else STRING)
                    for n in range(fields)
                )
            ),
            lineage=Lineage(upstream=(UpstreamEdge(urn=before),)) if number else None,
        )
