"""A small shop in the store, and query logs about it."""

import csv
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lumos import Lumos
from lumos.model.schema import parse_schema
from lumos.store import KnownDataset, Store

NOW = datetime.now(UTC).replace(microsecond=0)
TABLES = {
    "sales/orders": "id INT64\ncustomer_id INT64\namount FLOAT64\nnote STRING",
    "sales/customers": "id INT64\nname STRING\nphone STRING",
    "sales/refunds": "id INT64\nreason STRING",
}


def urn(name: str) -> str:
    return f"lumos://snowflake/shop/{name}"


def shop(folder: Path, **overrides: object) -> Lumos:
    """Lumos with a store that knows three tables."""
    lumos = Lumos(environment={}, overrides={"storage.path": str(folder / "lumos.db"), **overrides})
    add(lumos, TABLES)
    return lumos


def add(lumos: Lumos, tables: dict[str, str]) -> None:
    store = Store.open(lumos.database, create=True)
    with store.transaction() as transaction:
        for name, schema in tables.items():
            hash = transaction.save_schema(parse_schema(schema))
            transaction.save(
                KnownDataset(
                    urn=urn(name), name=name.rpartition("/")[2], platform="snowflake", format="table",
                    source="snowflake", state="live", cloud_version="S-1", schema_version="1.0.0",
                    schema_hash=hash, fingerprint="f" * 32, content="1", created_at=NOW,
                    updated_at=NOW,
                )
            )  # fmt: skip


def row(id: int, statement: str, *, user: str = "ANN", days_ago: float = 1, **facts: Any) -> dict[str, Any]:  # fmt: skip
    return {
        "QUERY_ID": f"q{id}", "QUERY_TEXT": statement, "DATABASE_NAME": "SHOP",
        "SCHEMA_NAME": "SALES", "USER_NAME": user,
        "START_TIME": (NOW - timedelta(days=days_ago)).isoformat(), "EXECUTION_STATUS": "SUCCESS",
        "BYTES_SCANNED": 100, "ROWS_PRODUCED": 5, **facts,
    }  # fmt: skip


def write_log(file: Path, rows: Iterable[dict[str, Any]]) -> Path:
    rows = list(rows)
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return file
