"""Consumers of datasets, such as charts and dashboards, and the SQL that they run.

A consumer stores no data. Its SQL is analysed like a view with the name `consumer_table`, which is
replaced by the URN of the consumer afterwards.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from lumos.errors import UnknownName
from lumos.lineage.reported_lineage import (
    ColumnCoverage,
    DatasetReference,
    LineageProblem,
    ReportedEdge,
    ReportedLineage,
    TableName,
    UrnReference,
)
from lumos.lineage.sql.dialects import find_dialect
from lumos.model.catalog import CatalogEntity, consumer_urn, entity_urn
from lumos.model.dataset import Owner

# Names of database engines in BI tools that differ from the names of dialects and platforms.
_ENGINES: Final = {
    "awsathena": "athena",
    "bigquery-cloud-sdk": "bigquery",
    "clickhousedb": "clickhouse",
    "postgresql": "postgres",
    "presto-jdbc": "presto",
    "sparksql": "spark",
    "sparksql-databricks": "databricks",
    "starburst": "trino",
}
_PLATFORMS: Final = {"sqlserver": "mssql", "tsql": "mssql", "mariadb": "mysql"}


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer, and how it reads datasets: by `sql`, by `edges`, or both.

    `line` is the line of the file on which the SQL starts; None if that is not known.
    """

    entity: CatalogEntity
    sql: str | None = None
    file: str | None = None
    line: int | None = None
    engine: str | None = None
    edges: tuple[ReportedEdge, ...] = ()

    @property
    def statement(self) -> str:
        """The SQL as a view, with the line numbers of the file."""
        empty_lines = "\n" * ((self.line or 1) - 1)
        return f"{empty_lines}CREATE VIEW {consumer_table(self.entity.urn)} AS {self.sql}"

    @property
    def reference(self) -> UrnReference:
        return consumer_reference(self.entity.urn)

    @property
    def dialect(self) -> str | None:
        """The SQL dialect of its engine, if known."""
        name = engine_name(self.engine)
        try:
            find_dialect(name)
        except UnknownName:
            return None
        return name

    @property
    def platform(self) -> str | None:
        """The platform of its tables, if known."""
        dialect = self.dialect
        return None if dialect is None else _PLATFORMS.get(dialect, dialect)


class ConsumerExport(msgspec.Struct, frozen=True, kw_only=True):
    """The consumers in an export of a tool, and problems in its files."""

    reporter: str
    consumers: tuple[Consumer, ...] = ()
    problems: tuple[LineageProblem, ...] = ()


def make_entity(
    kind: str,
    tool: str,
    id: str,
    *,
    name: str,
    owners: Iterable[Owner] = (),
    description: str | None = None,
    tags: tuple[str, ...] = (),
    **properties: str | None,
) -> CatalogEntity:
    """The entity of a consumer; `id` is its permanent id in the tool."""
    return CatalogEntity(
        urn=entity_urn(kind, tool, id),
        display_name=name,
        description=description or None,
        # Plain owners, as in the store, which has no owners of unknown kind.
        owners=tuple(Owner(name=each.name, kind=each.kind, type=each.type) for each in owners),
        tags=tags,
        properties={key: value for key, value in properties.items() if value},
    )


def consumer_reference(entity: str) -> UrnReference:
    return UrnReference(urn=consumer_urn(entity))


def consumer_table(entity: str) -> str:
    """The name of a consumer in SQL, which needs no quotes in any dialect."""
    return f"lumos_{hashlib.blake2s(entity.encode(), digest_size=10).hexdigest()}"


def engine_name(engine: str | None) -> str | None:
    """The name of a database engine as a dialect: `postgres` for `postgresql`."""
    name = (engine or "").strip().lower()
    return _ENGINES.get(name, name) or None


def with_consumers(
    lineage: ReportedLineage, consumer: Consumer, tables: Mapping[str, UrnReference]
) -> ReportedLineage:
    """Replace the names of consumers (`tables`) in the lineage of a consumer's SQL.

    If the line of the SQL in its file is unknown, lines are left out.
    """

    def resolve(reference: DatasetReference) -> DatasetReference:
        if isinstance(reference, TableName) and len(reference.parts) == 1:
            return tables.get(reference.parts[0].lower(), reference)
        return reference

    def resolve_edge(edge: ReportedEdge) -> ReportedEdge:
        ends = {"upstream": resolve(edge.upstream), "downstream": resolve(edge.downstream)}
        if consumer.line is not None:
            return msgspec.structs.replace(edge, **ends)
        without_line = (
            {"columns": tuple(msgspec.structs.replace(each, line=None) for each in edge.columns)}
            | {"uses": tuple(msgspec.structs.replace(each, line=None) for each in edge.uses)}
            | ends
        )
        return msgspec.structs.replace(edge, **without_line)

    scripts = () if consumer.line is None else lineage.scripts
    return msgspec.structs.replace(
        lineage,
        edges=tuple(map(resolve_edge, lineage.edges)),
        scripts=tuple(
            msgspec.structs.replace(
                script,
                dataset=consumer.reference,
                tables=tuple((parts, resolve(table)) for parts, table in script.tables),
            )
            for script in scripts
        ),
        unparsed=tuple(
            msgspec.structs.replace(
                each, reads=tuple(map(resolve, each.reads)), writes=(consumer.reference,)
            )
            for each in lineage.unparsed
        ),
    )


def join_lineage(
    reporter: str,
    consumers: Iterable[Consumer],
    sql_lineages: Iterable[ReportedLineage],
    problems: Iterable[LineageProblem] = (),
) -> ReportedLineage:
    """The lineage of consumers; `sql_lineages` is the lineage of their SQL."""
    all_consumers, all_sql_lineages = tuple(consumers), tuple(sql_lineages)
    links_in_sql = {
        (edge.upstream, edge.downstream) for each in all_sql_lineages for edge in each.edges
    }
    return ReportedLineage(
        reporter=reporter,
        edges=(
            *(edge for each in all_sql_lineages for edge in each.edges),
            *(
                edge
                for consumer in all_consumers
                for edge in consumer.edges
                if edge.columns or edge.uses or (edge.upstream, edge.downstream) not in links_in_sql
            ),
        ),
        scripts=tuple(script for each in all_sql_lineages for script in each.scripts),
        unparsed=tuple(statement for each in all_sql_lineages for statement in each.unparsed),
        consumers=tuple(each.entity for each in all_consumers),
        problems=(*problems, *(problem for each in all_sql_lineages for problem in each.problems)),
        coverage=sum((each.coverage for each in all_sql_lineages), ColumnCoverage()),
    )
