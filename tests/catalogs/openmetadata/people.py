"""A stub of OpenMetadata with somebody at work in it, for tests of what people do beside Lumos."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from catalogs.servers.http import Request, Server
from catalogs.servers.openmetadata import BOT, HUMAN
from catalogs.servers.openmetadata import Openmetadata as Stub
from lumos.catalogs.openmetadata.platform import Openmetadata
from lumos.config.platforms import OpenmetadataPlatform
from lumos.config.secret import Secret
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64

ORDERS = "lumos://postgres/shop/public/orders"
SOURCE = "lumos://postgres/shop/public/source"
OTHER = "lumos://postgres/shop/public/other"
FQN = "postgres.shop.public.orders"


class Estate:
    """A server, and what somebody does in it meanwhile."""

    def __init__(self, stub: Stub, server: Server) -> None:
        self.stub = stub
        self.server = server

    def catalog(self, **settings: Any) -> Openmetadata:
        return Openmetadata(
            OpenmetadataPlatform(server=self.server.address, auth_token=Secret(BOT), **settings)
        )

    def now(self, urn: str = ORDERS) -> CatalogEntry:
        found = self.catalog().get(urn)
        assert found is not None
        return found

    def human(self, method: str, path: str, body: Any = None, *, type: str = "json") -> Any:
        """Somebody works in the catalog's own pages."""
        headers = {"Authorization": f"Bearer {HUMAN}", "Content-Type": f"application/{type}"}
        content = b"" if body is None else json.dumps(body).encode()
        answer = self.stub(Request(0, method, f"/api/v1/{path}", headers, content))
        assert answer.status < 300, answer.body
        return json.loads(answer.body) if answer.body else None

    def raw(self, fqn: str = FQN) -> Any:
        fields = "columns,tags,owners,domains,extension,schemaDefinition"
        return self.human("GET", f"tables/name/{fqn}?include=all&fields={fields}")

    def named(self, route: str, fqn: str, fields: str = "") -> Any:
        """Anything by its qualified name."""
        asked = f"&fields={fields}" if fields else ""
        return self.human("GET", f"{route}/name/{quote(fqn, safe='')}?include=all{asked}")

    def change(self, route: str, fqn: str, **fields: Any) -> None:
        """Somebody says something else of anything."""
        operations = [{"op": "add", "path": f"/{key}", "value": fields[key]} for key in fields]
        id = self.named(route, fqn)["id"]
        self.human("PATCH", f"{route}/{id}", operations, type="json-patch+json")

    def edit(self, *operations: dict[str, Any], fqn: str = FQN) -> None:
        id = self.raw(fqn)["id"]
        self.human("PATCH", f"tables/{id}", list(operations), type="json-patch+json")

    def describe(self, text: str) -> None:
        self.edit({"op": "add", "path": "/description", "value": text})

    def tag(self, name: str, path: str = "/tags/-") -> None:
        """Somebody puts a tag on a dataset or on a column."""
        self.human("PUT", "classifications", {"name": "People", "description": ""})
        self.human("PUT", "tags", {"name": name, "classification": "People", "description": ""})
        label = {"tagFQN": f"People.{name}", "source": "Classification", "labelType": "Manual",
                 "state": "Confirmed"}  # fmt: skip
        self.edit({"op": "add", "path": path, "value": label})

    def edges(self, fqn: str = FQN) -> dict[str, set[tuple[str, str]]]:
        """The edges that lead to a table, with their columns."""
        told = self.human(
            "GET", f"lineage/table/{self.raw(fqn)['id']}?upstreamDepth=1&downstreamDepth=0"
        )
        names = {node["id"]: node["name"] for node in told["nodes"]}
        return {
            names[edge["fromEntity"]]: {
                (start.rpartition(".")[2], line["toColumn"].rpartition(".")[2])
                for line in edge["lineageDetails"]["columnsLineage"]
                for start in line["fromColumns"]
            }
            for edge in told["upstreamEdges"]
        }

    def draw(self, start: str, *pairs: tuple[str, str]) -> None:
        """Somebody draws an edge to the orders."""
        ends = [
            {"id": self.raw(fqn)["id"], "type": "table"}
            for fqn in (f"postgres.shop.public.{start}", FQN)
        ]
        lines = [
            {"fromColumns": [f"postgres.shop.public.{start}.{a}"], "toColumn": f"{FQN}.{b}"}
            for a, b in pairs
        ]
        details = {"source": "Manual", "columnsLineage": lines}
        edge = {"fromEntity": ends[0], "toEntity": ends[1], "lineageDetails": details}
        self.human("PUT", "lineage", {"edge": edge})

    def just_before(self, method: str, word: str, act: Callable[[], object]) -> None:
        """Somebody is faster than Lumos by one moment, once."""

        def once(request: Request) -> None:
            if request.method == method and word in request.path and once in self.server.before:
                self.server.before.remove(once)
                act()

        self.server.before.append(once)


def table(urn: str = ORDERS, *names: str, **aspects: Any) -> CatalogEntry:
    fields = tuple(Field(name=name, type=INT64) for name in names or ("id", "net"))
    return CatalogEntry(
        urn=urn, name=urn.rpartition("/")[2], platform="postgres",
        **{"schema": Schema(fields=fields), **aspects},
    )  # fmt: skip


def described(text: str | None, **aspects: Any) -> CatalogEntry:
    return table(documentation=Documentation(description=text), **aspects)
