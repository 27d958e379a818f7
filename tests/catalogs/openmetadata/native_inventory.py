"""An estate as people made it in OpenMetadata, with one of everything that is no dataset.

Made by plain HTTP, as somebody who never heard of Lumos would; the same on the stub and on a real
server.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

Call = Callable[[str, str, Any], Any]
"""Method, path below /api/v1/ and body; what was answered."""


def _label(fqn: str, source: str = "Classification") -> dict[str, Any]:
    return {"tagFQN": fqn, "source": source, "labelType": "Manual", "state": "Confirmed"}


GOLD = _label("Importance.Gold")
NET = _label("Business.Order.Net", "Glossary")
SERVICES = {
    "databaseServices": ("pg", "Postgres"),
    "storageServices": ("lake", "S3"),
    "messagingServices": ("bus", "Kafka"),
    "pipelineServices": ("flows", "Airflow"),
    "dashboardServices": ("boards", "Looker"),
    "mlmodelServices": ("models", "Mlflow"),
    "searchServices": ("elastic", "ElasticSearch"),
    "apiServices": ("doors", "Rest"),
}


class Native:
    """Makes the estate."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def put(self, route: str, **body: Any) -> Any:
        return self._call("PUT", route, body)

    def make(self) -> None:
        for type in ("table", "dashboard", "glossaryTerm", "databaseSchema"):
            self._declare(type, "costCentre", "string")
            self._declare(type, "age", "integer")
        self._words()
        self._services()
        self._datasets()
        self._pictures()
        self._flows()
        self._rest()
        self._edges()

    def _declare(self, type: str, name: str, kind: str) -> None:
        id = self._call("GET", f"metadata/types/name/{type}", None)["id"]
        property_type = {
            "id": self._call("GET", f"metadata/types/name/{kind}", None)["id"],
            "type": "type",
        }
        body = {"name": name, "description": f"Our {name}", "propertyType": property_type}
        self._call("PUT", f"metadata/types/{id}", body)

    def _words(self) -> None:
        users = [
            self.put("users", name=name, email=f"{name}@example.com", displayName=name.title())
            for name in ("ann", "bob")
        ]
        self.team = self.put(
            "teams", name="lakers", teamType="Group", displayName="Lake team",
            description="Keeps the lake", users=[users[0]["id"]],
        )  # fmt: skip
        self.ann = {"id": users[0]["id"], "type": "user"}
        self.bob = {"id": users[1]["id"], "type": "user"}
        owners = [{"id": self.team["id"], "type": "team"}]
        self.put(
            "domains", name="Sales", displayName="All sales", domainType="Consumer-aligned",
            description="All of <b>sales</b> & more", owners=owners,
        )  # fmt: skip
        self.put(
            "domains", name="Net.Sales", parent="Sales", domainType="Source-aligned",
            description="Without tax", owners=[self.ann], experts=["bob"],
        )  # fmt: skip
        self.put(
            "classifications", name="Importance", displayName="How important",
            description="What to look at first", mutuallyExclusive=True,
        )  # fmt: skip
        self.put("classifications", name="Plain", description="")
        self.put(
            "tags", name="Gold", classification="Importance", displayName="Pure gold",
            description="Wakes people at night", style={"color": "#FFD700"},
        )  # fmt: skip
        self.put("tags", name="White", classification="Importance", parent="Importance.Gold",
                 description="White gold")  # fmt: skip
        self.put(
            "glossaries", name="Business", displayName="Of the house", description="Our words",
            owners=[self.ann], tags=[GOLD], reviewers=[self.bob],
        )  # fmt: skip
        self.put(
            "glossaryTerms", name="Order", glossary="Business", description="What was asked for",
            synonyms=["purchase", "buy"], tags=[GOLD], owners=[self.bob], displayName="An order",
            references=[{"name": "wiki", "endpoint": "https://wiki.example.com/order"}],
            style={"color": "#FF0000"}, extension={"costCentre": "42", "age": 7},
        )  # fmt: skip
        self.put(
            "glossaryTerms", name="Net", glossary="Business", parent="Business.Order",
            description="Without tax",
        )  # fmt: skip
        self.put(
            "glossaryTerms", name="Tax", glossary="Business", description="What the state takes",
            relatedTerms=["Business.Order.Net"],
        )  # fmt: skip
        self.put(
            "dataProducts", name="Revenue", domains=["Sales"], displayName="Our revenue",
            description="All that we earn", owners=[self.ann], tags=[GOLD], experts=["ann"],
        )  # fmt: skip
        self.common = {
            "owners": [self.ann],
            "domains": ["Sales"],
            "tags": [GOLD, NET],
            "dataProducts": ["Revenue"],
        }

    def _services(self) -> None:
        for route, (name, type) in SERVICES.items():
            self.put(
                f"services/{route}", name=name, serviceType=type, displayName=f"Our {name}",
                description=f"Where {name} is", owners=[self.bob], domains=["Sales"], tags=[GOLD],
            )  # fmt: skip
        self.put(
            "databases", name="shop", service="pg", displayName="The shop", description="All of it",
            retentionPeriod="P1Y", sourceUrl="https://db.example.com/shop", owners=[self.ann],
            tags=[GOLD],
        )  # fmt: skip
        self.put(
            "databaseSchemas", name="public", database="pg.shop", displayName="For all",
            description="What everybody may see", owners=[self.bob], tags=[NET],
            extension={"costCentre": "42", "age": 7},
        )  # fmt: skip
        # Of these, nothing is said.
        self.put("services/databaseServices", name="bare", serviceType="Mysql")
        self.put("databases", name="default", service="bare")

    def _datasets(self) -> None:
        columns = [
            {"name": "Id", "displayName": "Nr", "dataType": "INT", "description": "d", "tags": [GOLD]},
            {"name": "x", "dataType": "TIMESTAMPZ"},
        ]  # fmt: skip
        self.tables = [
            self.put(
                "tables", name=name, displayName=f"Table {name}", databaseSchema="pg.shop.public",
                description=f"**{name}**", columns=columns, tableType="Partitioned",
                retentionPeriod="P30D", sourceUrl="https://x.example.com/y", **self.common,
                extension={"costCentre": "42", "age": 7},
            )
            for name in ("a", "b")
        ]  # fmt: skip
        self.bucket = self.put("containers", name="raw", service="lake", description="As it came")
        self.topic = self.put("topics", name="orders", service="bus", partitions=3)

    def _pictures(self) -> None:
        self.chart = self.put(
            "charts", name="by month", service="boards", chartType="Bar", displayName="By month",
            description="Bars", sourceUrl="https://boards.example.com/1", **self.common,
        )  # fmt: skip
        self.model = self.put(
            "dashboard/datamodels", name="orders.view", service="boards", dataModelType="LookMlView",
            sql="select 1", description="A view", project="shop", displayName="Orders",
            columns=[{"name": "n", "dataType": "INT", "description": "how many", "tags": [GOLD]}],
            **self.common,
        )  # fmt: skip
        self.dashboard = self.put(
            "dashboards", name="revenue", service="boards", displayName="Revenue now",
            description="For the board", dashboardType="Dashboard", project="shop",
            sourceUrl="https://boards.example.com/2", charts=["boards.by month"],
            dataModels=['boards.model."orders.view"'], **self.common,
            extension={"costCentre": "42", "age": 7},
        )  # fmt: skip

    def _flows(self) -> None:
        self.pipeline = self.put(
            "pipelines", name="load", service="flows", displayName="Load all", description="Nightly",
            scheduleInterval="0 1 * * *", concurrency=2, pipelineLocation="dags/load.py",
            startDate="2024-01-01T00:00:00Z", sourceUrl="https://flows.example.com/load",
            tasks=[
                {"name": "fetch", "displayName": "Fetch", "description": "Gets it",
                 "taskType": "Python", "downstreamTasks": ["store"], "tags": [GOLD]},
                {"name": "store", "taskSQL": "insert into a select 1"},
            ],
            **self.common,
        )  # fmt: skip

    def _rest(self) -> None:
        self.mlmodel = self.put(
            "mlmodels", name="churn", service="models", algorithm="Forest", displayName="Who leaves",
            description="Guesses", dashboard="boards.revenue", target="leaves",
            mlFeatures=[
                {"name": "age", "dataType": "numerical", "description": "in years", "tags": [GOLD],
                 "featureSources": [
                     {"name": "Id", "dataType": "integer",
                      "dataSource": {"id": self.tables[0]["id"], "type": "table"}}]},
            ],
            mlHyperParameters=[{"name": "depth", "value": "3", "description": "how deep"}],
            mlStore={"storage": "s3://models/churn", "imageRepository": "registry.example.com/churn"},
            server="https://models.example.com", **self.common,
        )  # fmt: skip
        self.index = self.put(
            "searchIndexes", name="items", service="elastic", displayName="Items",
            description="To be found",
            fields=[{"name": "title", "dataType": "TEXT", "description": "of an item",
                     "tags": [GOLD]}],
            **self.common,
        )  # fmt: skip
        self.collection = self.put(
            "apiCollections", name="v1", service="doors", displayName="First",
            endpointURL="https://api.example.com/v1", description="The old one", owners=[self.ann],
            domains=["Sales"], tags=[GOLD],
        )  # fmt: skip
        self.endpoint = self.put(
            "apiEndpoints", name="getOrder", apiCollection="doors.v1", displayName="One order",
            endpointURL="https://api.example.com/v1/order", requestMethod="GET",
            description="Gives an order",
            responseSchema={"schemaType": "JSON", "schemaFields": [
                {"name": "id", "dataType": "INT", "description": "its number", "tags": [GOLD]}]},
            **self.common,
        )  # fmt: skip
        self.procedure = self.put(
            "storedProcedures", name="tidy", databaseSchema="pg.shop.public", displayName="Tidy up",
            description="At night", owners=[self.bob], tags=[GOLD],
            storedProcedureCode={"language": "SQL", "code": "delete from a"},
        )  # fmt: skip
        table = {"id": self.tables[0]["id"], "type": "table"}
        self.query = self.put(
            "queries", name="top ten", service="pg", query="select * from a limit 10",
            displayName="Top 10", description="The ten best", owners=[self.ann], tags=[GOLD],
            duration=1.5, queryUsedIn=[table], users=["bob"],
        )  # fmt: skip

    def _edges(self) -> None:
        a, b = ((each, "table") for each in self.tables)
        grouped = {
            "fromColumns": ["pg.shop.public.a.Id", "pg.shop.public.a.x"],
            "toColumn": "pg.shop.public.b.Id",
            "function": "f",
        }
        self._edge(
            a, b, source="QueryLineage", sqlQuery="insert into b select 1", description="by hand",
            columnsLineage=[grouped], pipeline={"id": self.pipeline["id"], "type": "pipeline"},
        )  # fmt: skip
        self._edge(b, (self.model, "dashboardDataModel"), source="DashboardLineage")
        self._edge((self.model, "dashboardDataModel"), (self.dashboard, "dashboard"))
        self._edge((self.pipeline, "pipeline"), a, description="loads")
        self._edge((self.topic, "topic"), (self.index, "searchIndex"), sqlQuery="select 2")

    def _edge(self, start: tuple[Any, str], end: tuple[Any, str], **details: Any) -> None:
        ends = [{"id": entity["id"], "type": type} for entity, type in (start, end)]
        edge = {
            "fromEntity": ends[0],
            "toEntity": ends[1],
            "lineageDetails": {"source": "Manual", **details},
        }
        self._call("PUT", "lineage", {"edge": edge})


