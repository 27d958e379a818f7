"""Converts rows of PostgreSQL's catalog to datasets and types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from lumos.model.conversions.sql_types import type_from_sql
from lumos.model.dataset import Definition, Location, Owner, Statistics
from lumos.model.discovery import FoundDataset, SourceMetadata
from lumos.model.schema import Field, Schema
from lumos.model.type_path import MAX_EXPANSION_LENGTH, TOO_DEEP, TOO_LARGE
from lumos.model.types import MAX_DEPTH, Array, DataType, Enum, Member, Struct, Unknown
from lumos.sources.relational import content_of, path_of, without_passwords

DIALECT: Final = "postgres"
VIEWS: Final = ("v", "m")
PARTITIONED: Final = "p"
_FORMATS: Final = {
    "r": "table",
    "p": "table",
    "v": "view",
    "m": "materialized_view",
    "f": "foreign_table",
}
_PERSISTENCE: Final = {"u": "unlogged"}
_GENERATED: Final = {"s": "STORED", "v": "VIRTUAL"}
_IDENTITY: Final = {"a": "ALWAYS", "d": "BY DEFAULT"}


class PostgresTypeUse(NamedTuple):
    """A type with its modifier; `text` is, for example, `numeric(10,2)`."""

    oid: int
    modifier: int
    text: str


class NativeType(NamedTuple):
    """A type of the catalog; domains have a base, arrays an element type, composites members."""

    oid: int
    kind: str
    name: str
    prefix: str
    element: int
    base: int
    base_modifier: int
    base_text: str | None
    required: bool
    default: str | None
    labels: list[str]
    members: list[tuple[str, int, int, str]]

    @property
    def parts(self) -> list[tuple[str, PostgresTypeUse]]:
        """The members by name."""
        return [
            (name, PostgresTypeUse(oid, modifier, text))
            for name, oid, modifier, text in self.members
        ]


class PostgresTypes:
    """The types of the columns of a database."""

    def __init__(self, types: Iterable[NativeType]) -> None:
        self._types = {native.oid: native for native in types}
        self._cache: dict[tuple[int, int], DataType] = {}

    def type(self, use: PostgresTypeUse) -> DataType:
        """The data type; types without an equivalent are UNKNOWN with their native name."""
        # Without recursion, since types may be nested thousands of levels deep.
        stack = [use]
        started: set[tuple[int, int]] = set()
        while stack:
            inner = stack[-1]
            key = inner[:2]
            if key in self._cache:
                stack.pop()
                continue
            missing = [part for part in self._parts(inner) if part[:2] not in self._cache]
            if missing and key not in started:
                started.add(key)
                stack.extend(missing)
            else:
                self._cache[key] = self._convert(inner)
                stack.pop()
        return self._cache[use[:2]]

    def is_required(self, oid: int) -> bool:
        """Whether a domain does not allow nulls."""
        return any(domain.required for domain in self._domains(oid))

    def default(self, oid: int) -> str | None:
        """The default value of a domain."""
        defaults = (domain.default for domain in self._domains(oid))
        return next((default for default in defaults if default is not None), None)

    def _domains(self, oid: int) -> Iterator[NativeType]:
        while (found := self._types.get(oid)) is not None and found.kind == "d":
            yield found
            oid = found.base

    def _parts(self, use: PostgresTypeUse) -> list[PostgresTypeUse]:
        native = self._types.get(use.oid)
        if native is None:
            return []
        if _is_array(native, use):
            return [_element(native, use)]
        if native.kind == "d":
            return [_base(native)]
        return [part for _, part in native.parts]

    def _convert(self, use: PostgresTypeUse) -> DataType:
        native = self._types.get(use.oid)
        if native is None:
            return Unknown(use.text)
        if _is_array(native, use):
            return _within_limits(Array(self._part(_element(native, use))))
        match native.kind:
            case "d":
                return self._cache[_base(native)[:2]]
            case "e":
                return Enum(native.labels)
            case "c":
                members = [Member(name, self._part(part)) for name, part in native.parts]
                return _within_limits(Struct(members))
            case "b" if _is_zoned_time(use.text):
                # There is no data type for times of day with a zone.
                return Unknown(use.text)
            case "b":
                return type_from_sql(use.text.removeprefix(native.prefix), "postgres")
            case _:
                return Unknown(use.text.removeprefix(native.prefix))

    def _part(self, use: PostgresTypeUse) -> DataType:
        part = self._cache.get(use[:2], Unknown(f"recursive:{use.text}"))
        return TOO_DEEP if part.depth >= MAX_DEPTH else part


def _is_zoned_time(text: str) -> bool:
    return text.startswith("time") and not text.startswith("timestamp") and "with time zone" in text


def _is_array(native: NativeType, use: PostgresTypeUse) -> bool:
    # Some scalar types, such as points, have elements too.
    return bool(native.element) and use.text.endswith("[]")


def _element(native: NativeType, use: PostgresTypeUse) -> PostgresTypeUse:
    return PostgresTypeUse(native.element, use.modifier, use.text.removesuffix("[]"))


def _base(native: NativeType) -> PostgresTypeUse:
    return PostgresTypeUse(native.base, native.base_modifier, native.base_text or "")


def _within_limits(type: DataType) -> DataType:
    return TOO_LARGE if len(type.text) > MAX_EXPANSION_LENGTH else type


class PostgresRelation(NamedTuple):
    """A table or view in the catalog."""

    oid: int
    schema: str
    name: str
    kind: str
    persistence: str
    owner: str | None
    owner_logs_in: bool | None
    comment: str | None
    partitioning: str | None
    server: str | None
    extension: str | None
    rows: float
    pages: int


class PostgresColumn(NamedTuple):
    """A column in the catalog."""

    relation: int
    number: int
    name: str
    type: int
    modifier: int
    type_text: str
    required: bool
    identity: str
    generated: str
    default: str | None
    comment: str | None


class UniqueIndex(NamedTuple):
    """A unique index: the numbers of its columns."""

    primary: bool
    name: str
    columns: tuple[int, ...]


class RelationSize(NamedTuple):
    """The last known size of a table; may be outdated or unknown."""

    rows: float
    pages: int


class PostgresCatalog(NamedTuple):
    """The contents of the catalog except for columns, from one consistent state."""

    address: str
    database: str
    cluster: str
    block_size: int
    types: PostgresTypes
    keys: Mapping[int, Sequence[UniqueIndex]]
    constraints: Mapping[int, Mapping[str, str]]
    partition_columns: Mapping[int, set[int]]
    partitions: Mapping[int, Sequence[RelationSize]]
    definitions: Mapping[int, str]


def dataset_of(
    relation: PostgresRelation, columns: Sequence[PostgresColumn], catalog: PostgresCatalog
) -> FoundDataset:
    """The dataset for a table or view."""
    path = path_of(catalog.database, relation.schema, relation.name)
    schema = _schema(relation, columns, catalog)
    format = _FORMATS[relation.kind]
    source_metadata = _source_metadata(relation, catalog)
    return FoundDataset(
        path=path,
        name=f"{relation.schema}.{relation.name}",
        format=format,
        location=Location(
            uri=f"{catalog.address}/{path.partition('/')[2]}",
            partitioning=relation.partitioning,
            partition_keys=tuple(field.name for field in schema.fields if field.partition),
            identity=f"{catalog.cluster}/{relation.oid}",
        ),
        schema=schema,
        statistics=_statistics(relation, catalog),
        drift=(),
        content=content_of(format, relation.partitioning, source_metadata, schema),
        source_metadata=source_metadata,
    )


def _schema(
    relation: PostgresRelation, columns: Sequence[PostgresColumn], catalog: PostgresCatalog
) -> Schema:
    keys = key_columns(catalog.keys.get(relation.oid, ()), columns)
    partitions = catalog.partition_columns.get(relation.oid, ())
    types = catalog.types
    # The column numbers of a view change when it is recreated.
    is_stable = relation.kind not in VIEWS
    return Schema(
        fields=tuple(
            Field(
                name=column.name,
                type=types.type(PostgresTypeUse(column.type, column.modifier, column.type_text)),
                nullable=not (column.required or types.is_required(column.type)),
                key=column.number in keys,
                partition=column.number in partitions,
                default=_default(column, types),
                description=column.comment,
                native_type=column.type_text,
                field_id=column.number if is_stable else None,
            )
            for column in columns
        )
    )


def key_columns(keys: Sequence[UniqueIndex], columns: Iterable[PostgresColumn]) -> tuple[int, ...]:
    """The columns of the primary key, or else of the shortest unique key without nulls."""
    if not keys:
        return ()
    required = {column.number for column in columns if column.required}
    usable = [key for key in keys if key.primary or required.issuperset(key.columns)]
    best = min(usable, key=lambda key: (not key.primary, len(key.columns), key.name), default=None)
    return () if best is None else best.columns


def _default(column: PostgresColumn, types: PostgresTypes) -> str | None:
    if column.identity:
        return f"GENERATED {_IDENTITY.get(column.identity, column.identity)} AS IDENTITY"
    if column.generated:
        stored = _GENERATED.get(column.generated, "")
        text = without_passwords(column.default or "")
        return f"GENERATED ALWAYS AS ({text}) {stored}".rstrip()
    default = types.default(column.type) if column.default is None else column.default
    return None if default is None else without_passwords(default)


def _statistics(relation: PostgresRelation, catalog: PostgresCatalog) -> Statistics:
    if relation.kind == "v":
        return Statistics()
    sizes = catalog.partitions.get(relation.oid, ())
    if relation.kind != PARTITIONED:
        sizes = (RelationSize(relation.rows, relation.pages),)
    # The row count is unknown before the first ANALYZE.
    counted = [size.rows for size in sizes if size.rows >= 0]
    pages = sum(max(size.pages, 0) for size in sizes)
    return Statistics(
        row_count=round(sum(counted)) if counted else None,
        total_size_bytes=pages * catalog.block_size,
        total_size_exact=False,
    )


def _source_metadata(relation: PostgresRelation, catalog: PostgresCatalog) -> SourceMetadata:
    properties = {
        "server": relation.server,
        "extension": relation.extension,
        "persistence": _PERSISTENCE.get(relation.persistence),
        **{
            f"constraint.{name}": without_passwords(text)
            for name, text in catalog.constraints.get(relation.oid, {}).items()
        },
    }
    definition = catalog.definitions.get(relation.oid)
    return SourceMetadata(
        description=relation.comment,
        owner=None
        if relation.owner is None
        else Owner(name=relation.owner, kind="user" if relation.owner_logs_in else "group"),
        definition=None
        if definition is None
        else Definition(sql=without_passwords(definition.strip()), dialect=DIALECT),
        properties={name: text for name, text in properties.items() if text is not None},
    )
