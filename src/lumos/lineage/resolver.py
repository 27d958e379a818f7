"""Replaces the names in reported lineage by the URNs of datasets."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from lumos.config.secret import mask_arguments
from lumos.lineage.name_index import NameIndex
from lumos.lineage.reported_lineage import (
    DatasetRead,
    DatasetReference,
    LineageProblem,
    LocationReference,
    ReportedAnnotations,
    ReportedEdge,
    ReportedLineage,
    ReportedScript,
    ReportedUnparsedStatement,
    Resolution,
    ResolutionMethod,
    TableName,
    UrnReference,
)
from lumos.lineage.reports import MissingTable, TableReport
from lumos.lineage.sql.dialects import dotted
from lumos.model.catalog import CatalogEntity, Job, consumer_entity, consumer_urn, kind_in_urn
from lumos.model.lineage import ColumnMapping, ColumnUse, Edge, Script, UnparsedStatement
from lumos.model.paths import lineage_column, lineage_path, lineage_steps
from lumos.model.schema import Schema
from lumos.model.urn import InvalidUrn
from lumos.store import Store

# The prefix of reporters that are hand-written files.
DECLARED: Final = "declared:"
_PATH_SEPARATOR: Final = re.compile(r"[.\[]")
Parts: TypeAlias = tuple[str, ...]
# Platforms with case-sensitive column names.
_CASE_SENSITIVE = frozenset(("postgres",))


class SchemaCache:
    """The schemas of datasets, each loaded once.

    `datasets` knows the URNs of all datasets in the store, so that others need no query.
    """

    def __init__(self, store: Store | None, datasets: NameIndex | None = None) -> None:
        self._store = store
        self._datasets = datasets
        self._schemas: dict[str, Schema | None] = {}
        # Column names of the schema, by exact and lower-case name.
        self._column_names: dict[str, dict[str, str]] = {}
        # Paths in the case of the schema, since a join names the same columns many times.
        self._paths: dict[tuple[str, str], str] = {}

    def of(self, urn: str) -> Schema | None:
        """The schema of a dataset, if known."""
        if urn not in self._schemas:
            self.load([urn])
        return self._schemas[urn]

    def load(self, urns: Iterable[str]) -> None:
        """Load the schemas of several datasets at once."""
        missing_urns = {*urns} - self._schemas.keys()
        stored = {urn for urn in missing_urns if self._datasets is None or urn in self._datasets}
        current = self._store.schemas.current(stored) if self._store is not None and stored else {}
        self._schemas |= {urn: current.get(urn) for urn in missing_urns}

    def path_in_schema_case(self, urn: str, path: str) -> str:
        """A path with its column in the case of the schema.

        If a column is called like the path, such as `user.name`, the path is that column.
        """
        stored_path = self._paths.get((urn, path))
        if stored_path is None:
            if name := self._find_name(urn, path):
                stored_path = lineage_path(name)
            else:
                nested_steps = "".join(lineage_steps(path)[1:])
                column = self.in_schema_case(urn, lineage_column(path))
                stored_path = lineage_path(column) + nested_steps
            self._paths[urn, path] = stored_path
        return stored_path

    def in_schema_case(self, urn: str, column: str) -> str:
        """A column in the case of the schema, or as given if it is not in the schema."""
        return self._find_name(urn, column) or column

    def _find_name(self, urn: str, column: str) -> str | None:
        names = self._column_names.get(urn)
        if names is None:
            schema = self.of(urn)
            names = {}
            for name in [field.name for field in schema.fields] if schema is not None else ():
                # Columns that differ only in case must match exactly.
                names[name.lower()] = "" if name.lower() in names else name
                names[name] = name
            self._column_names[urn] = names
        return names.get(column) or names.get(column.lower()) or None

    def lacks(self, urn: str, column: str) -> bool:
        """Whether the dataset's schema is known and does not contain the column."""
        schema = self.of(urn)
        if schema is None:
            return False
        names = {field.name.lower() for field in schema.fields}
        return not names & {column.lower(), _PATH_SEPARATOR.split(column.lower(), maxsplit=1)[0]}


