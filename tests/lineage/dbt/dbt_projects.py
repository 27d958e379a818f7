"""A small dbt project, written as dbt leaves it in its target folder."""

import json
from pathlib import Path
from typing import Any

SCHEMA = "https://schemas.getdbt.com/dbt/manifest/v12.json"


def node(name: str, kind: str = "model", **more: Any) -> dict[str, Any]:
    schema = {"source": "raw", "seed": "seeds"}.get(kind, "analytics")
    materialized = more.pop("materialized", "table")
    return {
        "unique_id": f"{kind}.shop.{name}",
        "resource_type": kind,
        "package_name": "shop",
        "name": name,
        "alias": name,
        "database": "shop",
        "schema": schema,
        "relation_name": f'"shop"."{schema}"."{name}"',
        "original_file_path": f"models/{name}.sql",
        "language": "sql",
        "description": "",
        "columns": {},
        "tags": [],
        "meta": {},
        "config": {"materialized": materialized, "enabled": True, "meta": {}},
        "depends_on": {"nodes": [], "macros": []},
        **more,
    }


ORDERS_SOURCE = node(
    "orders",
    "source",
    source_name="raw",
    identifier="orders",
    description="Orders as the shop writes them",
    columns={
        "id": {"name": "id", "description": "The key", "data_type": "bigint", "tags": ["key"]}
    },
) | {"unique_id": "source.shop.raw.orders"}

STAGED = node(
    "stg_orders",
    materialized="ephemeral",
    relation_name=None,
    raw_code="select * from {{ source('raw', 'orders') }}",
    compiled_code='select * from "shop"."raw"."orders"',
    depends_on={"nodes": ["source.shop.raw.orders"]},
)
ORDERS = node(
    "orders",
    description="One row for each order",
    tags=["tier-1"],
    meta={"owner": "sales-team", "sla": "daily by 6am UTC"},
    raw_code="select id, amount from {{ ref('stg_orders') }}\nwhere country = 'DE'",
    compiled_code=(
        'with __dbt__cte__stg_orders as (select * from "shop"."raw"."orders")\n'
        "select id, amount from __dbt__cte__stg_orders where country = 'DE'"
    ),
    depends_on={"nodes": ["model.shop.stg_orders"]},
    columns={
        "amount": {
            "name": "amount",
            "description": "In euros",
            "tags": [],
            "config": {"tags": ["money"]},
        }
    },
)
TOTALS = node(
    "totals",
    materialized="view",
    group="finance",
    raw_code="-- Totals of all customers\n-- SLA: hourly\nselect sum(amount) as total from {{ ref('orders') }}",
    compiled_code='-- Totals of all customers\n-- SLA: hourly\nselect sum(amount) as total from "shop"."analytics"."orders"',
    depends_on={"nodes": ["model.shop.orders", "seed.shop.rates"]},
)
RATES = node("rates", "seed", materialized="seed")
DASHBOARD = {
    "name": "weekly",
    "resource_type": "exposure",
    "package_name": "shop",
    "type": "dashboard",
    "owner": {"name": "Jane", "email": "jane@example.com"},
    "depends_on": {"nodes": ["model.shop.totals"]},
}
TEST = node("not_null_orders_id", "test", depends_on={"nodes": ["model.shop.orders"]})


def manifest(**changes: Any) -> dict[str, Any]:
    nodes = (STAGED, ORDERS, TOTALS, RATES, TEST)
    return {
        "metadata": {
            "dbt_schema_version": SCHEMA,
            "project_name": "shop",
            "adapter_type": "postgres",
            "generated_at": "2024-01-15T05:00:00.123456Z",
        },
        "nodes": {each["unique_id"]: each for each in nodes},
        "sources": {ORDERS_SOURCE["unique_id"]: ORDERS_SOURCE},
        "exposures": {"exposure.shop.weekly": DASHBOARD},
        "groups": {
            "group.shop.finance": {"name": "finance", "owner": {"email": "finance@example.com"}}
        },
        "macros": {},
        **changes,
    }


CATALOG = {
    "nodes": {},
    "sources": {
        "source.shop.raw.orders": {
            "metadata": {"type": "BASE TABLE", "schema": "raw", "name": "orders"},
            "columns": {
                "country": {
                    "type": "text",
                    "index": 3,
                    "name": "country",
                    "comment": "Two letters",
                },
                "id": {"type": "bigint", "index": 1, "name": "id", "comment": None},
                "amount": {"type": "numeric", "index": 2, "name": "amount", "comment": None},
            },
        }
    },
}

RUN_RESULTS = {
    "metadata": {"invocation_id": "inv-1", "generated_at": "2024-01-15T05:10:00Z"},
    "results": [
        {
            "unique_id": "model.shop.orders",
            "status": "success",
            "timing": [
                {
                    "name": "compile",
                    "started_at": "2024-01-15T05:01:00Z",
                    "completed_at": "2024-01-15T05:01:01Z",
                },
                {
                    "name": "execute",
                    "started_at": "2024-01-15T05:01:02Z",
                    "completed_at": "2024-01-15T05:03:00Z",
                },
            ],
        },
        {
            "unique_id": "model.shop.totals",
            "status": "error",
            "timing": [],
            "message": "no such column",
        },
        {"unique_id": "seed.shop.rates", "status": "skipped", "timing": []},
        {"unique_id": "test.shop.not_null_orders_id", "status": "pass", "timing": []},
    ],
}


def write_project(
    folder: Path,
    *,
    manifest: dict[str, Any],
    catalog: dict[str, Any] | None = CATALOG,
    run_results: dict[str, Any] | None = RUN_RESULTS,
) -> Path:
    """Writes artefacts to a folder; gives the manifest's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("manifest", manifest),
        ("catalog", catalog),
        ("run_results", run_results),
    ):
        if content is not None:
            (folder / f"{name}.json").write_text(json.dumps(content))
    return folder / "manifest.json"
