"""The header of a snapshot, and its kinds of entries."""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User

FORMAT: Final = "lumos-snapshot"
FORMAT_VERSION: Final = "1.1"

SnapshotScope: TypeAlias = Literal["all", "selected", "incremental"]


class SnapshotSelection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The filters of a `selected` snapshot."""

    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


class SnapshotBase(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot that an `incremental` snapshot is based on, identified by its overall hash."""

    exported_at: datetime
    hash: str


class SnapshotCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of entries in a snapshot.

    `deleted` datasets are included in `datasets`; edges are counted once, as upstream edges;
    `owners` and `tags` count distinct names on datasets.
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

    @property
    def live(self) -> int:
        """The number of datasets that are not deleted; users are shown this number."""
        return self.datasets - self.deleted


class SnapshotHashes(msgspec.Struct, frozen=True, kw_only=True):
    """SHA-256 hashes of the header and of each kind of entry, and an overall hash.

    The hash of a kind is the sum of the content hashes of its entries, so it does not depend on
    their order.
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
    """The metadata of an export: time, source and scope.

    `omitted` aspects were not exported, so entries may still have them.
    """

    exported_at: datetime
    exported_by: str = "lumos"
    platform: str | None = None
    instance: str | None = None
    environment: str | None = None
    target_platform: str | None = None
    scope: SnapshotScope = "all"
    selection: SnapshotSelection | None = None
    base: SnapshotBase | None = None
    omitted: tuple[str, ...] = ()


class SnapshotHeader(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The header of a snapshot: its format, export metadata, counts and hashes."""

    format: Literal["lumos-snapshot"]
    format_version: str
    exported_at: datetime
    exported_by: str
    scope: SnapshotScope
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
        """The metadata of the export."""
        return SnapshotFacts(
            **{name: getattr(self, name) for name in SnapshotFacts.__struct_fields__}
        )


class EntryKind(NamedTuple):
    """A kind of entry.

    `plural` is the key of its list, and `key` the name of the field that identifies an entry.
    """

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
# In the order of the file. Datasets come last, after the entries to which they refer.
KINDS: Final = (GLOSSARY, USERS, GROUPS, JOBS, OTHERS, DATASETS)


def unknown_keys(kind: EntryKind, plain: object) -> Iterator[str]:
    """Yield the paths of the keys in the JSON of an entry that its kind does not have."""
    for path, _, name in _unknown(_shape(kind), plain, ""):
        yield f"{path}.{name}"


def pop_unknown_keys(kind: EntryKind, plain: object) -> dict[str, Any]:
    """Remove unknown keys from the JSON of an entry; returns their values by path."""
    unknown = list(_unknown(_shape(kind), plain, ""))
    return {f"{path}.{name}".removeprefix("."): parent.pop(name) for path, parent, name in unknown}


@cache
def _shape(kind: EntryKind) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(kind.type)


def _unknown(
    shape: msgspec.inspect.Type, plain: object, path: str
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the unknown keys, each after the path of its parent and the parent."""
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
