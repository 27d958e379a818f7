"""Tables and views of one database with an SQLAlchemy dialect."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Final

import sqlalchemy as sa
from sqlalchemy import exc

from lumos.config.secret import MASK
from lumos.config.sources import SqlSourceSettings as Settings
from lumos.model.compressed_list import CompressedList
from lumos.model.dataset import Definition, Location, Statistics
from lumos.model.discovery import Discovery, FoundDataset, Problem, SourceMetadata
from lumos.model.schema import Field, Schema
from lumos.sources.interface import ReadProgress, SourceNotUsable, TableSource
from lumos.sources.relational import (
    TableSelection,
    content_of,
    names_in,
    path_of,
    without_passwords,
)
from lumos.sources.sql.catalog import (
    Catalog,
    CatalogTable,
    InformationSchemaCatalog,
    InspectedCatalog,
    UnreadableTable,
    first_line,
)
from lumos.sources.sql.types import sqlglot_dialect, type_of_text

# Dialects whose databases are local files.
_FILE_DIALECTS: Final = ("sqlite", "duckdb")
# SQLAlchemy cannot read the catalogs of these dialects.
_INFORMATION_SCHEMA_DIALECTS: Final = ("duckdb",)
# The keyword AS; quoted names, literals and comments are matched too, because they may contain it.
_TOKEN: Final = re.compile(
    r"\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|\[[^\]]*\]|'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/"
    r"|(?P<keyword>\bAS\b)",
    re.IGNORECASE | re.DOTALL,
)
_CREATE: Final = re.compile(r"\s*CREATE\b", re.IGNORECASE)


class SqlSource(TableSource):
    kind: ClassVar[str] = "sql"

    _settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        scheme = settings.connection_string.reveal().partition(":")[0]
        # The platform in URNs is the product, since catalogs distinguish them.
        self.kind = settings.platform or scheme.partition("+")[0]  # type: ignore[misc]
        self._selection = TableSelection(
            settings.schemas, settings.tables, settings.watched, settings.exclude
        )

    @cached_property
    def _url(self) -> sa.URL:
        text = self._settings.connection_string.reveal()
        try:
            url = sa.make_url(text)
            is_file = url.get_backend_name() in _FILE_DIALECTS
            # With unencoded special characters, the URL is parsed wrongly: part of the password
            # would be shown as the host.
            if str(self._settings.connection_string) == MASK and not is_file:
                raise exc.ArgumentError
        except (exc.ArgumentError, ValueError):
            # The message of SQLAlchemy may contain the password, so it is not shown.
            raise SourceNotUsable(
                "Invalid connection string of an sql source.",
                "Expected an address of SQLAlchemy: dialect+driver://user:password@host/database, "
                "with special characters percent-encoded (@ is %40, / is %2F, # is %23).",
            ) from None
        if self._settings.password is not None:
            url = url.set(password=self._settings.password.reveal())
        return url if self._settings.user is None else url.set(username=self._settings.user)

    @property
    def _file(self) -> Path | None:
        """The file of a database that is a local file, such as SQLite, or else None."""
        is_file = self._url.get_backend_name() in _FILE_DIALECTS
        return Path(self._url.database or "").absolute() if is_file else None

    @property
    def scope(self) -> str:
        url = self._url
        if self._file is not None:
            return self._file.stem
        named = url.database or url.query.get("service_name") or url.host
        return named if isinstance(named, str) else self.kind

    @property
    def address(self) -> str:
        url = self._url
        if self._file is not None:
            return f"{url.get_backend_name()}://{self._file}"
        port = f":{url.port}" if url.port else ""
        return f"{url.get_backend_name()}://{url.host or ''}{port}/{path_of(self.scope)}"

    def covers(self, path: str) -> bool:
        database, schema, name = names_in(path)
        return database == self.scope and self._selection.includes(schema, name)

    def check(self) -> str:
        counts: list[int] = []
        with self._catalog() as catalog:

            def count(schema: str) -> None:
                names = catalog.names(schema)
                counts.append(sum(self._selection.includes(schema, name) for name in names))

            self._read_each(catalog, self._selected(catalog.schemas()), count)
        total = sum(counts)
        tables = "1 table or view" if total == 1 else f"{total:,} tables and views"
        return f"{self.address}, {tables}"

    def read(self, report_progress: ReadProgress) -> Discovery:
        datasets = CompressedList(FoundDataset)
        problems: list[Problem] = []
        with self._catalog() as catalog:
            existing = catalog.schemas()
            problems += self._selection.unknown_schemas(existing, database=self.scope)
            selected = self._selected(existing)

            def read_schema(schema: str) -> None:
                report_progress(selected.index(schema) / len(selected))
                is_selected = partial(self._selection.includes, schema)
                for table in catalog.tables(schema, is_selected):
                    if isinstance(table, UnreadableTable):
                        path = path_of(self.scope, schema, table.name)
                        reason = self._without_password(table.reason)
                        problems.append(Problem(path=path, reason=reason, code=table.code))
                    else:
                        datasets.append(self._dataset(table))

            problems += self._read_each(catalog, selected, read_schema)
        return Discovery(datasets=datasets, problems=tuple(problems))

    def _selected(self, schemas: Iterable[str]) -> list[str]:
        return [name for name in schemas if self._selection.includes_schema(name)]

    def _read_each(
        self, catalog: Catalog, schemas: Sequence[str], read: Callable[[str], None]
    ) -> list[Problem]:
        """Read schemas one by one; returns a problem for each that the database refuses to list.

        Raises the first error if it refuses all of them, or if the connection is lost.
        """
        problems: list[Problem] = []
        for schema in schemas:
            try:
                read(schema)
            except exc.DBAPIError as problem:
                is_last = len(problems) == len(schemas) - 1
                if problem.connection_invalidated or is_last:
                    raise
                catalog.end_transaction()
                reason = self._without_password(first_line(problem))
                path = path_of(self.scope, schema)
                problems.append(Problem(path=path, reason=reason, code="unreadable"))
        return problems

    @contextmanager
    def _catalog(self) -> Iterator[Catalog]:
        url = self._url
        backend = url.get_backend_name()
        options: dict[str, Any] = {"poolclass": sa.NullPool}
        if backend == "duckdb":
            options["connect_args"] = {"read_only": True}
        elif backend == "sqlite" and self._file is not None:
            # Read-only, and not created if it does not exist.
            file = self._file.as_uri().replace("file://", "file:")
            url = url.set(database=file).update_query_dict({"mode": "ro", "uri": "true"})
        try:
            engine = sa.create_engine(url, **options)
        except exc.NoSuchModuleError:
            raise SourceNotUsable(
                f"No SQLAlchemy dialect '{url.drivername}' is installed.",
                "Install its package, such as duckdb-engine, oracledb, pyodbc, "
                "clickhouse-sqlalchemy or trino.",
            ) from None
        except ImportError as problem:
            raise SourceNotUsable(
                f"Reading {backend} needs the Python package {problem.name}.",
                f"Run: pip install {problem.name}",
            ) from None
        try:
            with warnings.catch_warnings():
                # Introspection warns about types and expressions that it does not know.
                warnings.simplefilter("ignore", exc.SAWarning)
                with engine.connect() as connection:
                    yield (
                        InformationSchemaCatalog(connection, self.scope)
                        if backend in _INFORMATION_SCHEMA_DIALECTS
                        else InspectedCatalog(connection)
                    )
        except exc.SQLAlchemyError as problem:
            raise SourceNotUsable(
                f"{self.address} cannot be read: {self._without_password(first_line(problem))}.",
                "Check the connection string, the server and the permissions of the user.",
            ) from None
        finally:
            engine.dispose()

    def _without_password(self, text: str) -> str:
        password = self._url.password
        return text.replace(str(password), MASK) if password else text

    def _dataset(self, table: CatalogTable) -> FoundDataset:
        path = path_of(self.scope, table.schema, table.name)
        dialect = self._url.get_backend_name()
        schema = Schema(
            fields=tuple(
                Field(
                    name=column.name,
                    type=type_of_text(column.type, dialect),
                    nullable=column.nullable and column.name not in table.key,
                    key=column.name in table.key,
                    default=None if column.default is None else without_passwords(column.default),
                    description=column.comment or None,
                    native_type=column.type or None,
                )
                for column in table.columns
            )
        )
        definition = query_of(table.definition) if table.definition else None
        metadata = SourceMetadata(
            description=table.comment or None,
            definition=Definition(
                sql=without_passwords(definition), dialect=sqlglot_dialect(dialect)
            )
            if definition
            else None,
            properties={
                f"constraint.{name}": without_passwords(text)
                for name, text in table.constraints.items()
            },
        )
        return FoundDataset(
            path=path,
            name=f"{table.schema}.{table.name}",
            format=table.format,
            location=Location(uri=f"{self.address}/{path.partition('/')[2]}"),
            schema=schema,
            statistics=Statistics(),
            drift=(),
            content=content_of(table.format, None, metadata, schema),
            source_metadata=metadata,
        )


def query_of(definition: str) -> str:
    """The query of a view; some databases return the statement that created it."""
    query = definition.strip().rstrip(";").rstrip()
    if not _CREATE.match(query):
        return query
    keywords = (each for each in _TOKEN.finditer(query) if each["keyword"])
    first = next(keywords, None)
    return query[first.end() :].strip() if first else query
