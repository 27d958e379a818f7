"""The store of a web shop with something on every page, made without Spark."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from gate.gate_reports import finding, hostile_report, report
from lumos import Lumos
from lumos.discovery.dataset_recorder import DatasetRecorder
from lumos.discovery.lake.manifest import ManifestStore, ScanManifest
from lumos.discovery.lake.parts import write_part
from lumos.discovery.lake.summaries import FileRow, summarise
from lumos.discovery.scans import state_folder
from lumos.gate.reports import GateLocation
from lumos.model.dataset import (
    ColumnProfile,
    ColumnStatistics,
    DriftedShape,
    Location,
    Profile,
    Quality,
    Statistics,
    ValueCount,
)
from lumos.model.discovery import FoundDataset
from lumos.model.json_codec import to_json
from lumos.model.schema import parse_schema
from lumos.model.urn import Urn
from lumos.store import Store
from lumos.store.catalog_outbox import CatalogValues
from lumos.store.datasets import FinishedScan

LAKE = "lumos://s3/shop-lake"
ROOT = "s3://shop-lake"
SOURCE = f"s3:{ROOT}"
CONFIG = """
storage: {path: store.db}
usage: {retention_days: 3650}
cost_model:
  currency: USD
  storage: {s3: {cost_per_gb_month: 0.023}}
  compute: {spark: {cost_per_core_hour: 0.19}}
