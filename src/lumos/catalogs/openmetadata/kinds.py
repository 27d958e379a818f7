"""Encodes items as records of entities, and decodes them.

A record is the portable JSON of an entity: references have type and qualified name instead of
identifiers. `raw["openmetadata"]` contains the values that the fields of an item do not reproduce.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.nearest_kinds import nearest_urn, original_urn, shared_kind
from lumos.catalogs.openmetadata.labels import (
    LUMOS,
    PLACEHOLDER_TEXT,
    domain_fqn,
    domain_of,
    is_placeholder_email,
    owner_of,
    read_labels,
    storable_owners,
    tag_fqn,
    tag_of,
    team_name,
    term_fqn,
    term_named,
    user_name,
)
from lumos.catalogs.openmetadata.names import (
    LUMOS_SERVICE,
    decode_name,
    encode_name,
    escape_html,
    has_markup,
    is_dataset_urn,
    join_fqn,
    service_of_tool,
    shorten_name,
    split_fqn,
    tool_of_service,
    unescape_html,
    without_lost_characters,
    without_nul,
)
from lumos.catalogs.openmetadata.states import is_direct_label
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
"""The format of references in requests that create entities."""

CATALOG: Final = "openmetadata"
EXACT_ITEM: Final = "lumosItem"
"""The custom property with the exact item, if its entity does not store it completely."""
TASKS: Final = "lumosTasks"
"""The custom property of a pipeline with its exact tasks, by name."""
EMPTY_DESCRIPTION: Final = "Written by Lumos."
"""Replaces a missing description, so that the entity is not mistaken for a placeholder."""
DATASET: Final = "dataset"
FREE_FORM: Final = frozenset({"searchIndexSettings"})
"""Fields with free-form values, which are never changed."""
_FQN: Final = "fullyQualifiedName"
_TAGS: Final = "Classification"
_TERMS: Final = "Glossary"
_LABEL_KEYS: Final = ("tagFQN", "source", "labelType", "state")
_SERVER_FIELDS: Final = frozenset({"href", _FQN, "id", "deleted", "inherited"})
_FALSE_BY_DEFAULT: Final = frozenset({"mutuallyExclusive", "disabled", "default"})
_MAIL_ADDRESS: Final = re.compile(r"[a-z0-9_%+-]+(\.[a-z0-9_%+-]+)*@[a-z0-9-]+(\.[a-z0-9-]+)+")
_MAX_MAIL_LENGTH: Final = 127
_PROPERTY_PREFIX: Final = f"{CATALOG}."
_PROD: Final = "PROD"
_NATIVE_URN: Final = re.compile(rf"{CATALOG}:(?P<type>[A-Za-z]+):(?P<fqn>.+)\Z", re.DOTALL)
_COMMON: Final[Mapping[str, Form]] = MappingProxyType({"owners": "reference", "domains": "name"})
_WITH_PRODUCTS: Final[Mapping[str, Form]] = MappingProxyType({**_COMMON, "dataProducts": "name"})
# Relations of items to datasets that are edges in OpenMetadata.
_EDGE_RELATIONS: Final = {"chart": "datasets", "dashboard": "datasets", "pipeline": "inputs"}
# Types of services by tool, as of OpenMetadata 1.4; any other tool is a custom one.
_SERVICE_TYPE_BY_TOOL: Final = {
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

    `kind` is its name in Lumos. `parents` are the fields with the parents of an entity and their
    types, the nearest last. `plain_fields` have no references, `references` refer to other
    entities. `required` has defaults of required fields; `patch_only` fields can only be set by a
    patch. `has_properties`: entities can have custom properties. `lists_partly`: lists omit some
    fields, so each entity must be read. `has_edges`: entities can have upstream edges.
    """

    type: str
    route: str
    parents: tuple[tuple[str, str], ...] = ()
    plain_fields: tuple[str, ...] = ()
    references: Mapping[str, Form] = _COMMON
    required: Mapping[str, Any] = MappingProxyType({})
    patch_only: tuple[str, ...] = ()
    kind: str = ""
    has_tags: bool = True
    has_properties: bool = True
    lists_partly: bool = False
    has_edges: bool = False

    @property
    def requested_fields(self) -> str:
        """The fields to request in addition to those of every response."""
        optional_fields = (
            *(("tags",) if self.has_tags else ()),
            *(("extension",) if self.has_properties else ()),
        )
        parent_fields = tuple(field for field, _ in self.parents if field == "parent")
        extra_fields = {"pipeline": ("tasks",), "query": ("usedBy",), "user": ("teams",)}
        return ",".join(
            (*self.references, *optional_fields, *extra_fields.get(self.type, ()), *parent_fields)
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a record, except custom properties."""
        tags = ("tags",) if self.has_tags else ()
        return ("displayName", "description", *self.plain_fields, *self.references, *tags)

    @property
    def is_service(self) -> bool:
        return self.type.endswith("Service")


def _service(type: str, custom: str) -> EntityKind:
    return EntityKind(
        f"{type}Service", f"services/{type}Services", (), ("serviceType",),
        required=MappingProxyType({"serviceType": custom}), has_properties=False,
    )  # fmt: skip


def _in_service(
    type: str, route: str, service: str, *plain_fields: str,
    required: Mapping[str, Any] | None = None, references: Mapping[str, Form] = _WITH_PRODUCTS,
    kind: str = "",
) -> EntityKind:  # fmt: skip
    return EntityKind(
        type, route, (("service", f"{service}Service"),), (*plain_fields, "sourceUrl"), references,
        required or {}, kind=kind, has_edges=True,
    )  # fmt: skip


# In the order in which they are written: parents and referenced entities first.
KINDS: Final = {
    spec.type: spec
    for spec in (
        EntityKind("user", "users", (), ("email",), {}, has_tags=False, has_properties=False),
        EntityKind(
            "team", "teams", (), ("email",), {"users": "id"}, {"teamType": "Group"}, has_tags=False,
            has_properties=False,
        ),
        EntityKind(
            "classification", "classifications", (), ("mutuallyExclusive", "disabled"),
            {"owners": "reference", "reviewers": "reference"}, {"description": ""},
            ("disabled",), has_tags=False, has_properties=False,
        ),
        EntityKind(
            "tag", "tags", (("classification", "classification"), ("parent", "tag")),
            ("mutuallyExclusive", "style", "disabled"),
            {**_COMMON, "reviewers": "reference"}, {"description": ""}, ("disabled",), "tag",
            has_tags=False, has_properties=False,
        ),
        EntityKind(
            "domain", "domains", (("parent", "domain"),), ("domainType", "style"),
            {"owners": "reference", "experts": "name"},
            {"description": "", "domainType": "Aggregate"}, kind="domain",
        ),
        EntityKind(
            "dataProduct", "dataProducts", (),
            ("style", "dataProductType", "visibility", "portfolioPriority", "lifecycleStage"),
            {**_COMMON, "experts": "name", "reviewers": "reference"}, {"description": ""},
            ("lifecycleStage",), "data_product",
        ),
        EntityKind(
            "glossary", "glossaries", (), ("mutuallyExclusive",),
            {**_COMMON, "reviewers": "reference"}, {"description": ""}, kind="term_group",
        ),
        EntityKind(
            "glossaryTerm", "glossaryTerms", (("glossary", "glossary"), ("parent", "glossaryTerm")),
            ("synonyms", "references", "style", "mutuallyExclusive"),
            {**_COMMON, "reviewers": "reference", "relatedTerms": "name"}, {"description": ""},
            # Older servers reject domains in requests that create a term.
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
            ("default", "retentionPeriod", "sourceUrl"), lists_partly=True,
        ),
        EntityKind(
            "databaseSchema", "databaseSchemas", (("database", "database"),),
            ("retentionPeriod", "sourceUrl"), lists_partly=True,
        ),
        _in_service("chart", "charts", "dashboard", "chartType", kind="chart"),
        _in_service(
            "dashboardDataModel", "dashboard/datamodels", "dashboard", "dataModelType", "sql",
            "project", "columns", required={"dataModelType": "MetabaseDataModel", "columns": []},
        ),
        _in_service(
            "dashboard", "dashboards", "dashboard", "dashboardType", "project",
            references={**_WITH_PRODUCTS, "charts": "name", "dataModels": "name"}, kind="dashboard",
        ),
        _in_service(
            "pipeline", "pipelines", "pipeline", "scheduleInterval", "concurrency",
            "pipelineLocation", "startDate", kind="pipeline",
        ),
        _in_service(
            "mlmodel", "mlmodels", "mlmodel", "algorithm", "mlFeatures", "mlHyperParameters",
            "mlStore", "server", "target", required={"algorithm": "unknown"},
            references={**_WITH_PRODUCTS, "dashboard": "name"}, kind="ml_model",
        )._replace(lists_partly=True),
        _in_service("searchIndex", "searchIndexes", "search", required={"fields": []})._replace(
            plain_fields=("fields", "searchIndexSettings", "indexType"), lists_partly=True
        ),
        EntityKind(
            "apiCollection", "apiCollections", (("service", "apiService"),), ("endpointURL",),
            required={"endpointURL": "https://lumos.invalid"},
        ),
        EntityKind(
            "apiEndpoint", "apiEndpoints", (("apiCollection", "apiCollection"),),
            ("endpointURL", "requestMethod", "requestSchema", "responseSchema", "sourceUrl"),
            _WITH_PRODUCTS, {"endpointURL": "https://lumos.invalid"}, lists_partly=True,
            has_edges=True,
        ),
        EntityKind(
            "storedProcedure", "storedProcedures", (("databaseSchema", "databaseSchema"),),
            ("storedProcedureCode", "storedProcedureType", "sourceUrl"),
            required={"storedProcedureCode": {}}, has_edges=True,
        ),
        EntityKind(
            "query", "queries", (("service", "databaseService"),),
            ("query", "duration", "queryDate", "dialect", "query_type", "exclude_usage"),
            {"owners": "reference", "queryUsedIn": "reference", "users": "name"},
            {"query": "-"}, kind="query", has_properties=False,
        ),
    )
}  # fmt: skip
RANKS: Final = {type: rank for rank, type in enumerate(KINDS)}
# Terms in the glossary of Lumos have no relations, since these would be mutual.
LUMOS_TERM: Final = KINDS["glossaryTerm"]._replace(references={}, plain_fields=(), has_tags=False)
JOB: Final = KINDS["pipeline"]._replace(
    plain_fields=("scheduleInterval",), references={}, has_tags=False, has_edges=False
)
# For items whose kind OpenMetadata does not have.
GENERIC: Final = EntityKind(
    "container", "containers", (("service", "storageService"),), references={}, has_tags=False
)
_BY_KIND: Final = {spec.kind: spec for spec in KINDS.values() if spec.kind}
# Kinds that can store any other entity exactly.
_EXACT_KINDS: Final = frozenset(kind for kind, spec in _BY_KIND.items() if spec.has_properties)


# Names


def urn_of(type: str, fqn: str) -> str:
    """The URN of an entity: `lumos:...` if other catalogs can also have the entity."""
    parts = split_fqn(fqn)
    match type, parts:
        case "tag", _:
            return entity_urn("tag", tag_of({"tagFQN": fqn, "source": _TAGS}) or fqn)
        case "domain", _:
            return entity_urn("domain", domain_of({_FQN: fqn}))
        case "dataProduct" | "glossary", (name,):
            urn = entity_urn(KINDS[type].kind, decode_name(name))
        case "query", (service, name) if service == LUMOS_SERVICE:
            return entity_urn("query", *decode_name(name).split("/"))
        case "query", (service, name):
            urn = entity_urn("query", decode_name(service), decode_name(name))
        case "pipeline" | "dashboard" | "chart" | "mlmodel", (service, name):
            tool, cluster = tool_of_service(service)
            urn = entity_urn(KINDS[type].kind, tool, decode_name(name), *filter(None, (cluster,)))
        case _:
            urn = ""
    if (original := original_urn(urn)) is not None and locate(original) == (type, fqn):
        return original
    return urn if locate(urn) == (type, fqn) else f"{CATALOG}:{type}:{fqn}"


def locate(urn: str) -> tuple[str, str] | None:
    """The type and qualified name of a URN, or None if OpenMetadata has no such kind.

    An entity of another catalog is stored as an entity of the nearest kind.
    """
    if (match := _NATIVE_URN.match(urn)) is not None:
        is_known = match["type"] in KINDS and match["type"] not in ("user", "team", "glossaryTerm")
        return (match["type"], match["fqn"]) if is_known and all(split_fqn(match["fqn"])) else None
    if entity_id(urn) is None:
        urn = nearest_urn(urn, _EXACT_KINDS) or urn
    parts, spec = entity_id(urn), _BY_KIND.get(kind_in_urn(urn))
    if parts is None or spec is None:
        return None
    match spec.type, parts:
        case "tag", _:
            return "tag", tag_fqn("/".join(parts))
        case "domain", _:
            return "domain", domain_fqn("/".join(parts))
        case "dataProduct" | "glossary", _:
            return spec.type, join_fqn(_encode_id("/".join(parts)))
        case "query", (id,):
            return "query", join_fqn(LUMOS_SERVICE, _encode_id(id))
        case "query", (service, *names):
            return "query", join_fqn(_encode_id(service), _encode_id("/".join(names)))
        case (("pipeline" | "mlmodel"), (tool, id, cluster)) if cluster != _PROD:
            return spec.type, join_fqn(service_of_tool(tool, cluster), _encode_id(id))
        case _, (tool, id):
            return spec.type, join_fqn(service_of_tool(tool), _encode_id(id))
        case _:
            return None


def is_shared(urn: str) -> bool:
    """Whether a URN is one of OpenMetadata, or one that all catalogs share."""
    return entity_id(urn) is not None or urn.startswith(f"{CATALOG}:")


def canonical_urn(urn: str) -> str:
    """Convert a URN of an earlier snapshot format."""
    location = locate(urn)
    return urn if location is None else urn_of(*location)


def lumos_query_fqn(urn: str) -> str:
    """The qualified name of a query in the service of Lumos."""
    return join_fqn(LUMOS_SERVICE, _encode_id("/".join(entity_id(urn) or ())))


def task_of(urn: str) -> tuple[str, str] | None:
    """The URN of the pipeline and the name of a task, or None for other URNs."""
    parts = entity_id(urn) if kind_in_urn(urn) == "task" else None
    match parts:
        case (tool, pipeline, task):
            return entity_urn("pipeline", tool, pipeline), _encode_id(task)
        case (tool, pipeline, task, cluster):
            return entity_urn("pipeline", tool, pipeline, cluster), _encode_id(task)
        case _:
            return None


def task_urn(pipeline: str, task: str) -> str:
    """The URN of a task, given that of its pipeline."""
    tool, id, *cluster = entity_id(pipeline) or ("", pipeline)
    return entity_urn("task", tool, id, decode_name(task), *cluster)


def service_type(spec: EntityKind, fqn: str) -> str:
    """The type of a new service of an entity."""
    service = spec.parents[0][1]
    known = _SERVICE_TYPE_BY_TOOL.get(service.removesuffix("Service"), {})
    custom: str = KINDS[service].required["serviceType"]
    return known.get(tool_of_service(split_fqn(fqn)[0])[0], custom)


def _encode_id(name: str) -> str:
    return shorten_name(encode_name(name))


# Records


def record_of(spec: EntityKind, entity: Mapping[str, Any]) -> Record:
    """The record of an entity, without defaults and derived values."""
    record: Record = {}
    for field in spec.fields:
        value = entity.get(field)
        if value is False and field in _FALSE_BY_DEFAULT:
            continue
        value = value if field in FREE_FORM else to_portable(value)
        if value not in (None, "", [], {}) and value != spec.required.get(field):
            record[field] = value
    if record.get("description") in (PLACEHOLDER_TEXT, EMPTY_DESCRIPTION):
        del record["description"]
    if is_placeholder_email(record.get("email")):
        del record["email"]
    internal = (EXACT_ITEM, TASKS)
    properties = {
        key: value for key, value in (entity.get("extension") or {}).items() if key not in internal
    }
    if spec.has_properties and properties:
        record["extension"] = properties
    type = entity.get("serviceType")
    if spec.kind and spec.has_edges and type not in (None, service_type(spec, entity[_FQN])):
        record["serviceType"] = type
    return record


def to_portable(value: Any) -> Any:
    """A value without identifiers and other fields of its server."""
    match value:
        case {"tagFQN": _}:
            return {key: value[key] for key in _LABEL_KEYS if key in value}
        case {"id": id, "type": type}:
            fqn = value.get(_FQN) or join_fqn(value.get("name") or "")
            return {"type": type, **({_FQN: fqn} if fqn else {"id": id})}
        case dict():
            values = {
                key: to_portable(each) for key, each in value.items() if key not in _SERVER_FIELDS
            }
            return {key: each for key, each in values.items() if each not in (None, [], {})}
        case list():
            return [
                to_portable(each)
                for each in value
                # Without inherited references and derived labels.
                if not isinstance(each, dict)
                or not (each.get("inherited") or ("tagFQN" in each and not is_direct_label(each)))
            ]
        case _:
            return value


def is_placeholder(spec: EntityKind, entity: Mapping[str, Any]) -> bool:
    """Whether an entity only exists because it contains others or others refer to it."""
    if {EXACT_ITEM, TASKS} & (entity.get("extension") or {}).keys():
        return False
    record = record_of(spec, entity)
    if record.keys() & {"displayName", "tags", "extension", "email", *spec.references}:
        return False
    if description := entity.get("description"):
        return bool(description == PLACEHOLDER_TEXT)
    fqn = entity[_FQN]
    match spec.type:
        case "tag":
            return "style" not in record and split_fqn(fqn)[0] == LUMOS
        case "domain":
            return not {"style", "domainType"} & record.keys()
        case "glossaryTerm":
            return split_fqn(fqn)[0] == LUMOS
        case "user":
            return is_placeholder_email(entity.get("email"))
        case "team":
            return entity.get("isJoinable") is False
        case _:
            return False


# Items


def read_item(spec: EntityKind, fqn: str, record: Record) -> Any:
    """Decode an item; values that its fields do not reproduce go into `raw`."""
    item = _decode(spec, fqn, record)
    reproduced = write_record(spec, item)
    rest = {
        key: value
        for key, value in record.items()
        if key not in ("extension", "edges") and not _is_reproduced(key, value, reproduced.get(key))
    }
    known_edges = reproduced.get("edges") or ()
    if edges := [each for each in record.get("edges") or () if each not in known_edges]:
        rest["edges"] = edges
    others = {k: v for k, v in record.get("extension", {}).items() if not isinstance(v, str)}
    if others:
        rest["extension"] = others
    if spec.type in ("tag", "glossaryTerm") and split_fqn(fqn)[0] != LUMOS:
        # Without its parent, it would be written as a tag or term of Lumos.
        rest[spec.parents[0][0]] = split_fqn(fqn)[0]
    return msgspec.structs.replace(item, raw={CATALOG: rest}) if rest else item


def _is_reproduced(key: str, value: Any, reproduced: Any) -> bool:
    if reproduced is None:
        return False
    if key == "description":
        return not has_markup(value)
    if key == "tags":
        return all((e["labelType"], e["state"]) == ("Manual", "Confirmed") for e in value)
    return len(value) == 1 if key == "domains" else is_same(value, reproduced)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of records are equal; labels and references have no order."""
    if one == other or not (isinstance(one, list) and isinstance(other, list)):
        return bool(one == other)
    sides = (one, other)
    is_set = all(
        isinstance(e, dict) and {"tagFQN", _FQN, "term"} & e.keys() for s in sides for e in s
    )
    return is_set and len({tuple(sorted(map(str, side))) for side in sides}) == 1


def _decode(spec: EntityKind, fqn: str, record: Record) -> Any:
    """Decode the fields of an item that all catalogs share."""
    name = decode_name(split_fqn(fqn)[-1])
    title = record.get("displayName")
    description = unescape_html(record.get("description") or "") or None
    domains = record.get("domains") or ()
    owners = tuple(
        sorted(
            {owner_of({**e, "name": split_fqn(e[_FQN])[0]}) for e in record.get("owners") or ()},
            key=lambda owner: (owner.kind, owner.name),
        )
    )
    texts = record.get("extension", {}).items()
    properties = {f"{_PROPERTY_PREFIX}{key}": text for key, text in texts if isinstance(text, str)}
    if spec.type == "user":
        return User(name=name, display_name=title, email=record.get("email"))
    if spec.type == "team":
        members = (decode_name(split_fqn(each[_FQN])[0]) for each in record.get("users") or ())
        return Group(
            name=name, display_name=title, description=description, email=record.get("email"),
            members=tuple(sorted(set(members))),
        )  # fmt: skip
    if spec == JOB:
        cron = record.get("scheduleInterval")
        schedule = Schedule(cron=cron) if cron else None
        return Job(
            urn=name, name=title or "", platform="", description=description, schedule=schedule
        )
    if spec.type == "glossaryTerm":
        parts = split_fqn(fqn)
        has_parent_term = len(parts) > 2 and parts[0] != LUMOS
        related = (
            term_named(each.get("term", each)[_FQN]) for each in record.get("relatedTerms") or ()
        )
        return GlossaryTerm(
            name=term_named(fqn), display_name=title, definition=description,
            parent=join_fqn(*parts[:-1]) if has_parent_term else None,
            related=tuple(sorted(set(related))),
            domain=domain_of(domains[0]) if domains else None,
            owners=tuple(owner.name for owner in owners),
            properties=properties,
        )  # fmt: skip
    tags, terms = read_labels(record.get("tags") or ())
    references = {
        "domain": tuple(entity_urn("domain", domain_of(each)) for each in domains),
        "terms": terms,
        **_relations(spec, record),
    }
    parents = split_fqn(fqn)[:-1]
    urn = name if spec == GENERIC else urn_of(spec.type, fqn)
    return CatalogEntity(
        urn=urn,
        kind="" if spec == GENERIC else shared_kind(urn),
        display_name=title,
        description=description,
        parent=urn_of("domain", join_fqn(*parents)) if spec.type == "domain" and parents else None,
        owners=owners,
        tags=tags,
        references={relation: ends for relation, ends in references.items() if ends},
        properties=properties,
    )


def _relations(spec: EntityKind, record: Record) -> dict[str, tuple[str, ...]]:
    relations: dict[str, tuple[str, ...]] = {}
    if charts := record.get("charts"):
        relations["charts"] = tuple(sorted(urn_of("chart", each[_FQN]) for each in charts))
    if used := record.get("queryUsedIn"):
        relations["datasets"] = tuple(
            sorted(each[_FQN] for each in used if each["type"] == DATASET)
        )
    if spec.type in _EDGE_RELATIONS:
        starts = (each["from"] for each in record.get("edges") or ())
        relations[_EDGE_RELATIONS[spec.type]] = tuple(sorted(filter(is_dataset_urn, starts)))
    return relations


def write_record(spec: EntityKind, item: Any) -> Record:
    """Encode an item as a record, without the fields that its kind of entity does not have."""
    record: Record = {}
    title = item.name if isinstance(item, Job) else item.display_name
    description = getattr(
        item, "definition" if isinstance(item, GlossaryTerm) else "description", None
    )
    if title:
        record["displayName"] = without_nul(title)
    if description and (text := escape_html(without_lost_characters(description))):
        record["description"] = text
    if spec.has_properties:
        properties = {
            key.removeprefix(_PROPERTY_PREFIX): text
            for key, text in item.properties.items()
            if key.startswith(_PROPERTY_PREFIX) and text and without_nul(text) == text
        }
        _set_if_any(record, "extension", properties)
    match item:
        case User() | Group():
            if (
                item.email
                and _MAIL_ADDRESS.fullmatch(item.email)
                and len(item.email) <= _MAX_MAIL_LENGTH
            ):
                record["email"] = item.email
            if isinstance(item, Group) and item.members:
                members = sorted({user_name(name) for name in item.members})
                record["users"] = [{"type": "user", _FQN: join_fqn(name)} for name in members]
        case Job():
            if item.schedule is not None and item.schedule.cron:
                record["scheduleInterval"] = without_nul(item.schedule.cron)
        case GlossaryTerm():
            _set_if_any(
                record, "owners", list(map(_owner_reference, storable_owners(_term_owners(item))))
            )
            related = (
                {"type": "glossaryTerm", _FQN: fqn} for fqn in sorted(map(term_fqn, item.related))
            )
            _set_if_any(
                record, "relatedTerms", [{"relationType": "relatedTo", "term": t} for t in related]
            )
            domains = [] if item.domain is None else [item.domain]
            _set_if_any(
                record, "domains", [{"type": "domain", _FQN: domain_fqn(n)} for n in domains]
            )
        case CatalogEntity():
            _set_if_any(record, "owners", list(map(_owner_reference, storable_owners(item.owners))))
            _set_if_any(record, "tags", labels(item.tags, item.references.get("terms", ())))
            record |= _encode_relations(spec, item)
    record = {
        key: value for key, value in record.items() if key in (*spec.fields, "extension", "edges")
    }
    return _apply_raw(spec, item, record)


def _apply_raw(spec: EntityKind, item: Any, record: Record) -> Record:
    """Override values of a record with those in `raw` that do not contradict the item's fields."""
    record_in_raw = item.raw.get(CATALOG)
    if not isinstance(record_in_raw, dict):
        return record
    if isinstance(record_in_raw.get("edges"), list):
        edges = [
            {**each, "from": canonical_urn(each["from"])}
            for each in record_in_raw["edges"]
            if isinstance(each, dict) and isinstance(each.get("from"), str)
        ]
        record_in_raw = {**record_in_raw, "edges": edges}
    if isinstance(item, CatalogEntity) and item == CatalogEntity(
        urn=item.urn, kind=item.kind, raw=item.raw
    ):
        # Snapshots of format 1.0 have everything in the record.
        allowed = {*spec.fields, "extension", "declared", "edges", "serviceType"}
        return {key: value for key, value in record_in_raw.items() if key in allowed}
    for key in ("declared", "serviceType"):
        if key in record_in_raw and spec.type != "user":
            record[key] = record_in_raw[key]
    for key in spec.fields:
        changed = {**record, key: record_in_raw.get(key)}
        if changed[key] not in (None, [], {}) and _is_same_item(spec, record, changed):
            record = changed
    if isinstance(record_in_raw.get("extension"), dict) and spec.has_properties:
        record["extension"] = {**record_in_raw["extension"], **record.get("extension", {})}
    if isinstance(record_in_raw.get("edges"), list) and spec.has_edges:
        exact = {each["from"]: each for each in record_in_raw["edges"]}
        starts = {each["from"] for each in record.get("edges", ())}
        remaining_edges = [
            each
            for start, each in exact.items()
            if start in starts or spec.type not in _EDGE_RELATIONS or not is_dataset_urn(start)
        ]
        new = [each for each in record.get("edges", ()) if each["from"] not in exact]
        _set_if_any(
            record, "edges", sorted([*remaining_edges, *new], key=lambda each: each["from"])
        )
    return record


def _is_same_item(spec: EntityKind, record: Record, changed: Record) -> bool:
    """Whether two records are decoded to the same item; the changed one may be invalid."""
    try:
        return bool(_decode(spec, "x.x", changed) == _decode(spec, "x.x", record))
    except (KeyError, TypeError, AttributeError, IndexError):
        return False


def _encode_relations(spec: EntityKind, item: CatalogEntity) -> Record:
    record: Record = {}
    domains = [parts for urn in item.references.get("domain", ()) if (parts := entity_id(urn))]
    names = ["/".join(parts) for parts in domains[:1]]
    _set_if_any(record, "domains", [{"type": "domain", _FQN: domain_fqn(name)} for name in names])
    charts = sorted(filter(None, map(locate, item.references.get("charts", ()))))
    _set_if_any(
        record, "charts", [{"type": type, _FQN: fqn} for type, fqn in charts if type == "chart"]
    )
    datasets = sorted(filter(is_dataset_urn, item.references.get("datasets", ())))
    if spec.type == "query":
        _set_if_any(record, "queryUsedIn", [{"type": DATASET, _FQN: urn} for urn in datasets])
    if spec.type in _EDGE_RELATIONS:
        ends = sorted(filter(is_dataset_urn, item.references.get(_EDGE_RELATIONS[spec.type], ())))
        _set_if_any(
            record, "edges", [{"from": urn, "source": "Manual"} for urn in dict.fromkeys(ends)]
        )
    return record


def labels(tags: Iterable[str], terms: Iterable[str]) -> list[dict[str, Any]]:
    """The labels of an entity with these tags and terms."""
    named = [(_TAGS, tag_fqn(name)) for name in tags] + [(_TERMS, term_fqn(n)) for n in terms]
    # If a tag and a term have the same qualified name, the server only keeps the tag.
    sources = {fqn: source for source, fqn in reversed(named)}
    return [
        {"tagFQN": fqn, "source": source, "labelType": "Manual", "state": "Confirmed"}
        for source, fqn in sorted((source, fqn) for fqn, source in sources.items())
    ]


def _term_owners(term: GlossaryTerm) -> list[Owner]:
    """The owners of a term; `raw` says which of them are groups."""
    record_in_raw = term.raw.get(CATALOG)
    known = record_in_raw.get("owners") if isinstance(record_in_raw, dict) else None
    owners = known if isinstance(known, list) else []
    teams = {decode_name(split_fqn(each[_FQN])[0]) for each in owners if each.get("type") == "team"}
    return [Owner(name=name, kind="group" if name in teams else "user") for name in term.owners]


def _owner_reference(owner: Owner) -> dict[str, str]:
    is_team = owner.kind == "group"
    name = team_name(owner.name) if is_team else user_name(owner.name)
    return {"type": "team" if is_team else "user", _FQN: join_fqn(name)}


def _set_if_any(record: Record, key: str, value: Any) -> None:
    if value:
        record[key] = value
