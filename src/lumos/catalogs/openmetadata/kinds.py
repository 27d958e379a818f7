"""The kinds of entity that are not datasets, and how each maps to the items of Lumos.

A record is what is said of an entity as JSON that another server understands: fields as they are,
other entities by type and qualified name instead of by identifiers. Reading a record fills the
fields of an item; what these do not reproduce is under `raw["openmetadata"]`.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.interface import Item
from lumos.catalogs.openmetadata.labels import (
    MADE,
    OWN,
    domain_fqn,
    domain_of,
    is_stand_in,
    owner_of,
    shown_owners,
    tag_fqn,
    tag_of,
    team_name,
    term_fqn,
    term_named,
    term_of,
    user_name,
)
from lumos.catalogs.openmetadata.names import (
    OWN_SERVICE,
    joined,
    meant,
    service_of_tool,
    shortened,
    spelled,
    split,
    tool_of_service,
)
from lumos.catalogs.openmetadata.states import is_own_label
from lumos.catalogs.openmetadata.texts import decoded, encoded, has_markup, shown_text, storable
from lumos.model.catalog import (
    CatalogEntity,
    GlossaryTerm,
    Group,
    Job,
    User,
    entity_id,
    entity_urn,
    kind_in_urn,
)
from lumos.model.dataset import Owner, Schedule

Record: TypeAlias = dict[str, Any]
Form: TypeAlias = Literal["reference", "name", "id"]
"""How a request that creates an entity refers to others."""

CATALOG: Final = "openmetadata"
KEPT: Final = "lumosItem"
"""The custom property with the exact form of an item that its entity does not show completely."""
TASKS: Final = "lumosTasks"
"""The same for tasks of a pipeline, by their names."""
NOTHING_SAID: Final = "Written by Lumos."
"""The description of an entity that an item says nothing about."""
DATASET: Final = "dataset"
FREE_FORM: Final = frozenset({"searchIndexSettings"})
"""Fields whose values belong to people, whatever they look like."""
_FQN: Final = "fullyQualifiedName"
_TAGS: Final = "Classification"
_TERMS: Final = "Glossary"
_LABEL_KEYS: Final = ("tagFQN", "source", "labelType", "state")
_NOISE: Final = frozenset({"href", _FQN, "id", "deleted", "inherited"})
_FALSE_BY_DEFAULT: Final = frozenset({"mutuallyExclusive", "disabled", "default"})
_MAIL: Final = re.compile(r"[a-z0-9_%+-]+(\.[a-z0-9_%+-]+)*@[a-z0-9-]+(\.[a-z0-9-]+)+")
_LONGEST_MAIL: Final = 127
_PROPERTY: Final = f"{CATALOG}."
_PROD: Final = "PROD"
_NATIVE: Final = re.compile(rf"{CATALOG}:(?P<type>[A-Za-z]+):(?P<fqn>.+)\Z", re.DOTALL)
_SHARED: Final[Mapping[str, Form]] = MappingProxyType({"owners": "reference", "domains": "name"})
_PRODUCTS: Final[Mapping[str, Form]] = MappingProxyType({**_SHARED, "dataProducts": "name"})
# Relations of items to datasets that are edges in OpenMetadata.
_EDGES: Final = {"chart": "datasets", "dashboard": "datasets", "pipeline": "inputs"}
# Types of services by tool, as of OpenMetadata 1.4; any other tool is a custom one.
_TOOLS: Final = {
    "pipeline": {
        "airflow": "Airflow", "glue": "GluePipeline", "airbyte": "Airbyte", "fivetran": "Fivetran",
        "dagster": "Dagster", "nifi": "Nifi", "databricks": "DatabricksPipeline", "spark": "Spark",
        "kafka-connect": "KafkaConnect",
    },
    "dashboard": {
        "looker": "Looker", "tableau": "Tableau", "superset": "Superset", "metabase": "Metabase",
        "powerbi": "PowerBI", "redash": "Redash", "mode": "Mode", "quicksight": "QuickSight",
    },
    "mlmodel": {"mlflow": "Mlflow", "sklearn": "Sklearn", "sagemaker": "SageMaker"},
}  # fmt: skip


class EntityKind(NamedTuple):
    """A kind of entity.

    `kind` is its name in Lumos. `above` are the fields that name what an entity is in, with its
    type, the nearest last. `own` are fields that hold all they say in themselves, `refers` those
    that lead to other entities. `needed` is what one cannot be created without, `later` own fields
    that only a patch can set. One that `extends` may have custom properties; of one that is to be
    read `alone` lists leave something out, and to one that is `linked` edges may lead.
    """

    type: str
    route: str
    above: tuple[tuple[str, str], ...] = ()
    own: tuple[str, ...] = ()
    refers: Mapping[str, Form] = _SHARED
    needed: Mapping[str, Any] = MappingProxyType({})
    later: tuple[str, ...] = ()
    kind: str = ""
    tagged: bool = True
    extends: bool = True
    alone: bool = False
    linked: bool = False

    @property
    def asked(self) -> str:
        """The fields to ask for, in addition to those that are always told."""
        more = (*(("tags",) if self.tagged else ()), *(("extension",) if self.extends else ()))
        inside = tuple(field for field, _ in self.above if field == "parent")
        also = {"pipeline": ("tasks",), "query": ("usedBy",), "user": ("teams",)}
        return ",".join((*self.refers, *more, *also.get(self.type, ()), *inside))

    @property
    def fields(self) -> tuple[str, ...]:
        """All that a record may have, except custom properties."""
        tags = ("tags",) if self.tagged else ()
        return ("displayName", "description", *self.own, *self.refers, *tags)

    @property
    def is_service(self) -> bool:
        return self.type.endswith("Service")


def _service(type: str, custom: str) -> EntityKind:
    return EntityKind(
        f"{type}Service", f"services/{type}Services", (), ("serviceType",),
        needed=MappingProxyType({"serviceType": custom}), extends=False,
    )  # fmt: skip


def _in_service(
    type: str, route: str, service: str, *own: str, needed: Mapping[str, Any] | None = None,
    refers: Mapping[str, Form] = _PRODUCTS, kind: str = "",
) -> EntityKind:  # fmt: skip
    return EntityKind(
        type, route, (("service", f"{service}Service"),), (*own, "sourceUrl"), refers, needed or {},
        kind=kind, linked=True,
    )  # fmt: skip


# In the order in which they are written: what others are in or refer to comes first.
KINDS: Final = {
    spec.type: spec
    for spec in (
        EntityKind("user", "users", (), ("email",), {}, tagged=False, extends=False),
        EntityKind(
            "team", "teams", (), ("email",), {"users": "id"}, {"teamType": "Group"}, tagged=False,
            extends=False,
        ),
        EntityKind(
            "classification", "classifications", (), ("mutuallyExclusive", "disabled"),
            {"owners": "reference", "reviewers": "reference"}, {"description": ""},
            ("disabled",), tagged=False, extends=False,
        ),
        EntityKind(
            "tag", "tags", (("classification", "classification"), ("parent", "tag")),
            ("mutuallyExclusive", "style", "disabled"),
            {**_SHARED, "reviewers": "reference"}, {"description": ""}, ("disabled",), "tag",
            tagged=False, extends=False,
        ),
        EntityKind(
            "domain", "domains", (("parent", "domain"),), ("domainType", "style"),
            {"owners": "reference", "experts": "name"},
            {"description": "", "domainType": "Aggregate"}, kind="domain",
        ),
        EntityKind(
            "dataProduct", "dataProducts", (),
            ("style", "dataProductType", "visibility", "portfolioPriority", "lifecycleStage"),
            {**_SHARED, "experts": "name", "reviewers": "reference"}, {"description": ""},
            ("lifecycleStage",), "data_product",
        ),
        EntityKind(
            "glossary", "glossaries", (), ("mutuallyExclusive",),
            {**_SHARED, "reviewers": "reference"}, {"description": ""}, kind="term_group",
        ),
        EntityKind(
            "glossaryTerm", "glossaryTerms", (("glossary", "glossary"), ("parent", "glossaryTerm")),
            ("synonyms", "references", "style", "mutuallyExclusive"),
            {**_SHARED, "reviewers": "reference", "relatedTerms": "name"}, {"description": ""},
            # Requests that create a term on older servers know no domains.
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
        EntityKind(
            "database", "databases", (("service", "databaseService"),),
            ("default", "retentionPeriod", "sourceUrl"), alone=True,
        ),
        EntityKind(
            "databaseSchema", "databaseSchemas", (("database", "database"),),
            ("retentionPeriod", "sourceUrl"), alone=True,
        ),
        _in_service("chart", "charts", "dashboard", "chartType", kind="chart"),
        _in_service(
            "dashboardDataModel", "dashboard/datamodels", "dashboard", "dataModelType", "sql",
            "project", "columns", needed={"dataModelType": "MetabaseDataModel", "columns": []},
        ),
        _in_service(
            "dashboard", "dashboards", "dashboard", "dashboardType", "project",
            refers={**_PRODUCTS, "charts": "name", "dataModels": "name"}, kind="dashboard",
        ),
        _in_service(
            "pipeline", "pipelines", "pipeline", "scheduleInterval", "concurrency",
            "pipelineLocation", "startDate", kind="pipeline",
        ),
        _in_service(
            "mlmodel", "mlmodels", "mlmodel", "algorithm", "mlFeatures", "mlHyperParameters",
            "mlStore", "server", "target", needed={"algorithm": "unknown"},
            refers={**_PRODUCTS, "dashboard": "name"}, kind="ml_model",
        )._replace(alone=True),
        _in_service("searchIndex", "searchIndexes", "search", needed={"fields": []})._replace(
            own=("fields", "searchIndexSettings", "indexType"), alone=True
        ),
        EntityKind(
            "apiCollection", "apiCollections", (("service", "apiService"),), ("endpointURL",),
            needed={"endpointURL": "https://lumos.invalid"},
        ),
        EntityKind(
            "apiEndpoint", "apiEndpoints", (("apiCollection", "apiCollection"),),
            ("endpointURL", "requestMethod", "requestSchema", "responseSchema", "sourceUrl"),
            _PRODUCTS, {"endpointURL": "https://lumos.invalid"}, alone=True, linked=True,
        ),
        EntityKind(
            "storedProcedure", "storedProcedures", (("databaseSchema", "databaseSchema"),),
            ("storedProcedureCode", "storedProcedureType", "sourceUrl"),
            needed={"storedProcedureCode": {}}, linked=True,
        ),
        EntityKind(
            "query", "queries", (("service", "databaseService"),),
            ("query", "duration", "queryDate", "dialect", "query_type", "exclude_usage"),
            {"owners": "reference", "queryUsedIn": "reference", "users": "name"},
            {"query": "-"}, kind="query", extends=False,
        ),
    )
}  # fmt: skip
RANKS: Final = {type: rank for rank, type in enumerate(KINDS)}
# Of a term in the glossary of Lumos nothing else is shown, since relations are mutual there.
OWN_TERM: Final = KINDS["glossaryTerm"]._replace(refers={}, own=(), tagged=False)
JOB: Final = KINDS["pipeline"]._replace(
    own=("scheduleInterval",), refers={}, tagged=False, linked=False
)
# What OpenMetadata has no kind for.
GENERIC: Final = EntityKind("container", "containers", (("service", "storageService"),), refers={},
                       tagged=False)  # fmt: skip
_BY_KIND: Final = {spec.kind: spec for spec in KINDS.values() if spec.kind}


# Names


def name_of(type: str, fqn: str) -> str:
    """The URN of an entity: `lumos:...` where other catalogs can name it, too."""
    parts = split(fqn)
    match type, parts:
        case "tag", _:
            return entity_urn("tag", tag_of({"tagFQN": fqn, "source": _TAGS}) or fqn)
        case "domain", _:
            return entity_urn("domain", domain_of({_FQN: fqn}))
        case "dataProduct" | "glossary", (name,):
            urn = entity_urn(KINDS[type].kind, meant(name))
        case "query", (service, name) if service == OWN_SERVICE:
            return entity_urn("query", *meant(name).split("/"))
        case "query", (service, name):
            urn = entity_urn("query", meant(service), meant(name))
        case "pipeline" | "dashboard" | "chart" | "mlmodel", (service, name):
            tool, cluster = tool_of_service(service)
            urn = entity_urn(KINDS[type].kind, tool, meant(name), *filter(None, (cluster,)))
        case _:
            urn = ""
    return urn if locate(urn) == (type, fqn) else f"{CATALOG}:{type}:{fqn}"


def locate(urn: str) -> tuple[str, str] | None:
    """The type and the qualified name that a URN stands for, if OpenMetadata has such a kind."""
    if (match := _NATIVE.match(urn)) is not None:
        is_known = match["type"] in KINDS and match["type"] not in ("user", "team", "glossaryTerm")
        return (match["type"], match["fqn"]) if is_known and all(split(match["fqn"])) else None
    parts, spec = entity_id(urn), _BY_KIND.get(kind_in_urn(urn))
    if parts is None or spec is None:
        return None
    match spec.type, parts:
        case "tag", _:
            return "tag", tag_fqn("/".join(parts))
        case "domain", _:
            return "domain", domain_fqn("/".join(parts))
        case "dataProduct" | "glossary", _:
            return spec.type, joined(_plain_name("/".join(parts)))
        case "query", (id,):
            return "query", joined(OWN_SERVICE, _plain_name(id))
        case "query", (service, *names):
            return "query", joined(_plain_name(service), _plain_name("/".join(names)))
        case (("pipeline" | "mlmodel"), (tool, id, cluster)) if cluster != _PROD:
            return spec.type, joined(service_of_tool(tool, cluster), _plain_name(id))
        case _, (tool, id):
            return spec.type, joined(service_of_tool(tool), _plain_name(id))
        case _:
            return None


def canonical(urn: str) -> str:
    """The URN of an entity in place of a former one."""
    place = locate(urn)
    return urn if place is None else name_of(*place)


def own_query_fqn(urn: str) -> str:
    """The qualified name of a query in the service of Lumos."""
    return joined(OWN_SERVICE, _plain_name("/".join(entity_id(urn) or ())))


def task_of(urn: str) -> tuple[str, str] | None:
    """The pipeline and the name of the task that a URN stands for."""
    parts = entity_id(urn) if kind_in_urn(urn) == "task" else None
    match parts:
        case (tool, pipeline, task):
            return entity_urn("pipeline", tool, pipeline), _plain_name(task)
        case (tool, pipeline, task, cluster):
            return entity_urn("pipeline", tool, pipeline, cluster), _plain_name(task)
        case _:
            return None


def task_urn(pipeline: str, task: str) -> str:
    """The URN of a task, given that of its pipeline."""
    tool, id, *cluster = entity_id(pipeline) or ("", pipeline)
    return entity_urn("task", tool, id, meant(task), *cluster)


def service_type(spec: EntityKind, fqn: str) -> str:
    """The type that the service of an entity is created with."""
    service = spec.above[0][1]
    known = _TOOLS.get(service.removesuffix("Service"), {})
    custom: str = KINDS[service].needed["serviceType"]
    return known.get(tool_of_service(split(fqn)[0])[0], custom)


def _plain_name(name: str) -> str:
    return shortened(spelled(name))


# Records


def record_of(spec: EntityKind, entity: Mapping[str, Any]) -> Record:
    """What is said of an entity; what follows from something else is left out."""
    record = {
        field: value
        for field in spec.fields
        if (value := _said(field, entity.get(field))) not in (None, "", [], {})
        and value != spec.needed.get(field)
    }
    if record.get("description") in (MADE, NOTHING_SAID):
        del record["description"]
    if is_stand_in(record.get("email")):
        del record["email"]
    own = (KEPT, TASKS)
    properties = {
        key: value for key, value in (entity.get("extension") or {}).items() if key not in own
    }
    if spec.extends and properties:
        record["extension"] = properties
    told = entity.get("serviceType")
    if spec.kind and spec.linked and told not in (None, service_type(spec, entity[_FQN])):
        record["serviceType"] = told
    return record


def _said(field: str, value: Any) -> Any:
    if value is False and field in _FALSE_BY_DEFAULT:
        return None
    return value if field in FREE_FORM else plain(value)


def plain(value: Any) -> Any:
    """A value without what only its own server could understand."""
    match value:
        case {"tagFQN": _}:
            return {key: value[key] for key in _LABEL_KEYS if key in value}
        case {"id": id, "type": type}:
            fqn = value.get(_FQN) or joined(value.get("name") or "")
            return {"type": type, **({_FQN: fqn} if fqn else {"id": id})}
        case dict():
            told = {key: plain(each) for key, each in value.items() if key not in _NOISE}
            return {key: each for key, each in told.items() if each not in (None, [], {})}
        case list():
            return [plain(each) for each in value if not _is_derived(each)]
        case _:
            return value


def _is_derived(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return bool(value.get("inherited")) or ("tagFQN" in value and not is_own_label(value))


def is_placeholder(spec: EntityKind, entity: Mapping[str, Any]) -> bool:
    """Whether an entity is there only because others are in it or refer to it."""
    if {KEPT, TASKS} & (entity.get("extension") or {}).keys():
        return False
    record = record_of(spec, entity)
    if record.keys() & {"displayName", "tags", "extension", "email", *spec.refers}:
        return False
    if words := entity.get("description"):
        return bool(words == MADE)
    fqn = entity[_FQN]
    match spec.type:
        case "tag":
            return "style" not in record and split(fqn)[0] == OWN
        case "domain":
            return not {"style", "domainType"} & record.keys()
        case "glossaryTerm":
            return split(fqn)[0] == OWN
        case "user":
            return is_stand_in(entity.get("email"))
        case "team":
            return entity.get("isJoinable") is False
        case _:
            return False


# Items


def read_item(spec: EntityKind, fqn: str, record: Record) -> Any:
    """The item that a record describes."""
    said = _neutral(spec, fqn, record)
    again = write_record(spec, said)
    rest = {
        key: value
        for key, value in record.items()
        if key not in ("extension", "edges") and not _is_reproduced(key, value, again.get(key))
    }
    if edges := _other_edges(record, again):
        rest["edges"] = edges
    numbers = {k: v for k, v in record.get("extension", {}).items() if not isinstance(v, str)}
    if numbers:
        rest["extension"] = numbers
    if spec.type in ("tag", "glossaryTerm") and split(fqn)[0] != OWN:
        # Otherwise it would be written as a tag or term of Lumos.
        rest[spec.above[0][0]] = split(fqn)[0]
    return msgspec.structs.replace(said, raw={CATALOG: rest}) if rest else said


def _is_reproduced(key: str, value: Any, again: Any) -> bool:
    if again is None:
        return False
    if key == "description":
        return not has_markup(value)
    if key == "tags":
        return all((e["labelType"], e["state"]) == ("Manual", "Confirmed") for e in value)
    return len(value) == 1 if key == "domains" else is_same(value, again)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of records are equal; labels and references have no order."""
    if one == other or not (isinstance(one, list) and isinstance(other, list)):
        return bool(one == other)
    sides = (one, other)
    is_set = all(
        isinstance(e, dict) and {"tagFQN", _FQN, "term"} & e.keys() for s in sides for e in s
    )
    return is_set and len({tuple(sorted(map(str, side))) for side in sides}) == 1


