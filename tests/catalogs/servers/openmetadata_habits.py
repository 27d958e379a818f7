"""Whoever calls OpenMetadata in tests of its habits, the stub or a real server."""

from typing import Any
from urllib.parse import quote

import httpx

SCHEMA = "svc.db.raw"
FIELDS = "tags,owners,domains,extension,columns"


class People:
    """Whoever calls: a bot, as Lumos does, and somebody in the web interface."""

    def __init__(self, address: str, *, bot: str, human: str) -> None:
        self.bot, self.human, self.stranger = (
            httpx.Client(
                base_url=f"{address}/api/v1/",
                headers={"Authorization": f"Bearer {token}"} if token else {},
                # Plain HTTP: no time is spent on certificates.
                verify=False,
            )
            for token in (bot, human, None)
        )
        self.put("services/databaseServices", {"name": "svc", "serviceType": "CustomDatabase"})
        self.put("databases", {"name": "db", "service": "svc"})
        self.put("databaseSchemas", {"name": "raw", "database": "svc.db"})
        self.put("users", {"name": "ann", "email": "ann@x.org"})
        self.put("classifications", {"name": "Lumos", "description": "-"})
        for tag in ("a", "b.c"):
            self.put("tags", {"classification": "Lumos", "name": tag, "description": "-"})

    def close(self) -> None:
        for client in (self.bot, self.human, self.stranger):
            client.close()

    def put(self, route: str, body: Any, *, by: str = "bot", status: int | None = None) -> Any:
        answer = getattr(self, by).put(route, json=body)
        expected = (200, 201) if status is None else (status,)
        assert answer.status_code in expected, answer.text
        return answer.json() if answer.content else None

    def table(
        self, name: str = "t", *, by: str = "bot", status: int | None = None, **said: Any
    ) -> Any:
        body = {"name": name, "databaseSchema": SCHEMA, "columns": columns("x", "y"), **said}
        return self.put("tables", body, by=by, status=status)

    def get(self, route: str, fqn: str, status: int = 200, **query: Any) -> Any:
        answer = self.bot.get(f"{route}/name/{quote(fqn, safe='')}", params=query)
        assert answer.status_code == status, answer.text
        return answer.json()

    def whole(self, name: str = "t") -> Any:
        return self.get("tables", f"{SCHEMA}.{name}", fields=FIELDS, include="all")

    def patch(self, path: str, *operations: Any, by: str = "bot", status: int = 200) -> Any:
        answer = getattr(self, by).patch(
            path,
            content=httpx.Request("PATCH", "http://x", json=list(operations)).content,
            headers={"Content-Type": "application/json-patch+json"},
        )
        assert answer.status_code == status, answer.text
        return answer.json()

    def change(self, name: str, *operations: Any, **how: Any) -> Any:
        return self.patch(f"tables/{self.whole(name)['id']}", *operations, **how)

    def declare(self, *names: str) -> None:
        table, string = (
            self.bot.get(f"metadata/types/name/{name}").json()["id"] for name in ("table", "string")
        )
        for name in names:
            said = {
                "name": name,
                "description": "-",
                "propertyType": {"id": string, "type": "type"},
            }
            self.put(f"metadata/types/{table}", said)

    def edge(self, source: Any, target: Any, *mapped: tuple[str, str]) -> dict[str, Any]:
        details = [
            {
                "fromColumns": [f"{source['fullyQualifiedName']}.{one}"],
                "toColumn": f"{target['fullyQualifiedName']}.{other}",
            }
            for one, other in mapped
        ]
        return {
            "edge": {
                "fromEntity": {"id": source["id"], "type": "table"},
                "toEntity": {"id": target["id"], "type": "table"},
                "lineageDetails": {"columnsLineage": details},
            }
        }

    def upstream(self, table: Any) -> list[tuple[str, list[str]]]:
        answer = self.bot.get(f"lineage/table/{table['id']}", params={"downstreamDepth": 0}).json()
        return [
            (edge["fromEntity"], [each["toColumn"] for each in edge["lineageDetails"]["columnsLineage"]])
            for edge in answer["upstreamEdges"]
        ]  # fmt: skip


def columns(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "dataType": "INT"} for name in names]


def label(fqn: str, source: str = "Classification") -> dict[str, str]:
    return {"tagFQN": fqn, "source": source, "labelType": "Manual", "state": "Confirmed"}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}
