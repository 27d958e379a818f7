"""Names, selection and metadata of tables, for all sources of databases with declared schemas."""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from lumos.errors import did_you_mean
from lumos.model.discovery import Problem, SourceMetadata
from lumos.model.schema import Schema, fingerprint
from lumos.model.types import quoted_text

_LITERAL: Final = re.compile(r"'(?:[^']|'')*'")
_PASSWORD: Final = re.compile(
    r"(password\s*=\s*)(?:''(?:\\+''|''''|[^'])*''|(?:[^\s']|'')+)", re.IGNORECASE
)
_PASSWORD_IN_ADDRESS: Final = re.compile(r"([A-Za-z][\w+.-]*://[^\s:/@']*:)(?:[^\s@']|'')+(?=@)")


def path_of(*names: str) -> str:
    """The path of a table or schema, with special characters encoded."""
    return "/".join(quote(name, safe="") for name in names)


def names_in(path: str) -> list[str]:
    """The names in a path."""
    return [unquote(part) for part in path.split("/")]


class TableSelection(NamedTuple):
    """The tables that a section selects, by patterns of schemas and tables.

    Without patterns, all schemas or tables are selected.
    """

    schemas: Sequence[str] = ()
    tables: Sequence[str] = ()
    watched: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def includes_schema(self, schema: str) -> bool:
        """Whether tables of a schema may be selected."""
        return not self.schemas or any(matches_pattern(schema, each) for each in self.schemas)

    def includes(self, schema: str, name: str) -> bool:
        """Whether a table is selected."""
        return (
            self.includes_schema(schema)
            and (not self.tables or _matches(schema, name, self.tables))
            and (not self.watched or _matches(schema, name, self.watched))
            and not _matches(schema, name, self.exclude)
        )

    def unknown_schemas(
        self, existing: Sequence[str], *, noun: str = "schema", database: str | None = None
    ) -> Iterator[Problem]:
        """Warnings about selected schemas that do not exist."""
        for wanted in self.schemas:
            if not any(matches_pattern(name, wanted) for name in existing):
                yield Problem(
                    path=path_of(wanted) if database is None else path_of(database, wanted),
                    reason=f"there is no {noun} '{wanted}'.{did_you_mean(wanted, existing)}",
                    code=f"no_such_{noun}",
                    remark=True,
                )


def _matches(schema: str, name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the table, with or without its schema."""
    return any(
        matches_pattern(name, pattern) or matches_pattern(f"{schema}.{name}", pattern)
        for pattern in patterns
    )


def matches_pattern(name: str, pattern: str) -> bool:
    """Whether a name equals a pattern or matches its wildcards."""
    # The name itself may contain wildcard characters, so equal texts always match.
    return name == pattern or fnmatchcase(name, pattern)


def content_of(
    format: str, partitioning: str | None, source_metadata: SourceMetadata, schema: Schema
) -> str:
    """A fingerprint of everything but the schema and the rows."""
    parts: dict[str, str | None] = {
        **source_metadata.properties,
        # Several native types may map to the same data type.
        **{f" type {field.name}": field.native_type for field in schema.fields},
        " format": format,
        " partitioning": partitioning,
        " description": source_metadata.description,
        " owner": None if source_metadata.owner is None else source_metadata.owner.name,
        " definition": None
        if source_metadata.definition is None
        else source_metadata.definition.sql,
    }
    return fingerprint(
        f"{quoted_text(name)} {quoted_text(text)}"
        for name, text in sorted(parts.items())
        if text is not None
    )


def without_passwords(sql: str) -> str:
    """The SQL with passwords in literals masked, such as in calls of dblink."""
    if "password" not in sql.lower() and "://" not in sql:
        return sql
    return _LITERAL.sub(_without_password, sql)


def _without_password(literal: re.Match[str]) -> str:
    # Without the quotes of the literal.
    text = _PASSWORD.sub(r"\1***", literal.group()[1:-1])
    masked = _PASSWORD_IN_ADDRESS.sub(r"\1***", text)
    return f"'{masked}'"