def _neutral(spec: EntityKind, fqn: str, record: Record) -> Any:
    """What a record says in fields that all catalogs share."""
    name = meant(split(fqn)[-1])
    title = record.get("displayName")
    words = decoded(record.get("description") or "") or None
    domains, owners = record.get("domains") or (), _owners(record)
    texts = record.get("extension", {}).items()
    own = {f"{_PROPERTY}{key}": text for key, text in texts if isinstance(text, str)}
    if spec.type == "user":
        return User(name=name, display_name=title, email=record.get("email"))
    if spec.type == "team":
        members = (meant(split(each[_FQN])[0]) for each in record.get("users") or ())
        return Group(
            name=name, display_name=title, description=words, email=record.get("email"),
            members=tuple(sorted(set(members))),
        )  # fmt: skip
    if spec == JOB:
        cron = record.get("scheduleInterval")
        schedule = Schedule(cron=cron) if cron else None
        return Job(urn=name, name=title or "", platform="", description=words, schedule=schedule)
    if spec.type == "glossaryTerm":
        parts = split(fqn)
        is_inside = len(parts) > 2 and parts[0] != OWN
        related = (
            term_named(each.get("term", each)[_FQN]) for each in record.get("relatedTerms") or ()
        )
        return GlossaryTerm(
            name=term_named(fqn), display_name=title, definition=words,
            parent=joined(*parts[:-1]) if is_inside else None, related=tuple(sorted(set(related))),
            domain=domain_of(domains[0]) if domains else None,
            owners=tuple(owner.name for owner in owners),
            properties=own,
        )  # fmt: skip
    tags, terms = labels_in(record.get("tags") or ())
    references = {
        "domain": tuple(entity_urn("domain", domain_of(each)) for each in domains),
        "terms": terms,
        **_relations(spec, record),
    }
    above = split(fqn)[:-1]
    return CatalogEntity(
        urn=name if spec == GENERIC else name_of(spec.type, fqn),
        kind="" if spec == GENERIC else spec.kind or spec.type,
        display_name=title,
        description=words,
        parent=name_of("domain", joined(*above)) if spec.type == "domain" and above else None,
        owners=owners,
        tags=tags,
        references={relation: ends for relation, ends in references.items() if ends},
        properties=own,
    )