class ColumnLookup:
    """Provides the columns of tables to the analysis of SQL."""

    def __init__(
        self,
        names: NameIndex,
        schemas: SchemaCache,
        *,
        dialect: str | None,
        platform: str | None = None,
        declared: Mapping[Parts, Mapping[str, str]] | None = None,
    ) -> None:
        self._names = names
        self._schemas = schemas
        self._dialect = dialect
        self._platform = platform
        # Columns from a dbt project.
        self._declared = declared or {}
        # Columns of created tables by URN, since the table of a query file has several names.
        self._created: dict[str, Mapping[str, str]] = {}
        self._not_found: dict[str, set[Parts]] = {}
        # The number of lookups so far of tables that a later script may create.
        self.unknown = 0
        self._columns_by_urn: dict[str, Mapping[str, str] | None] = {}

    def add_created(self, created_columns: Mapping[Parts, Sequence[str]]) -> frozenset[Parts]:
        """Add columns of created tables; returns those tables that were unknown when looked up."""
        by_urn = {self._find(parts).urn: columns for parts, columns in created_columns.items()}
        changed_tables = {
            urn: dict.fromkeys(columns, "")
            for urn, columns in by_urn.items()
            if list(self._created.get(urn, ())) != list(columns)
        }
        self._created |= changed_tables
        return frozenset(parts for urn in changed_tables for parts in self._not_found.get(urn, ()))

    def __call__(self, parts: Parts) -> Mapping[str, str] | None:
        columns = self._declared.get(parts) or self._stored_columns(parts)
        if columns is not None:
            return columns
        resolution = self._find(parts)
        if resolution.method is ResolutionMethod.AMBIGUOUS:
            return None
        columns = self._created.get(resolution.urn)
        if columns is None:
            self.unknown += 1
            self._not_found.setdefault(resolution.urn, set()).add(parts)
        return columns

    def _find(self, parts: Parts) -> Resolution:
        table = TableName(parts=parts, platform=self._platform)
        return self._names.find(table, dialect=self._dialect)

    def _stored_columns(self, parts: Parts) -> Mapping[str, str] | None:
        """The columns of a table in the store, if known."""
        resolution = self._find(parts)
        if resolution.method in (ResolutionMethod.ASSUMED, ResolutionMethod.AMBIGUOUS):
            return None
        urn = resolution.urn
        if urn not in self._columns_by_urn:
            schema = self._schemas.of(urn)
            is_case_sensitive = urn.partition("://")[2].startswith(tuple(_CASE_SENSITIVE))
            self._columns_by_urn[urn] = None
            if schema is not None:
                self._columns_by_urn[urn] = {
                    field.name if is_case_sensitive else field.name.lower(): field.type.text
                    for field in schema.fields
                }
        return self._columns_by_urn[urn]


class ResolvedLineage(msgspec.Struct, frozen=True, kw_only=True):
    """The lineage of one reporter, with URNs instead of names."""

    reporter: str
    edges: tuple[Edge, ...] = ()
    scripts: tuple[Script, ...] = ()
    unparsed: tuple[UnparsedStatement, ...] = ()
    owners: dict[str, tuple[str, ...]] = {}
    jobs: tuple[Job, ...] = ()
    consumers: tuple[CatalogEntity, ...] = ()
    annotations: tuple[tuple[str, ReportedAnnotations], ...] = ()
    reads: tuple[tuple[str, DatasetRead], ...] = ()
    problems: tuple[LineageProblem, ...] = ()
    # See `ReportedLineage`.
    analysed_targets: frozenset[str] | None = None
    stored_events: bytes | None = None


