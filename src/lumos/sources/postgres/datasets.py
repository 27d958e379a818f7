"""Datasets made from what the catalog says of tables and views."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from lumos.model.dataset import Definition, Location, Owner, Statistics
from lumos.model.discovery import FoundDataset, SourceMetadata
from lumos.model.schema import Field, Schema, fingerprint
from lumos.model.types import quoted_text
from lumos.sources.postgres.types import Types, Use

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
_LITERAL: Final = re.compile(r"'(?:[^']|'')*'")
_PASSWORD: Final = re.compile(
    r"(password\s*=\s*)(?:''(?:\\+''|''''|[^'])*''|(?:[^\s']|'')+)", re.IGNORECASE
)
_PASSWORD_IN_ADDRESS: Final = re.compile(r"([A-Za-z][\w+.-]*://[^\s:/@']*:)(?:[^\s@']|'')+(?=@)")


class Relation(NamedTuple):
    """A table or view as the catalog lists it."""

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


class Column(NamedTuple):
    """A column as the catalog lists it."""

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


class Key(NamedTuple):
    """A unique index: the numbers of its columns."""

    primary: bool
    name: str
    columns: tuple[int, ...]


class Size(NamedTuple):
    """How much there is of a table, as the server last counted; it need not have."""

    rows: float
    pages: int


class Catalog(NamedTuple):
    """All that was read in one state of the database, columns apart."""

    address: str
    database: str
    cluster: str
    block_size: int
    types: Types
    keys: Mapping[int, Sequence[Key]]
    constraints: Mapping[int, Mapping[str, str]]
    partition_columns: Mapping[int, set[int]]
    partitions: Mapping[int, Sequence[Size]]
    definitions: Mapping[int, str]


def path_of(database: str, schema: str, name: str) -> str:
    """The one text for a table's name, whatever marks are in its parts."""
    return "/".join(quote(part, safe="") for part in (database, schema, name))


def dataset_of(relation: Relation, columns: Sequence[Column], catalog: Catalog) -> FoundDataset:
    """A table or view under the database's own names."""
    path = path_of(catalog.database, relation.schema, relation.name)
    schema = _schema(relation, columns, catalog)
    format = _FORMATS[relation.kind]
    told = _told(relation, catalog)
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
        content=_content(format, relation.partitioning, told, schema),
        told=told,
    )


def _schema(relation: Relation, columns: Sequence[Column], catalog: Catalog) -> Schema:
    keys = key_columns(catalog.keys.get(relation.oid, ()), columns)
    partitions = catalog.partition_columns.get(relation.oid, ())
    types = catalog.types
    # Somebody who makes a view anew counts its columns anew.
    is_stable = relation.kind not in VIEWS
    return Schema(
        fields=tuple(
            Field(
                name=column.name,
                type=types.type(Use(column.type, column.modifier, column.type_text)),
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


def key_columns(keys: Sequence[Key], columns: Iterable[Column]) -> tuple[int, ...]:
    """The columns of the primary key or else of the shortest key in which nothing is null."""
    if not keys:
        return ()
    required = {column.number for column in columns if column.required}
    usable = [key for key in keys if key.primary or required.issuperset(key.columns)]
    best = min(usable, key=lambda key: (not key.primary, len(key.columns), key.name), default=None)
    return () if best is None else best.columns


def _default(column: Column, types: Types) -> str | None:
    if column.identity:
        return f"GENERATED {_IDENTITY.get(column.identity, column.identity)} AS IDENTITY"
    if column.generated:
        stored = _GENERATED.get(column.generated, "")
        text = without_passwords(column.default or "")
        return f"GENERATED ALWAYS AS ({text}) {stored}".rstrip()
    default = types.default(column.type) if column.default is None else column.default
    return None if default is None else without_passwords(default)


def _statistics(relation: Relation, catalog: Catalog) -> Statistics:
    if relation.kind == "v":
        return Statistics()
    sizes = catalog.partitions.get(relation.oid, ())
    if relation.kind != PARTITIONED:
        sizes = (Size(relation.rows, relation.pages),)
    # Before the first ANALYZE there is no count.
    counted = [size.rows for size in sizes if size.rows >= 0]
    pages = sum(max(size.pages, 0) for size in sizes)
    return Statistics(
        row_count=round(sum(counted)) if counted else None,
        total_size_bytes=pages * catalog.block_size,
        total_size_exact=False,
    )


def _told(relation: Relation, catalog: Catalog) -> SourceMetadata:
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
        owner=_owner(relation),
        definition=None
        if definition is None
        else Definition(sql=without_passwords(definition.strip()), dialect=DIALECT),
        properties={name: text for name, text in properties.items() if text is not None},
    )


def _owner(relation: Relation) -> Owner | None:
    if relation.owner is None:
        return None
    return Owner(name=relation.owner, kind="user" if relation.owner_logs_in else "group")


def _content(format: str, partitioning: str | None, told: SourceMetadata, schema: Schema) -> str:
    """Changes with all that is told beside the schema; that rows come and go is not seen."""
    facts: dict[str, str | None] = {
        **told.properties,
        # Several types of a database may be one type in the algebra.
        **{f" type {field.name}": field.native_type for field in schema.fields},
        " format": format,
        " partitioning": partitioning,
        " description": told.description,
        " owner": None if told.owner is None else told.owner.name,
        " definition": None if told.definition is None else told.definition.sql,
    }
    return fingerprint(
        f"{quoted_text(name)} {quoted_text(text)}"
        for name, text in sorted(facts.items())
        if text is not None
    )


def without_passwords(sql: str) -> str:
    """The text, masked where a literal is an address that holds a password, as dblink takes."""
    if "password" not in sql.lower() and "://" not in sql:
        return sql
    return _LITERAL.sub(_without_password, sql)


def _without_password(literal: re.Match[str]) -> str:
    # Its own quotes are no part of what it says.
    text = _PASSWORD.sub(r"\1***", literal.group()[1:-1])
    masked = _PASSWORD_IN_ADDRESS.sub(r"\1***", text)
    return f"'{masked}'"
