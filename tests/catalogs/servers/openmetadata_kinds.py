"""The kinds of entity that the stub of OpenMetadata has."""

import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

_COMMON = frozenset({"owners", "tags", "domains", "dataProducts", "extension", "lifeCycle"})
# Built in, as in an empty catalog.
BUILT_IN_CLASSIFICATIONS = {
    "PII": ("Sensitive", "NonSensitive", "None"),
    "PersonalData": ("Personal", "SpecialCategory"),
    "Tier": ("Tier1", "Tier2", "Tier3", "Tier4", "Tier5"),
    "Certification": ("Gold", "Silver", "Bronze"),
}


class FailedEntry(Exception):
    """An answer that tells of a failure."""

    def __init__(self, status: int, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind


class Writer(str):
    """Who calls; names of bots end so."""

    @property
    def is_bot(self) -> bool:
        return self.endswith("-bot")


class Kind(NamedTuple):
    """A kind of entity.

    `above` are fields that hold the qualified name of what an entity is in, the nearest last;
    `optional` are fields that are only told when they are asked for; `lasting` are fields that a
    PUT without them does not remove.
    """

    type: str
    route: str
    create: str
    entity: str
    above: Mapping[str, str] = MappingProxyType({})
    optional: frozenset[str] = _COMMON
    lasting: frozenset[str] = frozenset()
    extends: bool = True
    bulk: bool = False
    # Between the name of what it is in and its own.
    infix: str = ""

    @property
    def fields(self) -> frozenset[str]:
        """What may be asked for."""
        return self.optional | {"columns", "schemaDefinition", "followers", "usageSummary", "tasks"}


def _service(type: str, name: str) -> Kind:
    return Kind(
        f"{type}Service",
        f"services/{type}Services",
        f"api/services/create{name}Service.json",
        f"entity/services/{type}Service.json",
        optional=_COMMON - {"extension"},
        lasting=frozenset({"connection"}),
        extends=False,
    )


def _data(type: str, route: str, above: dict[str, str], *optional: str) -> Kind:
    return Kind(
        type,
        route,
        f"api/data/create{type[0].upper()}{type[1:]}.json",
        f"entity/data/{type}.json",
        above,
        _COMMON | set(optional),
        frozenset({"schemaDefinition"}),
        bulk=True,
    )


KINDS = {
    kind.type: kind
    for kind in (
        _service("database", "Database"),
        _service("storage", "Storage"),
        _service("messaging", "Messaging"),
        _service("pipeline", "Pipeline"),
        _data("database", "databases", {"service": "databaseService"}),
        _data("databaseSchema", "databaseSchemas", {"database": "database"}),
        _data("table", "tables", {"databaseSchema": "databaseSchema"}, "tableConstraints"),
        _data(
            "container", "containers", {"service": "storageService", "parent": "container"},
            "parent", "dataModel",
        ),
        _data("topic", "topics", {"service": "messagingService"}),
        _data("pipeline", "pipelines", {"service": "pipelineService"}),
        _service("dashboard", "Dashboard"),
        _service("mlmodel", "MlModel"),
        _service("search", "Search"),
        _service("api", "Api"),
        _data("chart", "charts", {"service": "dashboardService"}),
        _data("dashboardDataModel", "dashboard/datamodels", {"service": "dashboardService"})
        ._replace(infix="model"),
        _data("dashboard", "dashboards", {"service": "dashboardService"}, "charts", "dataModels"),
        _data("mlmodel", "mlmodels", {"service": "mlmodelService"}, "dashboard")
        ._replace(create="api/data/createMlModel.json"),
        _data("searchIndex", "searchIndexes", {"service": "searchService"}),
        _data("apiCollection", "apiCollections", {"service": "apiService"})
        ._replace(create="api/data/createAPICollection.json"),
        _data("apiEndpoint", "apiEndpoints", {"apiCollection": "apiCollection"})
        ._replace(create="api/data/createAPIEndpoint.json"),
        _data("storedProcedure", "storedProcedures", {"databaseSchema": "databaseSchema"}),
        _data("query", "queries", {"service": "databaseService"}, "users", "queryUsedIn", "usedBy"),
        Kind(
            "dataProduct", "dataProducts", "api/domains/createDataProduct.json",
            "entity/domains/dataProduct.json", {}, _COMMON | {"experts", "reviewers"},
        ),
        _data("glossary", "glossaries", {}, "reviewers")._replace(bulk=False),
        _data(
            "glossaryTerm", "glossaryTerms", {"glossary": "glossary", "parent": "glossaryTerm"},
            "parent", "relatedTerms", "reviewers", "children", "usageCount",
        )._replace(lasting=frozenset({"relatedTerms"}), bulk=False),
        Kind(
            "classification", "classifications", "api/classification/createClassification.json",
            "entity/classification/classification.json", {}, _COMMON | {"reviewers"},
        ),
        Kind(
            "tag", "tags", "api/classification/createTag.json", "entity/classification/tag.json",
            {"classification": "classification", "parent": "tag"},
            _COMMON | {"usageCount", "parent", "reviewers"},
        ),
        Kind(
            "domain", "domains", "api/domains/createDomain.json", "entity/domains/domain.json",
            {"parent": "domain"}, _COMMON | {"parent", "children", "experts"},
        ),
        Kind(
            "user", "users", "api/teams/createUser.json", "entity/teams/user.json",
            optional=frozenset({"teams", "roles", "profile", "owns", "domains"}), extends=False,
        ),
        Kind(
            "team", "teams", "api/teams/createTeam.json", "entity/teams/team.json",
            optional=frozenset({"users", "owns", "parents", "owners", "domains"}), extends=False,
        ),
    )
}  # fmt: skip
ROUTES = {kind.route: kind for kind in KINDS.values()}
# The fields of each kind that hold references, and what they may refer to.
REFERENCES = {
    "owners": ("user", "team"),
    "reviewers": ("user", "team"),
    "experts": ("user",),
    "users": ("user",),
    "teams": ("team",),
    "dataProducts": ("dataProduct",),
    "charts": ("chart",),
    "dataModels": ("dashboardDataModel",),
    "queryUsedIn": ("table", "dashboard"),
}
# What lists do not tell, though it is asked for.
UNLISTED = {"mlmodel": "dashboard"}
UNLISTED_LABELS = {"searchIndex": "fields", "apiEndpoint": "responseSchema"}


class Entity:
    """One entity: its own facts, and the ids of what it refers to."""

    __slots__ = ("above", "deleted", "facts", "fqn", "id", "kind", "name", "refers", "updated_at", "updated_by", "version")  # fmt: skip

    def __init__(self, kind: Kind, name: str, fqn: str) -> None:
        self.kind = kind
        self.id = str(uuid.uuid4())
        self.name = name
        self.fqn = fqn
        self.deleted = False
        self.version = 0.1
        self.updated_at = 0
        self.updated_by = ""
        self.above: dict[str, Entity] = {}
        self.refers: dict[str, list[Entity]] = {}
        self.facts: dict[str, Any] = {}

    @property
    def reference(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": self.kind.type,
            "name": self.name,
            "fullyQualifiedName": self.fqn,
            "displayName": self.facts.get("displayName") or self.name,
            "deleted": self.deleted,
        }