_FIELDS = "owners,tags,domains"
_PRODUCTS = f"{_FIELDS},dataProducts,extension"
# Every route with all that can be asked for, beside what no people said.
ROUTES = {
    **{f"services/{route}": _FIELDS for route in SERVICES},
    "databases": f"{_FIELDS},extension",
    "databaseSchemas": f"{_FIELDS},extension",
    "classifications": "",
    "tags": "",
    "domains": "owners,experts,tags,extension",
    "dataProducts": f"{_FIELDS},experts,extension",
    "glossaries": f"{_FIELDS},reviewers,extension",
    "glossaryTerms": f"{_FIELDS},reviewers,relatedTerms,extension",
    "users": "teams",
    "teams": "users,owners,domains",
    "tables": f"{_PRODUCTS},columns,tableConstraints,schemaDefinition",
    "containers": f"{_PRODUCTS},dataModel",
    "topics": _PRODUCTS,
    "charts": _PRODUCTS,
    "dashboard/datamodels": _PRODUCTS,
    "dashboards": f"{_PRODUCTS},charts,dataModels",
    "pipelines": f"{_PRODUCTS},tasks",
    "mlmodels": f"{_PRODUCTS},dashboard",
    "searchIndexes": _PRODUCTS,
    "apiCollections": f"{_FIELDS},extension",
    "apiEndpoints": _PRODUCTS,
    "storedProcedures": f"{_FIELDS},extension",
    "queries": "owners,tags,users,queryUsedIn",
}
_TYPES = {
    "tables": "table", "containers": "container", "topics": "topic", "charts": "chart",
    "dashboard/datamodels": "dashboardDataModel", "dashboards": "dashboard",
    "pipelines": "pipeline", "mlmodels": "mlmodel", "searchIndexes": "searchIndex",
    "apiEndpoints": "apiEndpoint", "storedProcedures": "storedProcedure",
}  # fmt: skip
# What differs between two servers, or changes by itself.
_PASSING = frozenset(
    {"id", "href", "version", "updatedAt", "updatedBy", "createdAt", "createdBy", "appliedBy",
     "appliedAt", "appliedDate", "changeDescription", "incrementalChangeDescription",
     "impersonatedBy", "usageSummary", "usageCount", "entityStatus", "checksum", "processedLineage"}
)  # fmt: skip


