"""A store with something of every kind, made without Spark, and its server."""

from pathlib import Path
from typing import Any, cast

from litestar.testing import TestClient

from lumos import Lumos
from lumos.http.client import HttpClient, HttpRequest, HttpResponse
from lumos.server.app import ApiServer, ServerOptions
from lumos.server.client import RemoteLumos
from schema_histories import day, record

LAKE = "lumos://file/lake"
CONFIG = """
storage: {path: store.db}
usage: {retention_days: 3650}
documentation: {required_fields: [description]}
cost_model:
  storage: {file: {cost_per_gb_month: 1000}}
  compute: {emr: {cost_per_instance_hour: 0.5}}
notifications:
  channels: {nobody: "json://127.0.0.1:1"}
"""
LOG = (
    "QUERY_ID,QUERY_TEXT,START_TIME,USER_NAME,EXECUTION_STATUS\n"
    "1,SELECT amount FROM orders,2024-01-05 10:00:00,ANN,SUCCESS\n"
)
SQL = "-- Owner: sales-team\nselect country, sum(amount) as total from orders group by country\n"
OPTIONS = ServerOptions(
    open_loopback=True,
    max_request_bytes=1_000_000,
    request_seconds=30,
    requests_per_minute=1_000_000,
    event_streams=10,
)


def fill(folder: Path) -> Lumos:
    """Lumos in a folder with two datasets and their history, lineage, owners, usage and costs."""
    (folder / "lumos.yaml").write_text(CONFIG)
    (folder / "log.csv").write_text(LOG)
    (folder / "models").mkdir()
    (folder / "models/totals.sql").write_text(SQL)
    (folder / "proposed.schema").write_text("id INT64\ncountry STRING\n")
    (folder / "enrich.yaml").write_text(
        "datasets:\n  - dataset: orders\n    description: Every order\n"
    )
    lumos = Lumos(folder / "lumos.yaml")
    store = lumos.create_store()
    orders, tickets = f"{LAKE}/orders", f"{LAKE}/tickets"
    record(store, orders, "id INT64\namount INT32\n", day("2024-01-01"))
    record(store, orders, "id INT64\namount DECIMAL(9,2)\ncountry STRING\n", day("2024-01-02"))
    record(store, tickets, "id INT64\nmeta STRUCT<priority: INT32>\n", day("2024-01-03"))
    lumos.lineage.ingest(folder / "models")
    lumos.lineage.add("orders", "tickets", columns={"id": "id"})
    lumos.annotations.owners.add("bob")
    lumos.annotations.owners.assign("bob", "orders")
    lumos.annotations.tags.set("orders", "pii", fields=["country"])
    lumos.annotations.compliance.set("orders", "gdpr")
    lumos.annotations.docs.set("orders", "Orders", domain="sales")
    lumos.annotations.properties.set("orders", {"sla": "1h"})
    lumos.annotations.terms.define("Order", definition="What is bought")
    lumos.annotations.terms.set("orders", "Order")
    lumos.usage.ingest(folder / "log.csv", name="kept")
    lumos.cost_sources.set("orders", {"compute": "7"})
    lumos.cost.record("2024-01")
    lumos.schema.diff("orders@1.0.0", "orders", output=folder / "changes.json")
    return lumos


def client_of(lumos: Lumos, *, address: str = "127.0.0.1", **options: Any) -> "TestClient[Any]":
    """A client at an address of an app in this process."""
    app = ApiServer(lumos, OPTIONS._replace(**options)).app()

    async def from_address(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "client": (address, 50_000)}, receive, send)

    return TestClient(from_address, base_url="http://127.0.0.1:8765", raise_server_exceptions=False)


class _InProcess:
    """A transport to an application in this process."""

    def __init__(self, client: "TestClient[Any]") -> None:
        self._client = client

    def exchange(self, request: HttpRequest) -> HttpResponse:
        method, url, headers, body, _ = request
        answer = self._client.request(method, url, headers=dict(headers), content=body)
        return HttpResponse(answer.status_code, dict(answer.headers), answer.content)

    def close(self) -> None:
        """Nothing to close."""


def remote_of(client: "TestClient[Any]") -> Lumos:
    """Lumos on a server in this process."""
    remote = RemoteLumos("http://127.0.0.1:8765")
    remote._http = HttpClient(_InProcess(client))
    return cast(Lumos, remote)
