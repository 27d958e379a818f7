"""Items of catalogs and snapshots: datasets, glossary terms, users, groups, jobs and others."""

from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from lumos.model.dataset import Aspect, Cost, Dataset, Properties, Schedule
from lumos.model.lineage import JobRun

# Fields that only one catalog has, by catalog name, as read from it.
Extras: TypeAlias = dict[str, Any]


class Timestamps(Aspect, frozen=True, kw_only=True):
    """When a dataset was created, last modified and last accessed."""

    created: datetime | None = None
    last_modified: datetime | None = None
    last_accessed: datetime | None = None


class CatalogEntry(Dataset, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset with fields that belong to no aspect."""

    timestamps: Timestamps | None = None
    deleted: bool = False
    carried: Extras = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset, **beside: Any) -> "CatalogEntry":
        """The entry of a dataset with additional fields."""
        return cls(**(msgspec.structs.asdict(dataset) | beside))

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
    carried: Extras = msgspec.field(default_factory=dict)


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user who owns or reads datasets."""

    name: str
    display_name: str | None = None
    email: str | None = None
    title: str | None = None
    active: bool = True
    groups: tuple[str, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    carried: Extras = msgspec.field(default_factory=dict)


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group of users."""

    name: str
    display_name: str | None = None
    description: str | None = None
    email: str | None = None
    members: tuple[str, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    carried: Extras = msgspec.field(default_factory=dict)


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
    carried: Extras = msgspec.field(default_factory=dict)


class Other(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item of a kind that Lumos does not model, by its URN in its catalog."""

    urn: str
    carried: Extras = msgspec.field(default_factory=dict)


Item: TypeAlias = Dataset | GlossaryTerm | User | Group | Job | Other
