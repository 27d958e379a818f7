"""Converts rows of the information schema to datasets, and parses the types of its columns."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from lumos.model.dataset import Definition, Location, Owner, Statistics
from lumos.model.discovery import FoundDataset, SourceMetadata
from lumos.model.schema import Field, Schema
from lumos.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    JSON,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UUID,
    Binary,
    DataType,
    Decimal,
    Enum,
    String,
    Time,
    Timestamp,
    Unit,
    Unknown,
)
from lumos.sources.relational import content_of, path_of, without_passwords

DIALECT: Final = "mysql"
VIEW: Final = "VIEW"
_FORMATS: Final = {"VIEW": "view", "SYSTEM VIEW": "view"}
_QUOTED_NAME: Final = re.compile(r"`((?:[^`]|``)+)`")
_NUMBER: Final = re.compile(r"-?[\d.]+(?:[eE][+-]?\d+)?|b'[01]*'|0x[0-9A-Fa-f]+")
_ON_UPDATE: Final = re.compile(r"on update (\S+)", re.IGNORECASE)


class MysqlTable(NamedTuple):
    """A table or view in the information schema."""

    name: str
    kind: str
    engine: str | None
    rows: int | None
    data_bytes: int | None
    index_bytes: int | None
    collation: str | None
    options: str | None
    comment: str | None

    @property
    def is_view(self) -> bool:
        """Whether it is a view."""
        return self.kind == VIEW

    @property
    def is_partitioned(self) -> bool:
        """Whether it has partitions."""
        return "partitioned" in (self.options or "")


class MysqlColumn(NamedTuple):
    """A column in the information schema."""

    table: str
    position: int
    name: str
    default: str | None
    nullable: str
    type: str
    key: str
    extra: str
    comment: str | None
    generation: str | None


class KeyColumn(NamedTuple):
    """A column of a unique or foreign key; a foreign key has a referenced column."""

    table: str
    constraint: str
    column: str
    referenced_database: str | None
    referenced_table: str | None
    referenced_column: str | None


class MysqlView(NamedTuple):
    """The query and the definer of a view; the query is empty without permission to see it."""

    query: str
    definer: str | None


class MysqlDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the information schema about a database, except for columns."""

    address: str
    name: str
    is_mariadb: bool
    # By table, then by name.
    constraints: Mapping[str, Mapping[str, str]] = {}
    # The columns that may only contain valid JSON, by table.
    json_columns: Mapping[str, frozenset[str]] = {}
    partitioning: Mapping[str, str] = {}
    views: Mapping[str, MysqlView] = {}
    # Identities that are unique across servers, by table.
    identities: Mapping[str, str] = {}


def dataset_of(
    table: MysqlTable, columns: Sequence[MysqlColumn], database: MysqlDatabase
) -> FoundDataset:
    """The dataset for a table or view."""
    path = path_of(database.name, table.name)
    partitioning = database.partitioning.get(table.name)
    schema = _schema(table, columns, database)
    format = _FORMATS.get(table.kind, "table")
    source_metadata = _source_metadata(table, database)
    return FoundDataset(
        path=path,
        name=f"{database.name}.{table.name}",
        format=format,
        location=Location(
            uri=f"{database.address}/{path}",
            partitioning=partitioning,
            partition_keys=tuple(field.name for field in schema.fields if field.partition),
            identity=database.identities.get(table.name),
        ),
        schema=schema,
        statistics=_statistics(table),
        drift=(),
        content=content_of(format, partitioning, source_metadata, schema),
        source_metadata=source_metadata,
    )


def _schema(table: MysqlTable, columns: Sequence[MysqlColumn], database: MysqlDatabase) -> Schema:
    partitioning = database.partitioning.get(table.name)
    partition_columns = columns_in(partitioning, columns) if partitioning else frozenset()
    json_columns = database.json_columns.get(table.name, frozenset())
    fields = []
    for column in sorted(columns, key=lambda column: column.position):
        type = type_of_column(column.type)
        if type == STRING and column.name in json_columns:
            type = JSON
        is_invisible = "INVISIBLE" in column.extra
        fields.append(
            Field(
                name=column.name,
                type=type,
                nullable=column.nullable == "YES",
                # The primary key, or else a unique key without nulls.
                key=column.key == "PRI",
                partition=column.name in partition_columns,
                # The server makes up defaults for columns of views.
                default=None if table.is_view else default_of(column, database.is_mariadb),
                description=column.comment or None,
                native_type=f"{column.type} invisible" if is_invisible else column.type,
            )
        )
    return Schema(fields=tuple(fields))


def default_of(column: MysqlColumn, is_mariadb: bool) -> str | None:
    """The default as an SQL expression."""
    extra = column.extra.upper()
    if column.generation:
        stored = "STORED" if "STORED" in extra or "PERSISTENT" in extra else "VIRTUAL"
        return f"GENERATED ALWAYS AS ({without_passwords(column.generation)}) {stored}"
    if "AUTO_INCREMENT" in extra:
        return "AUTO_INCREMENT"
    default = column.default
    # MariaDB prints expressions, so that a null is the word NULL.
    if default is None or (is_mariadb and default == "NULL"):
        default = None
    elif not is_mariadb and "DEFAULT_GENERATED" not in extra and not _NUMBER.fullmatch(default):
        default = "'" + default.replace("'", "''") + "'"
    update = _ON_UPDATE.search(column.extra)
    parts = [default, f"ON UPDATE {update[1]}" if update else None]
    text = " ".join(part for part in parts if part is not None)
    return without_passwords(text) if text else None