def _relations(spec: EntityKind, record: Record) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    if charts := record.get("charts"):
        found["charts"] = tuple(sorted(name_of("chart", each[_FQN]) for each in charts))
    if used := record.get("queryUsedIn"):
        found["datasets"] = tuple(sorted(each[_FQN] for each in used if each["type"] == DATASET))
    if spec.type in _EDGES:
        starts = (each["from"] for each in record.get("edges") or ())
        found[_EDGES[spec.type]] = tuple(sorted(filter(_is_dataset, starts)))
    return found


def write_record(spec: EntityKind, item: Any) -> Record:
    """The record that says as much of an item as its kind of entity can hold."""
    record: Record = {}
    title = item.name if isinstance(item, Job) else item.display_name
    words = item.definition if isinstance(item, GlossaryTerm) else _description(item)
    if title:
        record["displayName"] = shown_text(title)
    if words and (text := encoded(storable(words))):
        record["description"] = text
    if spec.extends:
        _put(record, "extension", _custom_properties(item))
    match item:
        case User() | Group():
            if item.email and _MAIL.fullmatch(item.email) and len(item.email) <= _LONGEST_MAIL:
                record["email"] = item.email
            if isinstance(item, Group) and item.members:
                members = sorted({user_name(name) for name in item.members})
                record["users"] = [{"type": "user", _FQN: joined(name)} for name in members]
        case Job():
            if item.schedule is not None and item.schedule.cron:
                record["scheduleInterval"] = shown_text(item.schedule.cron)
        case GlossaryTerm():
            _put(record, "owners", list(map(_reference, shown_owners(_term_owners(item)))))
            related = (
                {"type": "glossaryTerm", _FQN: fqn} for fqn in sorted(map(term_fqn, item.related))
            )
            _put(
                record, "relatedTerms", [{"relationType": "relatedTo", "term": t} for t in related]
            )
            domains = [] if item.domain is None else [item.domain]
            _put(record, "domains", [{"type": "domain", _FQN: domain_fqn(n)} for n in domains])
        case CatalogEntity():
            _put(record, "owners", list(map(_reference, shown_owners(item.owners))))
            _put(record, "tags", labels(item.tags, item.references.get("terms", ())))
            record |= _native_relations(spec, item)
    record = {
        key: value for key, value in record.items() if key in (*spec.fields, "extension", "edges")
    }
    return _over(spec, item, record)


