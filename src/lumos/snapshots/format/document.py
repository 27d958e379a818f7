"""What a snapshot begins with, and which kinds of entries follow."""

from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.catalog import CatalogEntry, GlossaryTerm, Group, Job, Other, User

FORMAT: Final = "lumos-snapshot"
FORMAT_VERSION: Final = "1.0"

Scope: TypeAlias = Literal["all", "selected", "incremental"]


class Selection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which datasets a `selected` snapshot was asked for."""

    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot that an `incremental` one goes on from, known by its overall hash."""

    exported_at: datetime
    hash: str


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much a snapshot holds.

    `deleted` are among `datasets`; an edge counts where it stands as upstream; owners and tags are
    different names on datasets.
    """

    datasets: int = 0
    deleted: int = 0
    lineage_edges: int = 0
    owners: int = 0
    tags: int = 0
    glossary: int = 0
    users: int = 0
    groups: int = 0
    jobs: int = 0
    others: int = 0


class Hashes(msgspec.Struct, frozen=True, kw_only=True):
    """SHA-256 in hexadecimal: of the header's facts, of all that is of one kind, and of both.

    The hash of a kind is the sum of its entries' content hashes, so that no order matters.
    """

    header: str
    glossary: str
    users: str
    groups: str
    jobs: str
    others: str
    datasets: str
    overall: str


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What whoever exports says of a snapshot: when and from where it was taken, and of what.

    `omitted` names aspects that were left out on purpose, so that their absence means nothing.
    """

    exported_at: datetime
    exported_by: str = "lumos"
    platform: str | None = None
    instance: str | None = None
    environment: str | None = None
    target_platform: str | None = None
    scope: Scope = "all"
    selection: Selection | None = None
    base: Base | None = None
    omitted: tuple[str, ...] = ()


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a snapshot begins with: its format, its facts and its manifest."""

    format: Literal["lumos-snapshot"]
    format_version: str
    exported_at: datetime
    exported_by: str
    scope: Scope
    platform: str | None = None
    instance: str | None = None
    environment: str | None = None
    target_platform: str | None = None
    selection: Selection | None = None
    base: Base | None = None
    omitted: tuple[str, ...] = ()
    counts: Counts | None = None
    hashes: Hashes | None = None

    @property
    def facts(self) -> Facts:
        """What was said of the snapshot when it was exported."""
        return Facts(**{name: getattr(self, name) for name in Facts.__struct_fields__})


class Kind(NamedTuple):
    """One kind of entries: the key of their list, the word for one of them, their type and name."""

    plural: str
    singular: str
    type: type[Any]
    key: str


GLOSSARY: Final = Kind("glossary", "term", GlossaryTerm, "name")
USERS: Final = Kind("users", "user", User, "name")
GROUPS: Final = Kind("groups", "group", Group, "name")
JOBS: Final = Kind("jobs", "job", Job, "urn")
OTHERS: Final = Kind("others", "other", Other, "urn")
DATASETS: Final = Kind("datasets", "dataset", CatalogEntry, "urn")
# In the order in which they stand in a file: datasets are many, and what they refer to is known
# by then.
KINDS: Final = (GLOSSARY, USERS, GROUPS, JOBS, OTHERS, DATASETS)