class ReferenceResolver:
    """Resolves the lineage of reporters, and records how each name was resolved."""

    def __init__(self, names: NameIndex, schemas: SchemaCache, *, at: datetime, by: str) -> None:
        self._names = names
        self._schemas = schemas
        self._at = at
        self._by = by
        self._reports: dict[tuple[str, str], TableReport] = {}
        self._tables_read: dict[str, tuple[TableName, TableReport]] = {}
        self._urns_written: set[str] = set()

    @property
    def tables(self) -> tuple[TableReport, ...]:
        """Every resolved name, sorted; one name may refer to several datasets."""
        return tuple(self._reports[key] for key in sorted(self._reports))

    @property
    def tables_read(self) -> int:
        """The number of tables that the reporters read."""
        return len(self._tables_read)

    def not_found(self, store: Store | None) -> tuple[MissingTable, ...]:
        """Tables that are read, but neither in the store nor written by a reporter, by name."""
        unknown = {
            urn: (table, report)
            for urn, (table, report) in self._tables_read.items()
            if not report.known
            and report.way is not ResolutionMethod.AMBIGUOUS
            and urn not in self._urns_written
        }
        if store is not None and unknown:
            for edge in store.lineage.edges_into(unknown):
                unknown.pop(edge.downstream, None)
        missing = (
            MissingTable(
                name=report.name,
                urn=urn,
                nearest=self._names.nearest(table, created=self._urns_written),
            )
            for urn, (table, report) in unknown.items()
        )
        return tuple(sorted(missing, key=lambda each: each.name))

    def resolve(self, reported: ReportedLineage, *, dialect: str | None) -> ResolvedLineage:
        """Resolve the lineage of one reporter; ambiguous names become problems."""
        names = _ReporterNames(self, reported, dialect)
        resolved_edges = [
            (each, self._edge(names, reported.reporter, each)) for each in reported.edges
        ]
        edges = tuple(_select_highest_rank(resolved_edges))
        annotations = tuple((names.urn(each.dataset), each) for each in reported.annotations)
        return ResolvedLineage(
            reporter=reported.reporter,
            edges=edges,
            scripts=tuple(_resolve_script(names, each) for each in reported.scripts),
            unparsed=tuple(_resolve_unparsed_statement(names, each) for each in reported.unparsed),
            jobs=tuple(_jobs(names, reported, edges)),
            consumers=tuple(_with_references(each, edges) for each in reported.consumers),
            annotations=annotations,
            owners=_owners(annotations, reported.consumers),
            reads=tuple((names.urn(each.dataset), each) for each in reported.reads),
            problems=(*names.ambiguity_remarks(), *self._missing_columns(edges)),
            analysed_targets=None
            if reported.analysed_targets is None
            else frozenset(map(names.urn, reported.analysed_targets)),
            stored_events=reported.stored_events,
        )

    def find(
        self,
        reference: DatasetReference,
        *,
        dialect: str | None,
        others: Iterable[DatasetReference] = (),
    ) -> TableReport:
        """Resolve a name, or else the first of `others` that can be resolved, and record it."""
        resolution = self._names.find(reference, dialect=dialect, others=others)
        report = self._report(reference, resolution)
        if not isinstance(reference, UrnReference):
            self._reports.setdefault((report.name, report.urn), report)
            self._names.assume(report.urn)
        return report

    def candidates(self, reference: DatasetReference, *, dialect: str | None) -> tuple[str, ...]:
        """The URNs that a name may refer to, without recording the name."""
        try:
            resolution = self._names.find(reference, dialect=dialect)
        except InvalidUrn:
            # A word of an unparsed text that is not a valid dataset name.
            return ()
        return (resolution.urn, *resolution.candidates)

    def defining_files(self, urns: Iterable[str]) -> dict[str, str]:
        """The query files that create the tables, each with an unambiguous name of its table."""
        return self._names.defining_files(urns)

    def _report(self, reference: DatasetReference, resolution: Resolution) -> TableReport:
        return TableReport(
            name=display_name(reference),
            urn=resolution.urn,
            way=resolution.method,
            known=resolution.urn in self._names,
            candidates=resolution.candidates,
        )

    def _missing_columns(self, edges: Iterable[Edge]) -> Iterator[LineageProblem]:
        """A remark for each declared column that the dataset does not have."""
        for edge in edges:
            if not edge.origin.startswith(DECLARED):
                continue
            links: tuple[ColumnMapping | ColumnUse, ...] = (*edge.columns, *edge.uses)
            for link in links:
                ends = (edge.upstream, link.upstream), (edge.downstream, link.downstream)
                for urn, column in ends:
                    if column is not None and self._schemas.lacks(urn, column):
                        reason = f"{urn} has no column '{column}'."
                        yield LineageProblem(
                            place=link.file or edge.origin,
                            line=link.line,
                            reason=reason,
                            severity="remark",
                        )

    def _edge(self, names: "_ReporterNames", reporter: str, reported: ReportedEdge) -> Edge:
        upstream, downstream = names.urn(reported.upstream), names.urn(reported.downstream)
        self._urns_written.add(downstream)
        if isinstance(reported.upstream, TableName) and upstream not in self._tables_read:
            report = self._reports[display_name(reported.upstream), upstream]
            self._tables_read[upstream] = reported.upstream, report
        return Edge(
            upstream=upstream,
            downstream=downstream,
            origin=reporter,
            at=self._at,
            type=reported.type,
            confidence=reported.confidence,
            created_by=self._by,
            job=reported.job,
            columns=tuple(self._mapping(each, upstream, downstream) for each in reported.columns),
            uses=tuple(self._resolve_use(each, upstream, downstream) for each in reported.uses),
        )

    def _mapping(self, mapping: ColumnMapping, upstream: str, downstream: str) -> ColumnMapping:
        ends = (
            self._schemas.path_in_schema_case(upstream, mapping.upstream),
            self._schemas.in_schema_case(downstream, mapping.downstream),
        )
        if ends == (mapping.upstream, mapping.downstream):
            return mapping
        return msgspec.structs.replace(mapping, upstream=ends[0], downstream=ends[1])

    def _resolve_use(self, use: ColumnUse, upstream: str, downstream: str) -> ColumnUse:
        downstream_column = use.downstream
        if downstream_column is not None:
            downstream_column = self._schemas.in_schema_case(downstream, downstream_column)
        upstream_column = self._schemas.path_in_schema_case(upstream, use.upstream)
        if (upstream_column, downstream_column) == (use.upstream, use.downstream):
            return use
        return msgspec.structs.replace(use, upstream=upstream_column, downstream=downstream_column)


