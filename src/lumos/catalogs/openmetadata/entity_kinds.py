"""The kinds of entity that are no datasets, in a table, and what is said of one as plain JSON.

A record holds what can be written to another server: own fields as they are, and others by type and
qualified name instead of by this server's identifiers.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from lumos.catalogs.openmetadata.extras import KEPT
from lumos.catalogs.openmetadata.names import joined, split
from lumos.catalogs.openmetadata.states import is_own_label

Record: TypeAlias = dict[str, Any]
Form: TypeAlias = Literal["reference", "name"]
"""How a request that makes an entity refers to others: by identifier or by qualified name."""

CATALOG: Final = "openmetadata"
MADE: Final = "Made by Lumos, which keeps what is in it."
"""The description of what is only there because others are in it."""
# The classification of Lumos's own tags.
_OWN: Final = "Lumos"
_WORDS: Final = ("displayName", "description")
_LABEL_KEYS: Final = ("tagFQN", "source", "labelType", "state")
_NOISE: Final = frozenset({"href", "fullyQualifiedName", "id", "deleted", "inherited"})
FREE_FORM: Final = frozenset({"searchIndexSettings"})
"""Fields whose values are people's own, whatever they look like."""
_FALSE_UNLESS_SAID: Final = frozenset({"mutuallyExclusive", "disabled", "default"})
# In all but a few kinds of entity.
_SHARED: Final[Mapping[str, Form]] = MappingProxyType({"owners": "reference", "domains": "name"})
_PEOPLE: Final = frozenset({"user", "team"})


class Thing(NamedTuple):
    """A kind of entity.

    `above` are the fields that name what an entity is in, with its type, the nearest last. `own`
    are fields that hold all they say in themselves, `refers` those that lead to others. `needed`
    is what one cannot be made without, `later` own fields that only a patch can set. One that
    `extends` may have custom properties; of one that is to be read `alone` lists do not tell all or
    also what it inherits, and to one that is `linked` edges may lead.
    """

    type: str
    route: str
    above: tuple[tuple[str, str], ...] = ()
    own: tuple[str, ...] = ()
    refers: Mapping[str, Form] = _SHARED
    needed: Mapping[str, Any] = MappingProxyType({})
    later: tuple[str, ...] = ()
    tagged: bool = True
    extends: bool = True
    alone: bool = False
    linked: bool = False

    @property
    def asked(self) -> str:
        """The fields to ask for, beside those that are always told."""
        more = (*(("tags",) if self.tagged else ()), *(("extension",) if self.extends else ()))
        inside = tuple(field for field, _ in self.above if field == "parent")
        return ",".join((*self.refers, *more, *_TOLD_IF_ASKED.get(self.type, ()), *inside))

    @property
    def fields(self) -> tuple[str, ...]:
        """All that a record may have beside custom properties."""
        return (*_WORDS, *self.own, *self.refers, *(("tags",) if self.tagged else ()))

    @property
    def is_service(self) -> bool:
        return self.type.endswith("Service")


_TOLD_IF_ASKED: Final = {"pipeline": ("tasks",), "query": ("usedBy",)}
_PRODUCTS: Final[Mapping[str, Form]] = MappingProxyType({**_SHARED, "dataProducts": "name"})


def _service(type: str, custom: str) -> Thing:
    needed = MappingProxyType({"serviceType": custom})
    return Thing(
        f"{type}Service", f"services/{type}Services", (), ("serviceType",),
        needed=needed, extends=False,
    )  # fmt: skip


def _in_service(
    type: str, route: str, service: str, *own: str, needed: Mapping[str, Any] | None = None,
    refers: Mapping[str, Form] = _PRODUCTS,
) -> Thing:  # fmt: skip
    return Thing(
        type, route, (("service", f"{service}Service"),), (*own, "sourceUrl"), refers, needed or {},
        linked=True,
    )  # fmt: skip