def _over(spec: EntityKind, item: Any, record: Record) -> Record:
    """A record with what an item has from OpenMetadata, unless its fields say something else."""
    mine = item.raw.get(CATALOG)
    if not isinstance(mine, dict):
        return record
    if isinstance(mine.get("edges"), list):
        found = [
            {**each, "from": canonical(each["from"])} for each in mine["edges"] if _is_edge(each)
        ]
        mine = {**mine, "edges": found}
    if isinstance(item, CatalogEntity) and item == CatalogEntity(
        urn=item.urn, kind=item.kind, raw=item.raw
    ):
        # As snapshots of format 1.0 have it: everything is in the record.
        allowed = {*spec.fields, "extension", "declared", "edges", "serviceType"}
        return {key: value for key, value in mine.items() if key in allowed}
    for key in ("declared", "serviceType"):
        if key in mine and spec.type != "user":
            record[key] = mine[key]
    for key in spec.fields:
        if key in mine and _reads_alike(spec, key, mine[key], record.get(key)):
            record[key] = mine[key]
    if isinstance(mine.get("extension"), dict) and spec.extends:
        record["extension"] = {**mine["extension"], **record.get("extension", {})}
    if isinstance(mine.get("edges"), list) and spec.linked:
        exact = {each["from"]: each for each in mine["edges"]}
        starts = {each["from"] for each in record.get("edges", ())}
        kept = [
            each
            for start, each in exact.items()
            if start in starts or spec.type not in _EDGES or not _is_dataset(start)
        ]
        new = [each for each in record.get("edges", ()) if each["from"] not in exact]
        _put(record, "edges", sorted([*kept, *new], key=lambda each: each["from"]))
    return record