class _ReporterNames:
    """Resolves the names of one reporter and collects ambiguous names."""

    def __init__(
        self, resolver: ReferenceResolver, reported: ReportedLineage, dialect: str | None
    ) -> None:
        self._resolver = resolver
        self._reporter = reported.reporter
        self._dialect = dialect
        self._aliases = {each.dataset: each.others for each in reported.aliases}
        self._ambiguous: dict[str, TableReport] = {}
        self._urns: dict[DatasetReference, str] = {}

    def urn(self, reference: DatasetReference) -> str:
        """The URN of a name, which is the same everywhere in a report."""
        if reference not in self._urns:
            self._urns[reference] = self._find_urn(reference)
        return self._urns[reference]

    def _find_urn(self, reference: DatasetReference) -> str:
        report = self._resolver.find(
            reference, dialect=self._dialect, others=self._aliases.get(reference, ())
        )
        if report.way is ResolutionMethod.AMBIGUOUS:
            self._ambiguous[report.name] = report
        return report.urn

    def candidates(self, references: Iterable[DatasetReference]) -> tuple[str, ...]:
        """The URNs that the names may refer to."""
        urns = (self._resolver.candidates(each, dialect=self._dialect) for each in references)
        return tuple(dict.fromkeys(chain.from_iterable(urns)))

    def ambiguity_remarks(self) -> Iterator[LineageProblem]:
        for name, report in sorted(self._ambiguous.items()):
            if self._reporter.removeprefix("sql:") in self._resolver.defining_files([report.urn]):
                # The full name of the table that this file defines is also the end of another name.
                continue
            files = self._resolver.defining_files(report.candidates)
            if files:
                names = " or ".join(dict.fromkeys(files.values()))
                reason = (
                    f"'{name}' is defined by {len(files):,} files: {', '.join(files)}; "
                    f"write {names}."
                )
            else:
                reason = (
                    f"'{name}' may be {' or '.join(report.candidates)}; neither was chosen "
                    f"and {report.urn} is used instead. Add a rule to 'sql_names', or qualify the "
                    "name."
                )
            yield LineageProblem(place=self._reporter, reason=reason, severity="remark")