# Of edges that follow from something else nothing is told.
_NO_DETAILS = {"source": "Manual", "columnsLineage": []}


def told(call: Call) -> dict[str, Any]:
    """All that a server tells of what is no part of itself nor of Lumos's own."""
    found = {}
    for route, fields in ROUTES.items():
        listed = call("GET", f"{route}?limit=1000&include=all", None)["data"]
        for name in sorted(each["fullyQualifiedName"] for each in listed):
            path = f"{route}/name/{quote(name, safe='')}?include=all&fields={fields}"
            entity = call("GET", path, None)
            if name.partition(".")[0].lower() != "lumos" and not _is_built_in(entity):
                ids = {entity["id"]: name}
                found[f"{route} {name}"] = _lasting(entity, ids)
                if route in _TYPES:
                    found[f"edges to {route} {name}"] = _edges(call, _TYPES[route], entity)
    return found


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Where two servers do not tell the same."""
    return [
        f"{name}: {field}: {one.get(name, {}).get(field)!r} is {other.get(name, {}).get(field)!r}"
        for name in sorted(one.keys() | other.keys())
        for field in sorted(one.get(name, {}).keys() | other.get(name, {}).keys())
        if one.get(name, {}).get(field) != other.get(name, {}).get(field)
    ]


def _edges(call: Call, type: str, entity: Mapping[str, Any]) -> dict[str, Any]:
    path = f"lineage/{type}/{entity['id']}?upstreamDepth=1&downstreamDepth=0"
    answer = call("GET", path, None)
    names = {node["id"]: node["fullyQualifiedName"] for node in answer["nodes"]}
    return {
        names[edge["fromEntity"]]: _lasting(edge.get("lineageDetails") or _NO_DETAILS, names)
        for edge in answer["upstreamEdges"]
    }


def _is_built_in(entity: Mapping[str, Any]) -> bool:
    is_root = entity.get("teamType") == "Organization"
    is_first = entity.get("isBot") or entity.get("isAdmin")
    return bool(is_root or is_first or entity.get("provider") == "system")


def _lasting(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case {"id": _, "type": "table", **rest} if "fullyQualifiedName" not in rest:
            # By its identifier alone.
            return "a table"
        case dict():
            kept = {
                key: _lasting(each, names) for key, each in value.items() if key not in _PASSING
            }
            if "extension" in kept:
                own = {key: each for key, each in kept["extension"].items() if key[:5] != "lumos"}
                kept["extension"] = own
            return {key: each for key, each in kept.items() if each not in ({}, None)}
        case list():
            return [_lasting(each, names) for each in value]
        case _:
            return value
