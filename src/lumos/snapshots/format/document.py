"""What a snapshot begins with, and which kinds of entries follow."""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User

FORMAT: Final = "lumos-snapshot"
FORMAT_VERSION: Final = "1.1"

Scope: TypeAlias = Literal["all", "selected", "incremental"]


class SnapshotSelection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which datasets a `selected` snapshot was asked for."""

    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


class SnapshotBase(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot that an `incremental` one goes on from, known by its overall hash."""

    exported_at: datetime
    hash: str


class SnapshotCounts(msgspec.Struct, frozen=True, kw_only=True):
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


class SnapshotHashes(msgspec.Struct, frozen=True, kw_only=True):
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


class SnapshotFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    selection: SnapshotSelection | None = None
    base: SnapshotBase | None = None
    omitted: tuple[str, ...] = ()


class SnapshotHeader(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    selection: SnapshotSelection | None = None
    base: SnapshotBase | None = None
    omitted: tuple[str, ...] = ()
    counts: SnapshotCounts | None = None
    hashes: SnapshotHashes | None = None

    @property
    def facts(self) -> SnapshotFacts:
        """What was said of the snapshot when it was exported."""
        return SnapshotFacts(
            **{name: getattr(self, name) for name in SnapshotFacts.__struct_fields__}
        )


class EntryKind(NamedTuple):
    """One kind of entries: the key of their list, the word for one of them, their type and name."""

    plural: str
    singular: str
    type: type[Any]
    key: str


GLOSSARY: Final = EntryKind("glossary", "term", GlossaryTerm, "name")
USERS: Final = EntryKind("users", "user", User, "name")
GROUPS: Final = EntryKind("groups", "group", Group, "name")
JOBS: Final = EntryKind("jobs", "job", Job, "urn")
OTHERS: Final = EntryKind("others", "other", CatalogEntity, "urn")
DATASETS: Final = EntryKind("datasets", "dataset", CatalogEntry, "urn")
# In the order in which they stand in a file: datasets are many, and what they refer to is known
# by then.
KINDS: Final = (GLOSSARY, USERS, GROUPS, JOBS, OTHERS, DATASETS)


def unknown_keys(kind: EntryKind, plain: object) -> Iterator[str]:
    """The paths of all keys in an entry's JSON that an entry of that kind does not have."""
    for path, _, name in _unknown(_shape(kind), plain, ""):
        yield f"{path}.{name}"


def take_unknown(kind: EntryKind, plain: object) -> dict[str, Any]:
    """All that an entry of that kind has no place for, taken out of its JSON, by its path."""
    strangers = list(_unknown(_shape(kind), plain, ""))
    return {
        f"{path}.{name}".removeprefix("."): parent.pop(name) for path, parent, name in strangers
    }


@cache
def _shape(kind: EntryKind) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(kind.type)


def _unknown(
    shape: msgspec.inspect.Type, plain: object, path: str
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The keys, each with the object that it stands in and the path of that."""
    match shape, plain:
        case msgspec.inspect.StructType(), dict():
            fields = {field.encode_name: field.type for field in shape.fields}
            for name, value in plain.items():
                if name in fields:
                    yield from _unknown(fields[name], value, f"{path}.{name}")
                else:
                    yield path, plain, name
        case msgspec.inspect.VarTupleType(), list():
            for index, value in enumerate(plain):
                yield from _unknown(shape.item_type, value, f"{path}[{index}]")
        case msgspec.inspect.DictType(), dict():
            for name, value in plain.items():
                yield from _unknown(shape.value_type, value, f"{path}.{name}")
        case msgspec.inspect.UnionType(), dict() | list():
            for option in shape.types:
                yield from _unknown(option, plain, path)
