"""Items of catalogs and snapshots: datasets, glossary terms, users, groups, jobs and others."""

from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from lumos.model.dataset import Aspect, Cost, Dataset, Owner, Properties, Schedule
from lumos.model.lineage import JobRun
from lumos.model.urn import InvalidUrn, Urn

# Fields that only one catalog has, by catalog name, as read from it.
Extras: TypeAlias = dict[str, Any]


class Timestamps(Aspect, frozen=True, kw_only=True):
    """The times when a dataset was created, last modified and last accessed."""

    created: datetime | None = None
    last_modified: datetime | None = None
    last_accessed: datetime | None = None


class CatalogEntry(Dataset, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset in a catalog or snapshot, with fields that do not belong to an aspect."""

    timestamps: Timestamps | None = None
    deleted: bool = False
    raw: Extras = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset, **extra_fields: Any) -> "CatalogEntry":
        """The entry of a dataset with additional fields."""
        return cls(**(msgspec.structs.asdict(dataset) | extra_fields))

    @property
    def dataset(self) -> Dataset:
        """The dataset without the additional fields."""
        return Dataset(**{name: getattr(self, name) for name in Dataset.__struct_fields__})


class GlossaryTerm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A business term and its definition; `parent` is the enclosing term or group."""

    name: str
    display_name: str | None = None
    definition: str | None = None
    parent: str | None = None
    related: tuple[str, ...] = ()
    domain: str | None = None
    owners: tuple[str, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    raw: Extras = msgspec.field(default_factory=dict)


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user who owns or reads datasets."""

    name: str
    display_name: str | None = None
    email: str | None = None
    title: str | None = None
    active: bool = True
    groups: tuple[str, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    raw: Extras = msgspec.field(default_factory=dict)


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group of users."""

    name: str
    display_name: str | None = None
    description: str | None = None
    email: str | None = None
    members: tuple[str, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    raw: Extras = msgspec.field(default_factory=dict)


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that reads and writes datasets, with its runs and its own cost."""

    urn: str
    name: str
    platform: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    owner: str | None = None
    description: str | None = None
    schedule: Schedule | None = None
    cost: Cost | None = None
    runs: tuple[JobRun, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    raw: Extras = msgspec.field(default_factory=dict)


class CatalogEntity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Anything else in a catalog, such as a tag, a domain, a dashboard or a pipeline.

    Its URN is `lumos:<kind>:<id>` for kinds that every catalog can have, and otherwise the URN in
    its own catalog. `parent` and `references` (by relation) are URNs of entities and datasets, or
    names of terms, users and groups. `raw` contains unmodelled fields, by catalog.
    """

    urn: str
    kind: str = ""
    name: str | None = None
    display_name: str | None = None
    description: str | None = None
    parent: str | None = None
    owners: tuple[Owner, ...] = ()
    tags: tuple[str, ...] = ()
    references: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    properties: Properties = msgspec.field(default_factory=dict)
    raw: Extras = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.kind:
            msgspec.structs.force_setattr(self, "kind", kind_in_urn(self.urn))


def entity_urn(kind: str, *parts: str) -> str:
    """The URN of an entity of a kind that every catalog can have; `/` separates parts of its id."""
    return f"lumos:{kind}:{'/'.join(map(_escape, parts))}"


def entity_id(urn: str) -> tuple[str, ...] | None:
    """The parts of the id in a URN of `entity_urn`, or None for a URN of a single catalog."""
    scheme, _, rest = urn.partition(":")
    kind, colon, id = rest.partition(":")
    if scheme != "lumos" or not colon or "/" in kind:
        return None
    return tuple(map(_unescape, id.split("/")))


# Kinds of entities that are nodes of lineage: they read datasets, and store no data themselves.
CONSUMER_KINDS: Final = ("chart", "dashboard", "metric", "saved_query", "virtual_dataset")


def consumer_urn(entity: str) -> str:
    """The URN of a consumer in lineage: `lumos://metabase/chart/7` of `lumos:chart:metabase/7`."""
    parts = entity_id(entity)
    assert parts is not None, f"{entity} is not a consumer"
    return str(Urn.of(parts[0], (kind_in_urn(entity), *parts[1:])))


def consumer_entity(urn: str) -> str | None:
    """The URN of the consumer with a URN in lineage, or None if the URN is not of a consumer."""
    try:
        node = Urn.parse(urn)
    except InvalidUrn:
        return None
    if len(node.path) != 2 or node.path[0] not in CONSUMER_KINDS:
        return None
    return entity_urn(node.path[0], node.platform, node.path[1])


def consumer_kind(entity: CatalogEntity) -> str:
    """The noun for a consumer: its type in the tool, such as `notebook`, or its kind."""
    return entity.properties.get("type") or entity.kind.replace("_", " ")


def consumer_name(entity: CatalogEntity) -> str:
    """The kind and the name of a consumer, as in `dashboard Revenue`."""
    return f"{consumer_kind(entity)} {entity.display_name or entity.urn}"


def kind_in_urn(urn: str) -> str:
    """The kind in a URN: `tag` in `lumos:tag:pii`, in `urn:li:tag:pii` and in `x:tag:pii`."""
    parts = urn.removeprefix("urn:").split(":", 2)
    return parts[1] if len(parts) > 2 else ""


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")


def _unescape(part: str) -> str:
    return part.replace("%2F", "/").replace("%25", "%")


SnapshotEntry: TypeAlias = Dataset | GlossaryTerm | User | Group | Job | CatalogEntity