def _reads_alike(spec: EntityKind, key: str, mine: Any, native: Any) -> bool:
    """Whether a value says the same in the fields of items as another one."""
    if key in ("owners", "tags", "domains", "charts", "queryUsedIn", "relatedTerms", "users"):
        try:
            sides = [_neutral(spec, "x.x", {key: each} if each else {}) for each in (mine, native)]
        except (KeyError, TypeError, AttributeError, IndexError):
            return False
        return bool(sides[0] == sides[1])
    if key == "description":
        return isinstance(mine, str) and decoded(mine) == decoded(native or "")
    modelled = {"displayName", *(("email",) if spec.type in ("user", "team") else ())}
    return key not in modelled


def _native_relations(spec: EntityKind, item: CatalogEntity) -> Record:
    found: Record = {}
    domains = [parts for urn in item.references.get("domain", ()) if (parts := entity_id(urn))]
    names = ["/".join(parts) for parts in domains[:1]]
    _put(found, "domains", [{"type": "domain", _FQN: domain_fqn(name)} for name in names])
    charts = sorted(filter(None, map(locate, item.references.get("charts", ()))))
    _put(found, "charts", [{"type": type, _FQN: fqn} for type, fqn in charts if type == "chart"])
    datasets = sorted(filter(_is_dataset, item.references.get("datasets", ())))
    if spec.type == "query":
        _put(found, "queryUsedIn", [{"type": DATASET, _FQN: urn} for urn in datasets])
    if spec.type in _EDGES:
        ends = sorted(filter(_is_dataset, item.references.get(_EDGES[spec.type], ())))
        _put(found, "edges", [{"from": urn, "source": "Manual"} for urn in dict.fromkeys(ends)])
    return found


