"""A small estate with everything in it that DataHub has a place for, and some that it has not."""

from datetime import UTC, datetime

from lumos.catalogs import CatalogItem
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
    ColumnStatistics,
    Cost,
    Definition,
    Documentation,
    DriftedShape,
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
from lumos.model.lineage import ColumnMapping
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import (
    DATE,
    INT64,
    STRING,
    Array,
    Decimal,
    Map,
    Member,
    Struct,
    Timestamp,
    Union,
)

AT = datetime(2024, 1, 15, 10, 30, 0, 123456, tzinfo=UTC)
ORDERS = "lumos://s3/data-lake/raw/orders.v2"
CUSTOMERS = "lumos://snowflake@eu/FINANCE/Customers"
REPORT = "lumos://postgres/shop/public/revenue?env=DEV"

_ITEM = Struct(
    (
        Member("sku", STRING, nullable=False),
        Member("price", Decimal(10, 2)),
        Member("options", Map(STRING, Struct((Member("value", STRING),)))),
    )
)


def rich() -> list[CatalogEntry]:
    """Three datasets that hang together, with every aspect between them."""
    return [
        CatalogEntry(
            urn=ORDERS,
            name="orders",
            platform="s3",
            format="parquet",
            location=Location(
                uri="s3://data-lake/raw/orders.v2/", partitioning="day", partition_keys=("day",)
            ),
            schema=Schema(
                fields=(
                    Field(name="id", type=INT64, nullable=False, key=True, description="Order number"),
                    Field(name="customer", type=STRING, tags=("PII",), native_type="BYTE_ARRAY", field_id=2),
                    Field(
                        name="items", type=Array(_ITEM),
                        nested=(
                            NestedField(path="items[].price", description="Net, in euros", field_id=7),
                            NestedField(path="items[].options{}.value", tags=("free text",)),
                        ),
                    ),
                    Field(name="payload", type=Union((INT64, STRING)), default="0"),
                    Field(name="at", type=Timestamp("ms", zoned=True)),
                    Field(name="net, gross (eu)", type=Decimal(12, 4)),
                    Field(name="day", type=DATE, partition=True),
                )
            ),
            statistics=Statistics(
                file_count=12, total_size_bytes=4711, row_count=99, row_count_exact=True, last_modified=AT,
                columns={"id": ColumnStatistics(null_count=0, minimum="1", maximum="99")},
            ),
            drift=(DriftedShape(shape="f" * 32, file_count=1, examples=("part-0.parquet",)),),
            ownership=Ownership(
                owners=(
                    Owner(name="jane.smith"),
                    Owner(name="lake, team (eu)", kind="group", type="DATA_STEWARD"),
                    Owner(name="bob", type="Approver"),
                )
            ),
            governance=Governance(tags=("PII", "tier-1"), terms=("Order",), compliance=("GDPR",)),
            documentation=Documentation(
                description="All orders since 2019.", business_context="Feeds the monthly close.",
                domain="Sales",
            ),
            properties={"team": "lake", "größe": "klein", "urn:li:structuredProperty:io.acme.tier": "gold"},
            versioning=Versioning(
                cloud_version="S-312", schema_version="2.0.0",
                history=(
                    VersionRecord(cloud_version="S-311", schema_version="1.0.0", at=AT, changes=("created",)),
                    VersionRecord(cloud_version="S-312", schema_version="2.0.0", at=AT, changes=("id INT64",)),
                ),
            ),
            schedule=Schedule(cron="0 3 * * *", availability_lag_minutes=30),
            usage=Usage(readers=(Reader(name="dbt", reads=3, last_read=AT),), last_accessed=AT),
            quality=Quality(
                score=0.985, measured_at=AT, dimensions={"completeness": 0.99},
                checks=(QualityCheck(name="id is unique", status="PASSED"),),
            ),
            cost=Cost(currency="EUR", period="2024-01", own={"storage": 45.5}, calculated_at=AT),
            timestamps=Timestamps(created=AT, last_modified=AT),
        ),
        CatalogEntry(
            urn=CUSTOMERS,
            name="Customers",
            platform="snowflake",
            schema=Schema(fields=(Field(name="ID", type=STRING, key=True, nullable=False),)),
            lineage=Lineage(
                upstream=(
                    UpstreamEdge(
                        urn=ORDERS,
                        columns=(
                            ColumnMapping(upstream="customer", downstream="ID", transformation="upper"),
                            ColumnMapping(upstream="items[].sku", downstream="ID"),
                        ),
                    ),
                    UpstreamEdge(urn="lumos://kafka/events.signup", type="COPIED"),
                ),
                downstream=(UpstreamEdge(urn=REPORT, type="VIEW"),),
            ),
            ownership=Ownership(owners=(Owner(name="jane.smith", type="DATAOWNER"),)),
        ),
        CatalogEntry(
            urn=REPORT,
            name="revenue",
            platform="postgres",
            format="view",
            definition=Definition(sql="SELECT 'a, (b)' FROM customers", dialect="postgres"),
            lineage=Lineage(upstream=(UpstreamEdge(urn=CUSTOMERS, type="VIEW"),)),
            governance=Governance(),
            deleted=True,
        ),
    ]  # fmt: skip


def items() -> list[CatalogItem]:
    """Terms, people, a job, and something that only another catalog knows of."""
    return [
        GlossaryTerm(
            name="Order", display_name="Order", definition="What a customer asked for.",
            parent="Sales", related=("Customer",), domain="Sales", owners=("jane.smith",),
            properties={"source": "wiki"},
        ),
        User(
            name="jane.smith", display_name="Jane Smith", email="jane@example.com", title="Engineer",
            groups=("lake, team (eu)",), properties={"desk": "4"},
        ),
        Group(
            name="lake, team (eu)", display_name="Lake team", description="Keeps the lake.",
            members=("jane.smith",), properties={"cost center": "17"},
        ),
        Job(urn="lumos://airflow/nightly/load", name="load", platform="airflow", inputs=(ORDERS,), outputs=(CUSTOMERS,)),
        CatalogEntity(urn="atlas:process:7", raw={"atlas": {"process": [{"guid": "7"}]}}),
    ]  # fmt: skip
