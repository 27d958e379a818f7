"""Reads the catalog of a database, through SQLAlchemy or its information schema."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine.reflection import Inspector

# Errors of dialects that do not implement a part of the introspection.
_NOT_SUPPORTED: Final = (NotImplementedError, exc.UnsupportedCompilationError)
# Schemas of the database itself, in lower case.
_SYSTEM_SCHEMAS: Final = frozenset(
    ("information_schema", "pg_catalog", "pg_toast", "sys", "system", "guest", "db_owner",
     "db_accessadmin", "db_securityadmin", "db_ddladmin", "db_backupoperator", "db_datareader",
     "db_datawriter", "db_denydatareader", "db_denydatawriter")
)  # fmt: skip


class CatalogColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column; `type` is the text of the type in the dialect."""

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None


class CatalogTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table or view of a schema."""

    schema: str
    name: str
    format: str = "table"
    columns: tuple[CatalogColumn, ...] = ()
    key: frozenset[str] = frozenset()
    constraints: Mapping[str, str] = {}
    comment: str | None = None
    definition: str | None = None


class UnreadableTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that exists, or existed a moment ago, and could not be read."""

    schema: str
    name: str
    reason: str
    code: str


class Catalog(ABC):
    """The catalog of one database."""

    @abstractmethod
    def schemas(self) -> list[str]:
        """The names of the schemas, without system schemas."""

    @abstractmethod
    def end_transaction(self) -> None:
        """End the transaction after an error; some databases refuse all statements until then."""

    @abstractmethod
    def names(self, schema: str) -> list[str]:
        """The names of the tables and views of a schema."""

    @abstractmethod
    def tables(
        self, schema: str, is_selected: Callable[[str], bool]
    ) -> Iterator[CatalogTable | UnreadableTable]:
        """The selected tables and views of a schema."""