def _other_edges(record: Record, again: Record) -> list[Record]:
    known = again.get("edges") or ()
    return [each for each in record.get("edges") or () if each not in known]


def labels(tags: Iterable[str], terms: Iterable[str]) -> list[dict[str, Any]]:
    """Labels of an entity by the names of tags and terms."""
    named = [(_TAGS, tag_fqn(name)) for name in tags] + [(_TERMS, term_fqn(n)) for n in terms]
    # A tag and a term of one qualified name are one label to the server, the tag.
    sources = {fqn: source for source, fqn in reversed(named)}
    return [
        {"tagFQN": fqn, "source": source, "labelType": "Manual", "state": "Confirmed"}
        for source, fqn in sorted((source, fqn) for fqn, source in sources.items())
    ]


def labels_in(found: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the tags and terms among labels."""
    tags, terms = set(), set()
    for label in found:
        if (tag := tag_of(label)) is not None:
            tags.add(tag)
        elif (term := term_of(label)) is not None:
            terms.add(term)
    return tuple(sorted(tags)), tuple(sorted(terms))


def _owners(record: Record) -> tuple[Owner, ...]:
    found = {owner_of({**e, "name": split(e[_FQN])[0]}) for e in record.get("owners") or ()}
    return tuple(sorted(found, key=lambda owner: (owner.kind, owner.name)))


def _custom_properties(item: Any) -> dict[str, str]:
    return {
        key.removeprefix(_PROPERTY): text
        for key, text in item.properties.items()
        if key.startswith(_PROPERTY) and text and shown_text(text) == text
    }


def _term_owners(term: GlossaryTerm) -> list[Owner]:
    """The owners of a term; those that were groups in OpenMetadata still are."""
    mine = term.raw.get(CATALOG)
    known = mine.get("owners") if isinstance(mine, dict) else None
    told = known if isinstance(known, list) else []
    teams = {meant(split(each[_FQN])[0]) for each in told if each.get("type") == "team"}
    return [Owner(name=name, kind="group" if name in teams else "user") for name in term.owners]


def _reference(owner: Owner) -> dict[str, str]:
    is_team = owner.kind == "group"
    name = team_name(owner.name) if is_team else user_name(owner.name)
    return {"type": "team" if is_team else "user", _FQN: joined(name)}


def _description(item: Any) -> str | None:
    return None if isinstance(item, User) else item.description


def _is_dataset(urn: str) -> bool:
    return urn.startswith("lumos://")


def _is_edge(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("from"), str)


def _put(record: Record, key: str, value: Any) -> None:
    if value:
        record[key] = value


def key_of(item: Item) -> str:
    """The key of an item in its catalog."""
    return item.urn if isinstance(item, Job | CatalogEntity) else item.name
