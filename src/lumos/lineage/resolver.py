"""Replaces the names in reported lineage by the URNs of datasets."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
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
from lumos.model.catalog import Job
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
    """The schemas of datasets, each loaded once."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._read: dict[str, Schema | None] = {}
        self._spelled: dict[str, dict[str, str]] = {}

    def of(self, urn: str) -> Schema | None:
        """The schema of a dataset, if known."""
        if urn not in self._read:
            found = {} if self._store is None else self._store.schemas.current([urn])
            self._read[urn] = found.get(urn)
        return self._read[urn]

    def spelled_path(self, urn: str, path: str) -> str:
        """A path whose column is in the case that its dataset uses.

        A path that is the name of a column, such as `user.name`, means that column.
        """
        if name := self._known_name(urn, path):
            return lineage_path(name)
        below = "".join(lineage_steps(path)[1:])
        return lineage_path(self.spelled(urn, lineage_column(path))) + below

    def spelled(self, urn: str, column: str) -> str:
        """A column in the case that its dataset uses."""
        return self._known_name(urn, column) or column

    def _known_name(self, urn: str, column: str) -> str | None:
        names = self._spelled.get(urn)
        if names is None:
            schema = self.of(urn)
            names = {}
            for name in [field.name for field in schema.fields] if schema is not None else ():
                # Columns that differ only in case must match exactly.
                names[name.lower()] = "" if name.lower() in names else name
                names[name] = name
            self._spelled[urn] = names
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
        known: Mapping[Parts, Mapping[str, str]] | None = None,
    ) -> None:
        self._names = names
        self._schemas = schemas
        self._dialect = dialect
        self._platform = platform
        self._known = known or {}
        # By URN, since the table of a query file has several names.
        self._created: dict[str, Mapping[str, str]] = {}
        self._not_found: dict[str, set[Parts]] = {}

    def add_created(self, created_columns: Mapping[Parts, Sequence[str]]) -> frozenset[Parts]:
        """Add columns of created tables; return those that were looked up before and not found."""
        by_urn = {self._find(parts).urn: columns for parts, columns in created_columns.items()}
        changed = {
            urn: dict.fromkeys(columns, "")
            for urn, columns in by_urn.items()
            if list(self._created.get(urn, ())) != list(columns)
        }
        self._created |= changed
        return frozenset(parts for urn in changed for parts in self._not_found.get(urn, ()))

    def __call__(self, parts: Parts) -> Mapping[str, str] | None:
        columns = self._known.get(parts) or self._stored(parts)
        if columns is not None:
            return columns
        found = self._find(parts)
        if found.method is ResolutionMethod.AMBIGUOUS:
            return None
        columns = self._created.get(found.urn)
        if columns is None:
            self._not_found.setdefault(found.urn, set()).add(parts)
        return columns

    def _find(self, parts: Parts) -> Resolution:
        table = TableName(parts=parts, platform=self._platform)
        return self._names.find(table, dialect=self._dialect)

    def _stored(self, parts: Parts) -> Mapping[str, str] | None:
        found = self._find(parts)
        if found.method in (ResolutionMethod.ASSUMED, ResolutionMethod.AMBIGUOUS):
            return None
        schema = self._schemas.of(found.urn)
        if schema is None:
            return None
        keeps_case = found.urn.partition("://")[2].startswith(tuple(_CASE_SENSITIVE))
        return {
            field.name if keeps_case else field.name.lower(): field.type.text
            for field in schema.fields
        }


class ResolvedLineage(msgspec.Struct, frozen=True, kw_only=True):
    """The lineage of one reporter, by URN."""

    reporter: str
    edges: tuple[Edge, ...] = ()
    scripts: tuple[Script, ...] = ()
    unparsed: tuple[UnparsedStatement, ...] = ()
    owners: dict[str, tuple[str, ...]] = {}
    jobs: tuple[Job, ...] = ()
    descriptions: tuple[tuple[str, ReportedAnnotations], ...] = ()
    reads: tuple[tuple[str, DatasetRead], ...] = ()
    problems: tuple[LineageProblem, ...] = ()
    # As in `ReportedLineage`.
    written: frozenset[str] | None = None
    memory: bytes | None = None