class InspectedCatalog(Catalog):
    """The catalog as SQLAlchemy's inspector reads it."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._inspector: Inspector = sa.inspect(connection)
        self._dialect = connection.dialect

    def end_transaction(self) -> None:
        self._connection.rollback()

    def schemas(self) -> list[str]:
        found = [name for name in self._inspector.get_schema_names() if name is not None]
        return sorted(name for name in found if name.lower() not in _SYSTEM_SCHEMAS)

    def names(self, schema: str) -> list[str]:
        return [name for name, _ in self._relations(schema)]

    def _relations(self, schema: str) -> list[tuple[str, str]]:
        inspector = self._inspector
        tables = [(name, "table") for name in inspector.get_table_names(schema=schema)]
        views = [(name, "view") for name in self._optional(inspector.get_view_names, schema) or ()]
        materialized = [
            (name, "materialized_view")
            for name in self._optional(inspector.get_materialized_view_names, schema) or ()
        ]
        # Some dialects list views among the tables, too.
        return sorted({**dict(tables), **dict(views), **dict(materialized)}.items())

    def tables(
        self, schema: str, is_selected: Callable[[str], bool]
    ) -> Iterator[CatalogTable | UnreadableTable]:
        for name, format in self._relations(schema):
            if not is_selected(name):
                continue
            # The inspector caches the columns of every table.
            self._inspector.clear_cache()
            try:
                yield self._table(schema, name, format)
            except exc.NoSuchTableError:
                reason = "it was changed or dropped during the scan"
                yield UnreadableTable(schema=schema, name=name, reason=reason, code="changing")
            except (exc.DBAPIError, exc.UnreflectableTableError) as problem:
                if isinstance(problem, exc.DBAPIError) and problem.connection_invalidated:
                    raise
                self.end_transaction()
                yield UnreadableTable(
                    schema=schema, name=name, reason=first_line(problem), code="unreadable"
                )

    def _table(self, schema: str, name: str, format: str) -> CatalogTable:
        inspector = self._inspector
        columns = inspector.get_columns(name, schema=schema)
        if not columns:
            raise exc.NoSuchTableError(name)
        is_view = format != "table"
        key = None if is_view else self._optional(inspector.get_pk_constraint, name, schema=schema)
        comment = self._optional(inspector.get_table_comment, name, schema=schema)
        definition = (
            self._optional(inspector.get_view_definition, name, schema=schema) if is_view else None
        )
        return CatalogTable(
            schema=schema,
            name=name,
            format=format,
            columns=tuple(self._column(column) for column in columns),
            key=frozenset((key or {}).get("constrained_columns") or ()),
            constraints={} if is_view else self._constraints(schema, name),
            comment=(comment or {}).get("text"),
            definition=definition,
        )

    def _optional(self, read: Callable[..., Any], *names: str, **options: Any) -> Any:
        try:
            return read(*names, **options)
        except _NOT_SUPPORTED:
            return None

    def _column(self, column: Mapping[str, Any]) -> CatalogColumn:
        type = column["type"]
        try:
            text = str(type.compile(dialect=self._dialect))
        except exc.CompileError:
            # A type that the dialect does not know, or SQLite's column without a type.
            text = "" if isinstance(type, sa.types.NullType) else repr(type)
        computed, identity = column.get("computed"), column.get("identity")
        default = column.get("default")
        if computed:
            stored = "STORED" if computed.get("persisted") else "VIRTUAL"
            default = f"GENERATED ALWAYS AS ({computed['sqltext']}) {stored}"
        elif identity:
            always = "ALWAYS" if identity.get("always") else "BY DEFAULT"
            default = f"GENERATED {always} AS IDENTITY"
        return CatalogColumn(
            name=str(column["name"]),
            type=text,
            nullable=bool(column.get("nullable", True)),
            default=None if default is None else str(default),
            comment=column.get("comment"),
        )

    def _constraints(self, schema: str, name: str) -> dict[str, str]:
        inspector = self._inspector
        texts: list[tuple[str | None, str]] = []
        for each in self._optional(inspector.get_unique_constraints, name, schema=schema) or ():
            texts.append((each.get("name"), f"UNIQUE ({', '.join(each['column_names'])})"))
        for each in self._optional(inspector.get_foreign_keys, name, schema=schema) or ():
            other = ".".join(filter(None, (each.get("referred_schema"), each["referred_table"])))
            own, others = each["constrained_columns"], each["referred_columns"]
            text = f"FOREIGN KEY ({', '.join(own)}) REFERENCES {other} ({', '.join(others)})"
            texts.append((each.get("name"), text))
        for each in self._optional(inspector.get_check_constraints, name, schema=schema) or ():
            texts.append((each.get("name"), f"CHECK ({each['sqltext']})"))
        return {constraint or text: text for constraint, text in texts}


class InformationSchemaCatalog(Catalog):
    """The catalog as the standard information schema describes it.

    Used for dialects whose introspection does not work with current versions of SQLAlchemy.
    """

    def __init__(self, connection: sa.Connection, database: str) -> None:
        self._connection = connection
        self._database = database
        self._inspector: Inspector = sa.inspect(connection)

    def end_transaction(self) -> None:
        self._connection.rollback()

    def _rows(self, query: str, **parameters: object) -> Sequence[Any]:
        given = {"database": self._database, **parameters}
        return self._connection.execute(sa.text(query), given).all()

    def schemas(self) -> list[str]:
        found = self._rows(
            "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = :database"
        )
        return sorted(name for (name,) in found if name.lower() not in _SYSTEM_SCHEMAS)

    def names(self, schema: str) -> list[str]:
        return [name for name, _, _ in self._relations(schema)]

    def _relations(self, schema: str) -> list[tuple[str, str, str | None]]:
        found = self._rows(
            "SELECT table_name, table_type, table_comment FROM information_schema.tables "
            "WHERE table_catalog = :database AND table_schema = :schema AND table_type IN "
            "('BASE TABLE', 'VIEW') ORDER BY table_name",
            schema=schema,
        )
        return [(name, "view" if kind == "VIEW" else "table", text) for name, kind, text in found]

    def tables(
        self, schema: str, is_selected: Callable[[str], bool]
    ) -> Iterator[CatalogTable | UnreadableTable]:
        columns: dict[str, list[CatalogColumn]] = defaultdict(list)
        for table, name, type, nullable, default, comment in self._rows(
            "SELECT table_name, column_name, data_type, is_nullable, column_default, "
            "column_comment FROM information_schema.columns "
            "WHERE table_catalog = :database AND table_schema = :schema "
            "ORDER BY table_name, ordinal_position",
            schema=schema,
        ):
            columns[table].append(
                CatalogColumn(
                    name=name,
                    type=type,
                    nullable=nullable == "YES",
                    default=default,
                    comment=comment,
                )
            )
        keys, constraints = self._constraints(schema)
        for name, format, comment in self._relations(schema):
            if not is_selected(name):
                continue
            if name not in columns:
                reason = "it was changed or dropped during the scan"
                yield UnreadableTable(schema=schema, name=name, reason=reason, code="changing")
                continue
            yield CatalogTable(
                schema=schema,
                name=name,
                format=format,
                columns=tuple(columns[name]),
                key=frozenset(keys.get(name, ())),
                constraints=constraints.get(name, {}),
                comment=comment,
                definition=self._inspector.get_view_definition(name, schema=schema)
                if format == "view"
                else None,
            )

    def _constraints(self, schema: str) -> tuple[dict[str, set[str]], dict[str, dict[str, str]]]:
        """The columns of primary keys, and unique keys as SQL, by table."""
        keys: dict[str, set[str]] = defaultdict(set)
        unique: dict[tuple[str, str], list[str]] = defaultdict(list)
        for table, kind, constraint, column in self._rows(
            "SELECT t.table_name, t.constraint_type, t.constraint_name, k.column_name "
            "FROM information_schema.table_constraints t "
            "JOIN information_schema.key_column_usage k "
            "ON k.constraint_schema = t.constraint_schema AND k.table_name = t.table_name "
            "AND k.constraint_name = t.constraint_name "
            "WHERE t.table_catalog = :database AND t.table_schema = :schema "
            "AND t.constraint_type IN ('PRIMARY KEY', 'UNIQUE') "
            "ORDER BY t.table_name, t.constraint_name, k.ordinal_position",
            schema=schema,
        ):
            if kind == "PRIMARY KEY":
                keys[table].add(column)
            else:
                unique[table, constraint].append(column)
        constraints: dict[str, dict[str, str]] = defaultdict(dict)
        for (table, constraint), names in unique.items():
            constraints[table][constraint] = f"UNIQUE ({', '.join(names)})"
        return keys, constraints


def first_line(problem: Exception) -> str:
    """The message of the database, without SQLAlchemy's link to its documentation."""
    inner = getattr(problem, "orig", None) or problem
    lines = str(inner).strip().splitlines() or [type(inner).__name__]
    return lines[0].strip().rstrip(".")