"""
GB = 1024**3
# path, owner, domain, description, GB, million rows, core hours a day, schema
DATASETS = (
    ("raw/user_clicks", "web-platform", "web", "One row per click in the shop and the apps.", 92_000, 48_200, 130,
     "event_id STRING NOT NULL\nuser_id STRING\nat TIMESTAMPTZ(us) NOT NULL\n"
     "properties STRUCT<page_url: STRING, referrer: STRING, device: STRUCT<os: STRING, width: INT32>>\n"
     "dt DATE PARTITION\n"),
    ("raw/orders", "checkout", "sales", "Orders as the checkout writes them, one row per order.", 3_100, 812, 24,
     "order_id INT64 NOT NULL KEY\ncustomer_id INT64\namount DECIMAL(10,2)\ndiscount DECIMAL(9,2)\n"
     "currency STRING(3)\nitems ARRAY<STRUCT<sku: STRING, quantity: INT32>>\ndt DATE PARTITION\n"),
    ("raw/customers", "checkout", "sales", "Customers with contact data.", 140, 61, 4,
     "customer_id INT64 NOT NULL KEY\nemail STRING\nname STRING\ncity STRING\nsigned_up DATE\n"),
    ("raw/ad_spend", None, "marketing", None, 420, 9, 2,
     "campaign_id STRING\nday DATE\nspend DECIMAL(12,2)\nchannel STRING\n"),
    ("raw/server_logs", "sre", "operations", "Access logs of all hosts.", 61_000, 120_400, 3,
     "host STRING\nat TIMESTAMPTZ(us)\nstatus INT32\npath STRING\nbytes INT64\n"),
    ("staging/sessions", "data-platform", "web", "Clicks grouped into visits.", 17_500, 3_900, 54,
     "session_id STRING\nuser_id STRING\nstarted TIMESTAMPTZ(us)\npages INT32\n"),
    ("staging/orders_eur", "data-platform", "sales", "Orders with amounts in euro.", 2_600, 812, 18,
     "order_id INT64\ncustomer_id INT64\namount_eur DECIMAL(12,2)\ndiscount DECIMAL(9,2)\n"),
    ("marts/revenue", "finance", "sales", "What each customer paid, before and after discounts.", 45, 61, 9,
     "customer_id INT64\ngross DECIMAL(18,2)\nnet DECIMAL(18,2)\n"),
    ("marts/customer_360", "analytics", "sales", "What the shop knows about each customer.", 320, 61, 42,
     "customer_id INT64\ncity STRING\nclicks INT64\nlast_seen TIMESTAMPTZ(us)\n"),
    ("marts/page_views", "web-platform", "web", None, 38, 2, 18, "page_url STRING\nviews INT64\nusers INT64\n"),
    ("marts/marketing_roi", "marketing", "marketing", "Revenue per campaign.", 30, 1, 6,
     "campaign_id STRING\nspend DECIMAL(12,2)\nrevenue DECIMAL(18,2)\nroi FLOAT64\n"),
    ("marts/daily_kpis", "analytics", "sales", "The figures on the wall.", 12, 1, 3,
     "day DATE\nvisits INT64\norders INT64\nconversion FLOAT64\n"),
    ("ml/churn_scores", "ml", "machine learning", "Who is likely to leave.", 60, 61, 31,
     "customer_id INT64\nscore FLOAT64\nscored_at TIMESTAMPTZ(us)\n"),
    ("ml/recommendations", "ml", "machine learning", "Ten items for each customer.", 1_150, 610, 88,
     "customer_id INT64\nitem_id STRING\nscore FLOAT64\n"),
    ("marts/legacy_funnel", None, "web", None, 2_300, 40, 22, "day DATE\nstep STRING\nusers INT64\n"),
)  # fmt: skip
MODELS = {
    "sessions": ("data-platform", "create table staging.sessions as\nselect min(event_id) as session_id, user_id, min(at) as started,\n  count(distinct properties.page_url) as pages\nfrom user_clicks\nwhere user_id is not null\ngroup by user_id, date_trunc('hour', at)\n"),
    "orders_eur": ("data-platform", "create table staging.orders_eur as\nselect order_id, customer_id, amount * 0.92 as amount_eur, discount\nfrom orders\n"),
    "revenue": ("finance", "create table marts.revenue as\nselect\n  customer_id,\n  sum(amount_eur) as gross,\n  sum(amount_eur - discount) as net\nfrom orders_eur\ngroup by customer_id\n"),
    "customer_360": ("analytics", "create table marts.customer_360 as\nselect c.customer_id, c.city, count(*) as clicks, max(k.at) as last_seen\nfrom customers c\njoin user_clicks k\n  on k.user_id = cast(c.customer_id as string)\ngroup by c.customer_id, c.city\n"),
    "page_views": ("web-platform", "create table marts.page_views as\nselect properties.page_url, count(*) as views, count(distinct user_id) as users\nfrom user_clicks\ngroup by properties.page_url\n"),
    "marketing_roi": ("marketing", "create table marts.marketing_roi as\nselect a.campaign_id, sum(a.spend) as spend, sum(r.net) as revenue, sum(r.net) / sum(a.spend) as roi\nfrom ad_spend a\njoin revenue r on r.customer_id = a.campaign_id\ngroup by a.campaign_id\n"),
    "daily_kpis": ("analytics", "create table marts.daily_kpis as\nselect cast(s.started as date) as day, count(*) as visits, count(o.order_id) as orders,\n  count(o.order_id) / count(*) as conversion\nfrom sessions s\nleft join orders_eur o on cast(o.customer_id as string) = s.user_id\ngroup by cast(s.started as date)\n"),
    "churn_scores": ("ml", "create table ml.churn_scores as\nselect c.customer_id, 1 / (1 + c.clicks) + 1 / (1 + r.gross) as score, c.last_seen as scored_at\nfrom customer_360 c\njoin revenue r\n  on r.customer_id = c.customer_id\n"),
    "recommendations": ("ml", "create table ml.recommendations as\nselect c.customer_id, p.page_url as item_id, p.views / c.clicks as score\nfrom customer_360 c\ncross join page_views p\n"),
    "legacy_funnel": ("analytics", "create table marts.legacy_funnel as\nselect cast(started as date) as day, 'visit' as step, count(distinct user_id) as users\nfrom sessions\ngroup by cast(started as date)\n"),
}  # fmt: skip
HOSTILE = (
    "<script>alert(1)</script>",
    "\u202egnp.exe",
    "x" * 300,
    "🦊 café 'quoted\" & more",
)


def fill(folder: Path, *, now: datetime | None = None, hostile: bool = False) -> Lumos:
    """Lumos in a folder with the history of a month, lineage, owners, usage, cost and jobs."""
    at = (now or datetime.now(UTC)).replace(microsecond=0)
    (folder / "lumos.yaml").write_text(CONFIG)
    lumos = Lumos(folder / "lumos.yaml")
    store = lumos.create_store()
    _record_history(store, at)
    _annotate(lumos)
    _lineage(lumos, folder)
    # Changes that are found after the lineage is known, so that those affected are named.
    _record(
        store,
        "raw/user_clicks",
        _schema("raw/user_clicks").replace("user_id STRING", "user_id INT64"),
        at - timedelta(hours=5),
    )
    _record(
        store,
        "raw/orders",
        _schema("raw/orders").replace("discount DECIMAL(9,2)\n", ""),
        at - timedelta(days=2),
    )
    _record(
        store,
        "raw/customers",
        _schema("raw/customers") + "country STRING\n",
        at - timedelta(days=3),
    )
    _usage(lumos, folder, at)
    _cost(lumos, folder, at)
    if hostile:
        for name in HOSTILE:
            _record(
                store, f"raw/{name}", f"`{name.replace('`', '')}` STRING\n", at - timedelta(hours=1)
            )
    _profile(store, at)
    manifest = _write_manifest(lumos.state_uri, at)
    scan = FinishedScan(
        source=SOURCE, scan_id="shop", manifest=manifest, finished_at=at - timedelta(minutes=40)
    )
    store.transact(lambda transaction: transaction.save_scan(scan))
    _operations(lumos, store, at, hostile=hostile)
    return lumos


def _operations(lumos: Lumos, store: Store, at: datetime, *, hostile: bool) -> None:
    """Jobs that succeeded, failed and wait, and something on every other tab of operations."""
    lumos.schedules.add("nightly", "0 2 * * *", "ingest", timezone="Europe/Berlin")
    lumos.schedules.add("costs", "30 5 1 * *", "cost-record")
    lumos.annotations.schedules.set(f"{LAKE}/raw/orders", "0 4 * * *", lag="45m")
    lumos.annotations.schedules.set(f"{LAKE}/marts/revenue", "0 6 * * *")
    lumos.releases.notify("2026.11")
    for kind, error in (("cost-record", None), ("ingest", "s3://shop-lake: access denied")):
        job = lumos.jobs.submit(kind, priority=9)
        leased = store.jobs.claim("worker-1", lease=timedelta(minutes=5), id=job.id)
        assert leased is not None
        lines = [f"Step 1: {kind}"]
        if error is None:
            store.jobs.succeed(job.id, leased.token, {}, lines=lines)
        else:
            store.jobs.fail(job.id, leased.token, error, retry_after=None, lines=lines)
    lumos.jobs.submit("cost-record")
    scan = lumos.jobs.submit("ingest", priority=9)
    leased = store.jobs.claim("worker-1", lease=timedelta(minutes=5), id=scan.id)
    assert leased is not None
    unread = {
        "path": f"{ROOT}/raw/orders/dt=2026-10-02/part-0007.parquet",
        "reason": "not a Parquet file: the last four bytes are not PAR1",
    }
    store.jobs.succeed(scan.id, leased.token, {"problems": [unread]}, lines=["Step 1: ingest"])
    broken = finding(
        dataset="orders", path="discount", before="DECIMAL(9,2)", affected="revenue",
        owners=("finance",), reason="needs discount", clause="sum(amount_eur - discount)",
        message="orders.discount was removed and breaks revenue (finance): needs discount",
        used=GateLocation(file="models/revenue.sql", line=6), trail=(),
        declared=GateLocation(file="schemas/orders.schema"),
    )  # fmt: skip
    approved = msgspec.structs.replace(broken, waived_by="ann")
    breaking = "This changes 1 schema, affecting 3 downstream datasets; 1 breaking change"
    waived = "This changes 1 schema, affecting 3 downstream datasets; 1 change approved"
    lumos.gate_results.record(report(broken, headline=breaking), repository="shop/models", pr=311)
    lumos.gate_results.record(report(approved, headline=waived), repository="shop/models", pr=318)
    if hostile:
        lumos.gate_results.record(hostile_report(), repository=HOSTILE[0], pr=1)
    with store.transaction() as transaction:
        transaction.catalog_outbox.subscribe("datahub", at=at)
        transaction.catalog_outbox.subscribe("openmetadata", at=at)
    published = {
        kind: store.catalog_outbox.pending("datahub", kind, after=None, limit=1000)
        for kind in store.catalog_outbox.counts("datahub")
    }
    with store.transaction() as transaction:
        for kind, entries in published.items():
            transaction.catalog_outbox.mark_published("datahub", kind, entries)
        conflicts = {
            f"{LAKE}/raw/orders": (
                CatalogValues(
                    path="documentation.description",
                    theirs="Orders of the web shop. Ask #checkout before you use it.",
                    ours="Orders as the checkout writes them, one row per order.",
                ),
                CatalogValues(path="documentation.domain", theirs="Checkout", ours="sales"),
            ),
            f"{LAKE}/marts/revenue": (
                CatalogValues(path="properties.sla", theirs="07:00 UTC", ours="06:00 UTC"),
            ),
        }
        for name in ("datahub", "openmetadata"):
            found = conflicts if name == "datahub" else {}
            transaction.catalog_outbox.save_conflicts(name, "datasets", found, at=at)


def _schema(path: str) -> str:
    return next(each[-1] for each in DATASETS if each[0] == path)


def _record_history(store: Store, at: datetime) -> None:
    for number, (path, *_, schema) in enumerate(DATASETS):
        first = at - timedelta(days=70 - number)
        lines = schema.splitlines(keepends=True)
        _record(
            store,
            path,
            "".join(lines[:-1])
            if number % 3 == 0 and "PARTITION" not in schema
            else schema.replace("INT64", "INT32"),
            first,
        )
        if number % 3 == 0 or "INT64" in schema:
            _record(store, path, schema, at - timedelta(days=20 - number))


def _record(store: Store, path: str, schema: str, at: datetime) -> None:
    size, rows = next(((each[4], each[5]) for each in DATASETS if each[0] == path), (1, 1))
    urn = (
        Urn.parse(f"{LAKE}/{path}")
        if path.isascii() and "<" not in path and " " not in path
        else Urn(platform="s3", path=("shop-lake", *path.split("/", 1)))
    )
    parsed = parse_schema(schema)
    count = rows * 1_000_000
    columns = {
        field.name: ColumnStatistics(
            null_count=0 if not field.nullable else count * ((7 * position) % 23) // 100,
            compressed_bytes=size * GB // (position + 2),
        )
        for position, field in enumerate(parsed.fields)
    }
    drift = (
        DriftedShape(shape="0" * 8, file_count=214, examples=(f"s3://shop-lake/{path}/dt=2026-10-02/part-0001.parquet",),
                     differences=("user_id INT64 -> STRING",), first_seen=at - timedelta(days=30), last_seen=at),
    ) if path == "raw/user_clicks" else ()  # fmt: skip
    partitioned = "PARTITION" in schema
    found = FoundDataset(
        path=f"s3://shop-lake/{path}",
        format="parquet",
        location=Location(uri=f"s3://shop-lake/{path}", partitioning="hive" if partitioned else None,
                          partition_keys=("dt",) if partitioned else ()),
        schema=parsed,
        statistics=Statistics(file_count=max(1, size // 2), total_size_bytes=size * GB, row_count=count,
                              row_count_exact=True, last_modified=at, columns=columns),
        drift=drift,
        content=f"{at.isoformat()}",
    )  # fmt: skip
    recorder = DatasetRecorder(store, source=SOURCE, prefix="S-", urn_of=lambda _: urn, at=at)
    for _outcome in recorder.record([(urn, found)]):
        pass


def _profile(store: Store, at: datetime) -> None:
    """What a profile of orders would measure; e-mail addresses are private."""
    rows = 812_000_000
    columns = {
        "order_id": ColumnProfile(distinct=rows, minimum="1", maximum=str(rows), quantiles={
            str(rank): str(int(rank * rows)) for rank in (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)}),
        "amount": ColumnProfile(nulls=rows // 90, distinct=91_200, minimum="0.00", maximum="480.00", mean="61.20",
                                quantiles={"0.01": "3.90", "0.05": "8.10", "0.25": "24.50", "0.5": "48.00",
                                           "0.75": "81.00", "0.95": "170.00", "0.99": "320.00"}),
        "currency": ColumnProfile(distinct=4, top=(
            ValueCount(value="EUR", count=rows // 2), ValueCount(value="USD", count=rows // 3),
            ValueCount(value="GBP", count=rows // 9), ValueCount(value="CHF", count=rows // 30))),
        "customer_id": ColumnProfile(nulls=rows // 12, distinct=61_000_000),
    }  # fmt: skip
    profile = Profile(measured_at=at - timedelta(hours=9), rows=rows, files=1_550, columns=columns)
    store.transact(
        lambda transaction: transaction.save_aspect(
            f"{LAKE}/raw/orders", "quality", Quality(profile=profile), writer="profile", at=at
        )
    )


def _write_manifest(state_uri: str, at: datetime) -> str:
    """The state of a scan with a file of clicks for each day but three."""
    schema = parse_schema(_schema("raw/user_clicks"))
    days = [at - timedelta(days=back) for back in range(220, 0, -1) if back not in (17, 18, 90)]
    rows = [
        FileRow(
            path=f"{ROOT}/raw/user_clicks/dt={day:%Y-%m-%d}/part-0.parquet",
            size=(300 + (day.toordinal() * 37) % 90 - 110 * (day.weekday() > 4)) * GB // 10,
            modified=int(day.timestamp()) * 1_000_000,
            etag=f"{day:%j}",
            format="parquet",
            schema_fingerprint=schema.full,
            row_count=(160 + (day.toordinal() * 37) % 60 - 70 * (day.weekday() > 4)) * 1_000_000,
            row_count_exact=True,
        )
        for day in days
    ]
    manifests = ManifestStore(state_folder(state_uri, SOURCE))
    part = write_part(
        manifests.parts, rows, summarise(rows, root=ROOT), (), access=manifests.access
    )
    manifest = ScanManifest(parts=[part], schemas={schema.full: to_json(schema)})
    manifests.write("shop.manifest", manifest)
    return "shop.manifest"


def _annotate(lumos: Lumos) -> None:
    teams = dict.fromkeys(each[1] for each in DATASETS if each[1])
    for team in teams:
        lumos.annotations.owners.add(team, group=True, email=f"{team}@shop.example")
    for path, owner, domain, description, *_ in DATASETS:
        urn = f"{LAKE}/{path}"
        if owner:
            lumos.annotations.owners.assign(owner, urn)
        lumos.annotations.docs.set(urn, description, domain=domain)
    lumos.annotations.tags.set(f"{LAKE}/raw/customers", "pii", fields=["email", "name"])
    lumos.annotations.tags.set(f"{LAKE}/raw/customers", "gold")
    lumos.annotations.tags.set(f"{LAKE}/marts/revenue", "gold")
    lumos.annotations.tags.set(f"{LAKE}/marts/legacy_funnel", "deprecated")
    lumos.annotations.compliance.set(f"{LAKE}/raw/customers", "gdpr")
    lumos.annotations.docs.set(
        f"{LAKE}/marts/revenue", "Before discounts, with tax.", fields=["gross"]
    )
    lumos.annotations.terms.define("Revenue", definition="What customers paid, without tax.")
    lumos.annotations.terms.set(f"{LAKE}/marts/revenue", "Revenue", fields=["net"])


def _lineage(lumos: Lumos, folder: Path) -> None:
    models = folder / "models"
    models.mkdir()
    for name, (owner, sql) in MODELS.items():
        (models / f"{name}.sql").write_text(f"-- Owner: {owner}\n{sql}")
    lumos.lineage.ingest(models)


def _usage(lumos: Lumos, folder: Path, at: datetime) -> None:
    lines = ["QUERY_ID,QUERY_TEXT,START_TIME,USER_NAME,EXECUTION_STATUS"]
    lines += [
        f"{number},{text},{when:%Y-%m-%d %H:%M:%S},{who},SUCCESS"
        for number, (text, when, who) in enumerate(_queries(at))
    ]
    (folder / "queries.csv").write_text("\n".join(lines) + "\n")
    lumos.usage.ingest(folder / "queries.csv", name="warehouse")


def _queries(at: datetime) -> Iterator[tuple[str, datetime, str]]:
    statements = (
        ("SELECT gross FROM revenue", "DASHBOARD", 9), ("SELECT net FROM revenue", "ANN", 2),
        ("SELECT amount FROM orders", "ETL", 6), ("SELECT order_id FROM orders", "BEN", 1),
        ("SELECT user_id FROM user_clicks", "ETL", 12), ("SELECT score FROM churn_scores", "CRM", 4),
        ("SELECT email FROM customers", "CRM", 3), ("SELECT visits FROM daily_kpis", "WALL", 24),
    )  # fmt: skip
    for back in range(60, 0, -1):
        for text, who, times in statements:
            for turn in range(
                max(1, times * (1 if (at - timedelta(days=back)).weekday() < 5 else 0))
            ):
                yield text, at - timedelta(days=back, minutes=turn * 11), who


def _cost(lumos: Lumos, folder: Path, at: datetime) -> None:
    lines = ["dataset,started_at,ended_at,engine,quantity,unit"]
    for back in range(95, 0, -1):
        start = (at - timedelta(days=back)).replace(hour=3, minute=0, second=0)
        growth = 1 + (95 - back) / 400
        for path, *_, hours, _schema_text in DATASETS:
            end = start + timedelta(hours=1)
            lines.append(
                f"{LAKE}/{path},{start.isoformat()},{end.isoformat()},spark,{hours * growth:.1f},core_hour"
            )
    (folder / "core_hours.csv").write_text("\n".join(lines) + "\n")
    lumos.cost_sources.ingest(folder / "core_hours.csv")
    first = at.replace(day=1)
    for _ in range(2):
        first = (first - timedelta(days=1)).replace(day=1)
        lumos.cost.record(f"{first:%Y-%m}")
