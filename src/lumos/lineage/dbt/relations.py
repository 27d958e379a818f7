"""Which table each node of a project is, and which columns that has."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import sqlglot.errors
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from lumos.errors import UnknownName
from lumos.lineage.dbt.artefacts import Node, Project
from lumos.lineage.reported import TableName
from lumos.lineage.sql.names import Folding, dialect_named

# Adapters that are called otherwise than what they talk to.
_PLATFORMS: Final = {
    "alloydb": "postgres",
    "databricks-sql": "databricks",
    "fabric": "mssql",
    "greenplum": "postgres",
    "sqlserver": "mssql",
    "synapse": "mssql",
}
_EPHEMERAL: Final = "ephemeral"
_TABLES: Final = ("model", "seed", "snapshot", "source")


class Relations:
    """The tables of a project's nodes, by the unique ids of these."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._folding = Folding(self.dialect)
        self.platform = platform_of(project)

    @cached_property
    def dialect_name(self) -> str | None:
        """The name of the dialect of the project's database, where it is known."""
        try:
            dialect_named(self._project.adapter)
        except UnknownName:
            return None
        return self._project.adapter

    @property
    def dialect(self) -> Dialect:
        """The dialect of the project's database; the general one where it is not known."""
        return dialect_named(self.dialect_name)

    def sql_name(self, table: TableName) -> str:
        """A table as SQL of the project's dialect names it."""
        identifiers = (exp.to_identifier(part, quoted=True) for part in table.parts)
        return ".".join(each.sql(dialect=self.dialect) for each in identifiers)

    def table(self, key: str) -> TableName | None:
        """The table of a node; ephemeral models, tests and the like have none."""
        node = self._node(key)
        if node is None or not is_table(key, node):
            return None
        parts = self._written(node.relation_name) or self._parts(node)
        return TableName(parts=parts, platform=self.platform)

    def upstream(self, key: str) -> tuple[TableName, ...]:
        """The tables that a node depends on, those of ephemeral models in their place."""
        found: dict[TableName, None] = {}
        seen = {key}
        waiting = list(self._depends_on(key))
        while waiting:
            each = waiting.pop(0)
            if each in seen:
                continue
            seen.add(each)
            if (table := self.table(each)) is not None:
                found[table] = None
            else:
                waiting += self._depends_on(each)
        return tuple(found)

    def columns(self) -> dict[tuple[str, ...], dict[str, str]]:
        """Names and types of the columns of every table, from the catalog or from the models."""
        tables: dict[tuple[str, ...], dict[str, str]] = {}
        for key in (*self._project.nodes, *self._project.sources):
            table = self.table(key)
            if table is not None and (columns := self._columns(key)):
                tables[table.parts] = columns
        return tables

    def _columns(self, key: str) -> dict[str, str]:
        catalog = self._project.catalog.get(key)
        if catalog is not None and catalog.columns:
            return {
                self._folding.text(column.name, quoted=True): column.type
                for column in catalog.ordered
            }
        node = self._node(key)
        declared = (node.columns if node else None) or {}
        # What people describe need not be all columns; only with types is it meant as all.
        if not declared or not all(column.data_type for column in declared.values()):
            return {}
        return {
            self._folding.text(column.name or name, quoted=True): column.data_type or ""
            for name, column in declared.items()
        }

    def _node(self, key: str) -> Node | None:
        return self._project.nodes.get(key) or self._project.sources.get(key)

    def _depends_on(self, key: str) -> Iterator[str]:
        node = self._node(key) or self._project.exposures.get(key)
        if node is not None and node.depends_on is not None:
            yield from node.depends_on.nodes

    def _written(self, name: str | None) -> tuple[str, ...]:
        if not name:
            return ()
        try:
            return self._folding.table(exp.to_table(name, dialect=self.dialect))
        except sqlglot.errors.SqlglotError:
            return ()

    def _parts(self, node: Node) -> tuple[str, ...]:
        last = node.identifier or node.alias or node.name
        written = (node.database, node.schema, last)
        return tuple(self._folding.text(part, quoted=True) for part in written if part)


def is_table(key: str, node: Node) -> bool:
    """Whether a node is a table or view of its own."""
    kind = node.resource_type or key.partition(".")[0]
    return kind in _TABLES and node.materialized != _EPHEMERAL


def platform_of(project: Project) -> str | None:
    """Where the tables lie, as Lumos calls it."""
    adapter = (project.adapter or "").lower()
    return _PLATFORMS.get(adapter, adapter) or None