class ReferenceResolver:
    """Resolves the lineage of reporters, and records how each name was resolved."""

    def __init__(self, names: NameIndex, schemas: SchemaCache, *, at: datetime, by: str) -> None:
        self._names = names
        self._schemas = schemas
        self._at = at
        self._by = by
        self._tables: dict[tuple[str, str], TableReport] = {}
        self._read: dict[str, tuple[TableName, TableReport]] = {}
        self._written: set[str] = set()

    @property
    def tables(self) -> tuple[TableReport, ...]:
        """Every resolved name, sorted; one name may refer to several datasets."""
        return tuple(self._tables[key] for key in sorted(self._tables))

    @property
    def tables_read(self) -> int:
        """How many tables the reporters read."""
        return len(self._read)

    def not_found(self, store: Store | None) -> tuple[MissingTable, ...]:
        """Tables that are read, match no dataset and are written by no reporter, by name."""
        unknown = {
            urn: (table, report)
            for urn, (table, report) in self._read.items()
            if not report.known
            and report.way is not ResolutionMethod.AMBIGUOUS
            and urn not in self._written
        }
        if store is not None and unknown:
            for edge in store.lineage.edges_into(unknown):
                unknown.pop(edge.downstream, None)
        missing = (
            MissingTable(
                name=report.name,
                urn=urn,
                nearest=self._names.nearest(table, created=self._written),
            )
            for urn, (table, report) in unknown.items()
        )
        return tuple(sorted(missing, key=lambda each: each.name))

    def resolve(self, reported: ReportedLineage, *, dialect: str | None) -> ResolvedLineage:
        """Resolve the lineage of one reporter; ambiguous names become problems."""
        names = _ReporterNames(self, reported, dialect)
        resolved = [(each, self._edge(names, reported.reporter, each)) for each in reported.edges]
        edges = tuple(_select_highest_rank(resolved))
        descriptions = tuple((names.urn(each.dataset), each) for each in reported.descriptions)
        return ResolvedLineage(
            reporter=reported.reporter,
            edges=edges,
            scripts=tuple(_script(names, each) for each in reported.scripts),
            unparsed=tuple(_unparsed(names, each) for each in reported.unparsed),
            jobs=tuple(_jobs(names, reported, edges)),
            descriptions=descriptions,
            owners=_owners(descriptions),
            reads=tuple((names.urn(each.dataset), each) for each in reported.reads),
            problems=(*names.ambiguities(), *self._missing_columns(edges)),
            written=None
            if reported.written is None
            else frozenset(map(names.urn, reported.written)),
            memory=reported.memory,
        )

    def find(
        self,
        reference: DatasetReference,
        *,
        dialect: str | None,
        others: Iterable[DatasetReference] = (),
    ) -> TableReport:
        """Resolve one name."""
        found = self._names.find(reference, dialect=dialect, others=others)
        report = self._report(reference, found)
        if not isinstance(reference, UrnReference):
            self._tables.setdefault((report.name, report.urn), report)
            self._names.assume(report.urn)
        return report

    def possible(self, reference: DatasetReference, *, dialect: str | None) -> tuple[str, ...]:
        """All datasets that a name may refer to, without recording the name."""
        try:
            found = self._names.find(reference, dialect=dialect)
        except InvalidUrn:
            # A word of an unparsed text that is not a valid dataset name.
            return ()
        return (found.urn, *found.candidates)

    def definitions(self, urns: Iterable[str]) -> dict[str, str]:
        """The query files that create some tables, and an unambiguous name of each table."""
        return self._names.definitions(urns)

    def _report(self, reference: DatasetReference, found: Resolution) -> TableReport:
        return TableReport(
            name=display_name(reference),
            urn=found.urn,
            way=found.method,
            known=found.urn in self._names,
            candidates=found.candidates,
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
        self._written.add(downstream)
        if isinstance(reported.upstream, TableName) and upstream not in self._read:
            table = self._tables[display_name(reported.upstream), upstream]
            self._read[upstream] = reported.upstream, table
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
            uses=tuple(self._use(each, upstream, downstream) for each in reported.uses),
        )

    def _mapping(self, mapping: ColumnMapping, upstream: str, downstream: str) -> ColumnMapping:
        ends = (
            self._schemas.spelled_path(upstream, mapping.upstream),
            self._schemas.spelled(downstream, mapping.downstream),
        )
        if ends == (mapping.upstream, mapping.downstream):
            return mapping
        return msgspec.structs.replace(mapping, upstream=ends[0], downstream=ends[1])

    def _use(self, use: ColumnUse, upstream: str, downstream: str) -> ColumnUse:
        output = use.downstream
        if output is not None:
            output = self._schemas.spelled(downstream, output)
        used = self._schemas.spelled_path(upstream, use.upstream)
        if (used, output) == (use.upstream, use.downstream):
            return use
        return msgspec.structs.replace(use, upstream=used, downstream=output)