def columns_in(expression: str, columns: Sequence[MysqlColumn]) -> frozenset[str]:
    """The columns that a partitioning expression uses."""
    named = {name.replace("``", "`").lower() for name in _QUOTED_NAME.findall(expression)}
    return frozenset(column.name for column in columns if column.name.lower() in named)


def constraints_of(
    keys: Sequence[KeyColumn], rules: Mapping[tuple[str, str], tuple[str, str]]
) -> dict[str, dict[str, str]]:
    """Unique and foreign keys as SQL, by table and name.

    `rules` are the ON UPDATE and ON DELETE rules of foreign keys.
    """
    by_constraint: dict[tuple[str, str], list[KeyColumn]] = defaultdict(list)
    for key in keys:
        by_constraint[key.table, key.constraint].append(key)
    constraints: dict[str, dict[str, str]] = defaultdict(dict)
    for (table, name), members in by_constraint.items():
        own = ", ".join(quote_name(member.column) for member in members)
        first = members[0]
        if first.referenced_table is None:
            constraints[table][name] = f"UNIQUE ({own})"
            continue
        other = quote_name(first.referenced_table)
        if first.referenced_database is not None:
            other = f"{quote_name(first.referenced_database)}.{other}"
        referenced = ", ".join(quote_name(member.referenced_column or "") for member in members)
        update, delete = rules.get((table, name), ("", ""))
        on_update = f" ON UPDATE {update}" if update else ""
        on_delete = f" ON DELETE {delete}" if delete else ""
        constraints[table][name] = (
            f"FOREIGN KEY ({own}) REFERENCES {other} ({referenced}){on_update}{on_delete}"
        )
    return constraints


def quote_name(name: str) -> str:
    """The name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def _statistics(table: MysqlTable) -> Statistics:
    if table.is_view:
        return Statistics()
    sizes = [size for size in (table.data_bytes, table.index_bytes) if size is not None]
    return Statistics(
        row_count=table.rows,
        total_size_bytes=sum(sizes),
        total_size_exact=False,
    )


def _source_metadata(table: MysqlTable, database: MysqlDatabase) -> SourceMetadata:
    view = database.views.get(table.name)
    properties = {
        "engine": table.engine,
        "collation": table.collation,
        "versioning": "system" if table.kind == "SYSTEM VERSIONED" else None,
        **{
            f"constraint.{name}": without_passwords(text)
            for name, text in database.constraints.get(table.name, {}).items()
        },
    }
    return SourceMetadata(
        # The comment of a view is the word VIEW.
        description=None if table.is_view else table.comment or None,
        owner=Owner(name=view.definer) if view is not None and view.definer else None,
        definition=Definition(sql=without_passwords(view.query.strip()), dialect=DIALECT)
        if view is not None and view.query
        else None,
        properties={name: text for name, text in properties.items() if text},
    )


_TYPE: Final = re.compile(
    r"(?P<name>[a-z]\w*)(?:\((?P<arguments>.*)\))?(?P<rest>[\w\s]*)", re.DOTALL
)
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")
_UNITS: Final[tuple[Unit, ...]] = ("s", "ms", "ms", "ms", "us", "us", "us")
_INTEGERS: Final = {
    "tinyint": (INT8, UINT8),
    "smallint": (INT16, UINT16),
    "mediumint": (INT32, UINT32),
    "int": (INT32, UINT32),
    "integer": (INT32, UINT32),
    "bigint": (INT64, UINT64),
}
_PLAIN: Final[dict[str, DataType]] = {
    "float": FLOAT32,
    "double": FLOAT64,
    "date": DATE,
    "year": INT16,
    "json": JSON,
    "uuid": UUID,
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), STRING),
    **dict.fromkeys(("varbinary", "tinyblob", "blob", "mediumblob", "longblob"), BINARY),
}
_WITH_NUMBERS: Final[dict[str, Callable[[Sequence[int]], DataType]]] = {
    "decimal": lambda numbers: Decimal(*numbers) if numbers else Decimal(10, 0),
    "char": lambda numbers: String(numbers[0] if numbers else 1),
    "varchar": lambda numbers: String(numbers[0] if numbers else None),
    "binary": lambda numbers: Binary(numbers[0] if numbers else 1),
    "time": lambda numbers: Time(_unit(numbers)),
    "datetime": lambda numbers: Timestamp(_unit(numbers)),
    # Stored in UTC and converted to the time zone of the session.
    "timestamp": lambda numbers: Timestamp(_unit(numbers), zoned=True),
}


@lru_cache(maxsize=4096)
def type_of_column(text: str) -> DataType:
    """The data type; types without an equivalent are UNKNOWN with their native name."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return Unknown(text)
    name, arguments = match["name"], match["arguments"] or ""
    # BOOL is a synonym of tinyint(1). No other type is printed with this width.
    if text in ("tinyint(1)", "bit(1)"):
        return BOOLEAN
    if name in _INTEGERS:
        return _INTEGERS[name]["unsigned" in match["rest"]]
    if name == "enum":
        return Enum([label.replace("''", "'") for label in _LABEL.findall(arguments)])
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _WITH_NUMBERS:
        try:
            return _WITH_NUMBERS[name]([int(each) for each in arguments.split(",") if each])
        except ValueError:
            return Unknown(text)
    return Unknown(text)


def _unit(numbers: Sequence[int]) -> Unit:
    digits = numbers[0] if numbers else 0
    return _UNITS[digits] if digits < len(_UNITS) else "us"
