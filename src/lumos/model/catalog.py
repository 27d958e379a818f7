"""What catalogs and snapshots hold: datasets, glossary terms, people, jobs, and the rest."""

from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from lumos.model import lineage
from lumos.model.dataset import Aspect, Cost, Dataset, Properties, Schedule

# What only one catalog knows of, by that catalog's name, as it was found there.
Carried: TypeAlias = dict[str, Any]


class Timestamps(Aspect, frozen=True, kw_only=True):
    """When a dataset came to be, was last changed and was last read."""

    created: datetime | None = None
    last_modified: datetime | None = None
    last_accessed: datetime | None = None


class Entry(Dataset, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset with what no aspect holds."""

    timestamps: Timestamps | None = None
    deleted: bool = False
    carried: Carried = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset, **beside: Any) -> "Entry":
        """The entry of a dataset, with what is known beside its aspects."""
        return cls(**(msgspec.structs.asdict(dataset) | beside))

    @property
    def dataset(self) -> Dataset:
        """The dataset without what no aspect holds."""
        return Dataset(**{name: getattr(self, name) for name in Dataset.__struct_fields__})


class GlossaryTerm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A word of the business and what it means; `parent` is the term or group above it."""

    name: str
    display_name: str | None = None
    definition: str | None = None
    parent: str | None = None
    related: tuple[str, ...] = ()
    domain: str | None = None
    owners: tuple[str, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    carried: Carried = msgspec.field(default_factory=dict)


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody who owns or reads datasets."""

    name: str
    display_name: str | None = None
    email: str | None = None
    title: str | None = None
    active: bool = True
    groups: tuple[str, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    carried: Carried = msgspec.field(default_factory=dict)


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Several users under one name."""

    name: str
    display_name: str | None = None
    description: str | None = None
    email: str | None = None
    members: tuple[str, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    carried: Carried = msgspec.field(default_factory=dict)


class Job(lineage.Job, frozen=True, kw_only=True, omit_defaults=True):
    """A job with its runs and its cost."""

    description: str | None = None
    schedule: Schedule | None = None
    cost: Cost | None = None
    runs: tuple[lineage.JobRun, ...] = ()
    properties: Properties = msgspec.field(default_factory=dict)
    carried: Carried = msgspec.field(default_factory=dict)


class Other(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that Lumos has no kind for, by the URN that its own catalog gave it."""

    urn: str
    carried: Carried = msgspec.field(default_factory=dict)


Item: TypeAlias = Dataset | GlossaryTerm | User | Group | Job | Other