# In the order in which they are made: what others are in or refer to comes first.
THINGS: Final = {
    thing.type: thing
    for thing in (
        Thing(
            "classification", "classifications", (), ("mutuallyExclusive", "disabled"),
            {"owners": "reference", "reviewers": "reference"}, {"description": ""},
            ("disabled",), tagged=False, extends=False,
        ),
        Thing(
            "tag", "tags", (("classification", "classification"), ("parent", "tag")),
            ("mutuallyExclusive", "style", "disabled"),
            {**_SHARED, "reviewers": "reference"}, {"description": ""}, ("disabled",),
            tagged=False, extends=False,
        ),
        Thing(
            "domain", "domains", (("parent", "domain"),), ("domainType", "style"),
            {"owners": "reference", "experts": "name"},
            {"description": "", "domainType": "Aggregate"},
        ),
        Thing(
            "dataProduct", "dataProducts", (),
            ("style", "dataProductType", "visibility", "portfolioPriority", "lifecycleStage"),
            {**_SHARED, "experts": "name", "reviewers": "reference"}, {"description": ""},
            ("lifecycleStage",),
        ),
        Thing(
            "glossary", "glossaries", (), ("mutuallyExclusive",),
            {**_SHARED, "reviewers": "reference"}, {"description": ""},
        ),
        Thing(
            "glossaryTerm", "glossaryTerms", (("glossary", "glossary"), ("parent", "glossaryTerm")),
            ("synonyms", "references", "style", "mutuallyExclusive"),
            {**_SHARED, "reviewers": "reference", "relatedTerms": "name"}, {"description": ""},
            # Requests that make a term on older servers know no domains.
            ("domains",),
        ),
        _service("database", "CustomDatabase"),
        _service("storage", "CustomStorage"),
        _service("messaging", "CustomMessaging"),
        _service("pipeline", "CustomPipeline"),
        _service("dashboard", "CustomDashboard"),
        _service("mlmodel", "CustomMlModel"),
        _service("search", "CustomSearch"),
        _service("api", "Rest"),
        Thing(
            "database", "databases", (("service", "databaseService"),),
            ("default", "retentionPeriod", "sourceUrl"), alone=True,
        ),
        Thing(
            "databaseSchema", "databaseSchemas", (("database", "database"),),
            ("retentionPeriod", "sourceUrl"), alone=True,
        ),
        _in_service("chart", "charts", "dashboard", "chartType"),
        _in_service(
            "dashboardDataModel", "dashboard/datamodels", "dashboard", "dataModelType", "sql",
            "project", "columns", needed={"dataModelType": "MetabaseDataModel", "columns": []},
        ),
        _in_service(
            "dashboard", "dashboards", "dashboard", "dashboardType", "project",
            refers={**_PRODUCTS, "charts": "name", "dataModels": "name"},
        ),
        _in_service(
            "pipeline", "pipelines", "pipeline", "scheduleInterval", "concurrency",
            "pipelineLocation", "startDate", "tasks",
        ),
        _in_service(
            "mlmodel", "mlmodels", "mlmodel", "algorithm", "mlFeatures", "mlHyperParameters",
            "mlStore", "server", "target", needed={"algorithm": "unknown"},
            refers={**_PRODUCTS, "dashboard": "name"},
        )._replace(alone=True),
        _in_service(
            "searchIndex", "searchIndexes", "search", "fields", "searchIndexSettings", "indexType",
            needed={"fields": []},
        )._replace(own=("fields", "searchIndexSettings", "indexType"), alone=True),
        Thing(
            "apiCollection", "apiCollections", (("service", "apiService"),), ("endpointURL",),
            needed={"endpointURL": "https://lumos.invalid"},
        ),
        Thing(
            "apiEndpoint", "apiEndpoints", (("apiCollection", "apiCollection"),),
            ("endpointURL", "requestMethod", "requestSchema", "responseSchema", "sourceUrl"),
            _PRODUCTS, {"endpointURL": "https://lumos.invalid"}, alone=True, linked=True,
        ),
        Thing(
            "storedProcedure", "storedProcedures", (("databaseSchema", "databaseSchema"),),
            ("storedProcedureCode", "storedProcedureType", "sourceUrl"),
            needed={"storedProcedureCode": {}}, linked=True,
        ),
        Thing(
            "query", "queries", (("service", "databaseService"),),
            ("query", "duration", "queryDate", "dialect", "query_type", "exclude_usage"),
            {"owners": "reference", "queryUsedIn": "reference", "users": "name"},
            {"query": "-"}, extends=False,
        ),
    )
}  # fmt: skip
RANKS: Final = {type: rank for rank, type in enumerate(THINGS)}


def name_of(type: str, fqn: str) -> str:
    """What an entity that is no dataset is called in Lumos."""
    return f"{CATALOG}:{type}:{fqn}"


def record_of(thing: Thing, entity: Mapping[str, Any]) -> Record:
    """What is said of an entity; what follows from something else is left out."""
    record = {
        field: value
        for field in thing.fields
        if (value := _said(field, entity.get(field))) not in (None, "", [], {})
    }
    properties = {
        key: value for key, value in (entity.get("extension") or {}).items() if key != KEPT
    }
    if thing.extends and properties:
        record["extension"] = properties
    if entity.get("deleted"):
        record["deleted"] = True
    return record


def _said(field: str, value: Any) -> Any:
    if value is False and field in _FALSE_UNLESS_SAID:
        return None
    return value if field in FREE_FORM else plain(value)


def plain(value: Any) -> Any:
    """A value without what only its own server could make sense of."""
    match value:
        case {"tagFQN": _}:
            return {key: value[key] for key in _LABEL_KEYS if key in value}
        case {"id": id, "type": type}:
            fqn = value.get("fullyQualifiedName") or joined(value.get("name") or "")
            return {"type": type, **({"fullyQualifiedName": fqn} if fqn else {"id": id})}
        case dict():
            told = {key: plain(each) for key, each in value.items() if key not in _NOISE}
            return {key: each for key, each in told.items() if each not in (None, [], {})}
        case list():
            return [plain(each) for each in value if not _is_derived(each)]
        case _:
            return value


def is_person(type: str) -> bool:
    return type in _PEOPLE


def says_nothing(thing: Thing, entity: Mapping[str, Any]) -> bool:
    """Whether an entity is there only for Lumos, because others are in it or refer to it."""
    record = record_of(thing, entity)
    by_people = record.keys() & {"displayName", "tags", "extension", *thing.refers}
    if by_people:
        return False
    match thing.type, record.get("description"):
        case _, str(words) if words:
            return words == MADE
        case "tag", _:
            return "style" not in record and split(entity["fullyQualifiedName"])[0] == _OWN
        case "domain", _:
            return "style" not in record and record.get("domainType") == "Aggregate"
        case _:
            return False


def says_more(thing: Thing, entity: Mapping[str, Any]) -> bool:
    """Whether more is said of an entity than what shows something of another catalog."""
    said = record_of(thing, entity)
    said.get("style", {}).pop("color", None)
    shown = {*_WORDS, "sourceUrl", "tasks"}
    return any(
        value and value != thing.needed.get(field)
        for field, value in said.items()
        if field not in shown
    )


def _is_derived(value: Any) -> bool:
    """Whether something hangs on something else, and is not said of the entity itself."""
    if not isinstance(value, dict):
        return False
    return bool(value.get("inherited")) or ("tagFQN" in value and not is_own_label(value))