class _ReporterNames:
    """Resolves the names of one reporter and collects the ambiguous ones."""

    def __init__(
        self, resolver: ReferenceResolver, reported: ReportedLineage, dialect: str | None
    ) -> None:
        self._resolver = resolver
        self._reporter = reported.reporter
        self._dialect = dialect
        self._others = {each.dataset: each.others for each in reported.aliases}
        self._ambiguous: dict[str, TableReport] = {}

    def urn(self, reference: DatasetReference) -> str:
        found = self._resolver.find(
            reference, dialect=self._dialect, others=self._others.get(reference, ())
        )
        if found.way is ResolutionMethod.AMBIGUOUS:
            self._ambiguous[found.name] = found
        return found.urn

    def possible(self, references: Iterable[DatasetReference]) -> tuple[str, ...]:
        found = (self._resolver.possible(each, dialect=self._dialect) for each in references)
        return tuple(dict.fromkeys(urn for urns in found for urn in urns))

    def ambiguities(self) -> Iterator[LineageProblem]:
        for name, found in sorted(self._ambiguous.items()):
            if self._reporter.removeprefix("sql:") in self._resolver.definitions([found.urn]):
                # The full name of one table may also be the end of another name.
                continue
            files = self._resolver.definitions(found.candidates)
            if files:
                names = " or ".join(dict.fromkeys(files.values()))
                reason = (
                    f"'{name}' is defined by {len(files):,} files: {', '.join(files)}; "
                    f"write {names}."
                )
            else:
                reason = (
                    f"'{name}' may be {' or '.join(found.candidates)}; neither was chosen "
                    f"and {found.urn} is used instead. Add a rule to 'sql_names', or qualify the "
                    "name."
                )
            yield LineageProblem(place=self._reporter, reason=reason, severity="remark")


def _select_highest_rank(edges: Sequence[tuple[ReportedEdge, Edge]]) -> Iterator[Edge]:
    highest: dict[str, tuple[bool, datetime]] = {}
    for reported, edge in edges:
        if reported.rank is not None:
            highest[edge.downstream] = max(
                reported.rank, highest.get(edge.downstream, reported.rank)
            )
    for reported, edge in edges:
        if reported.rank is None or reported.rank == highest[edge.downstream]:
            yield edge


def _script(names: _ReporterNames, reported: ReportedScript) -> Script:
    return Script(
        sql=reported.sql,
        dialect=reported.dialect,
        file=reported.file,
        dataset=None if reported.dataset is None else names.urn(reported.dataset),
        tables=tuple((parts, names.urn(table)) for parts, table in reported.tables),
    )


def _unparsed(names: _ReporterNames, reported: ReportedUnparsedStatement) -> UnparsedStatement:
    return UnparsedStatement(
        line=reported.line,
        file=reported.file,
        # A name that is not a table resolves to a URN without a dataset.
        reads=names.possible((*reported.reads, *reported.others)),
        writes=names.possible(reported.writes),
    )


def _owners(descriptions: Iterable[tuple[str, ReportedAnnotations]]) -> dict[str, tuple[str, ...]]:
    """The owners of each dataset, known or not."""
    named: dict[str, dict[str, None]] = {}
    for urn, each in descriptions:
        if each.owners:
            named.setdefault(urn, {}).update(dict.fromkeys(owner.name for owner in each.owners))
    return {urn: tuple(names) for urn, names in named.items()}


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
    """The display name of a reference, without secrets."""
    match reference:
        case TableName():
            return mask_arguments(reference.parts, dotted(reference.parts))
        case LocationReference():
            return mask_arguments([reference.uri], reference.uri)
        case UrnReference():
            return reference.urn