def _select_highest_rank(edges: Sequence[tuple[ReportedEdge, Edge]]) -> Iterator[Edge]:
    """Of ranked edges to the same dataset, select those with the highest rank."""
    highest: dict[str, tuple[bool, datetime]] = {}
    for reported, edge in edges:
        if reported.rank is not None:
            highest[edge.downstream] = max(
                reported.rank, highest.get(edge.downstream, reported.rank)
            )
    for reported, edge in edges:
        if reported.rank is None or reported.rank == highest[edge.downstream]:
            yield edge


def _resolve_script(names: _ReporterNames, reported: ReportedScript) -> Script:
    return Script(
        sql=reported.sql,
        dialect=reported.dialect,
        file=reported.file,
        dataset=None if reported.dataset is None else names.urn(reported.dataset),
        tables=tuple((parts, names.urn(table)) for parts, table in reported.tables),
    )


def _resolve_unparsed_statement(
    names: _ReporterNames, reported: ReportedUnparsedStatement
) -> UnparsedStatement:
    return UnparsedStatement(
        line=reported.line,
        file=reported.file,
        # Names that are not tables are harmless: no dataset has their URN.
        reads=names.candidates((*reported.reads, *reported.others)),
        writes=names.candidates(reported.writes),
    )


def _owners(
    annotations: Iterable[tuple[str, ReportedAnnotations]], consumers: Iterable[CatalogEntity]
) -> dict[str, tuple[str, ...]]:
    """The names of the owners of each dataset and consumer, even if it is not in the store."""
    owners: dict[str, dict[str, None]] = {}
    of_datasets = ((urn, each.owners) for urn, each in annotations)
    of_consumers = ((consumer_urn(each.urn), each.owners) for each in consumers)
    for urn, reported in (*of_datasets, *of_consumers):
        if reported:
            owners.setdefault(urn, {}).update(dict.fromkeys(owner.name for owner in reported))
    return {urn: tuple(names) for urn, names in owners.items()}


def _with_references(consumer: CatalogEntity, edges: Iterable[Edge]) -> CatalogEntity:
    """Add references to the datasets and charts that a consumer reads."""
    urn = consumer_urn(consumer.urn)
    references: dict[str, set[str]] = {}
    for edge in edges:
        if edge.downstream == urn:
            entity = consumer_entity(edge.upstream)
            relation = "datasets" if entity is None else f"{kind_in_urn(entity)}s"
            references.setdefault(relation, set()).add(entity or edge.upstream)
    sorted_references = {name: tuple(sorted(urns)) for name, urns in sorted(references.items())}
    return msgspec.structs.replace(consumer, references=sorted_references)


def _jobs(names: _ReporterNames, reported: ReportedLineage, edges: Iterable[Edge]) -> Iterator[Job]:
    """The jobs with their inputs and outputs."""
    inputs: dict[str, dict[str, None]] = {}
    outputs: dict[str, dict[str, None]] = {}
    for flow in reported.flows:
        inputs.setdefault(flow.job, {}).update(dict.fromkeys(map(names.urn, flow.inputs)))
        outputs.setdefault(flow.job, {}).update(dict.fromkeys(map(names.urn, flow.outputs)))
    for edge in edges:
        if edge.job is not None:
            inputs.setdefault(edge.job, {})[edge.upstream] = None
            outputs.setdefault(edge.job, {})[edge.downstream] = None
    for job in reported.jobs:
        yield msgspec.structs.replace(
            job,
            inputs=tuple(sorted({*job.inputs, *inputs.get(job.urn, ())})),
            outputs=tuple(sorted({*job.outputs, *outputs.get(job.urn, ())})),
        )


def display_name(reference: DatasetReference) -> str:
    """The text of a reference in reports, without secrets."""
    match reference:
        case TableName():
            return mask_arguments(reference.parts, dotted(reference.parts))
        case LocationReference():
            return mask_arguments([reference.uri], reference.uri)
        case UrnReference():
            return reference.urn
