"""What reporters say, with the URNs of datasets in the place of names."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from lumos.config.secret import mask_arguments
from lumos.lineage.name_index import Names
from lumos.lineage.reported import (
    Described,
    Known,
    Place,
    Problem,
    Read,
    Reference,
    Reported,
    ReportedEdge,
    ReportedScript,
    ReportedUnparsed,
    TableName,
)
from lumos.lineage.reports import MissingTable, TableReport
from lumos.lineage.resolution import Found, Way
from lumos.lineage.schemas import Schemas
from lumos.lineage.sql.names import dotted
from lumos.model.catalog import Job
from lumos.model.lineage import ColumnMapping, ColumnUse, Edge, Script, UnparsedStatement
from lumos.model.urn import InvalidUrn
from lumos.store import Store

# Reporters that are files which people wrote by hand.
DECLARED: Final = "declared:"


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """What a reporter says of datasets by their URNs."""

    reporter: str
    edges: tuple[Edge, ...] = ()
    scripts: tuple[Script, ...] = ()
    unparsed: tuple[UnparsedStatement, ...] = ()
    owners: dict[str, tuple[str, ...]] = {}
    jobs: tuple[Job, ...] = ()
    descriptions: tuple[tuple[str, Described], ...] = ()
    reads: tuple[tuple[str, Read], ...] = ()
    problems: tuple[Problem, ...] = ()
    # As in `Reported`.
    written: frozenset[str] | None = None
    memory: bytes | None = None


class Placing:
    """Finds the datasets of one reporter after the other, and remembers how."""

    def __init__(self, names: Names, schemas: Schemas, *, at: datetime, by: str) -> None:
        self._names = names
        self._schemas = schemas
        self._at = at
        self._by = by
        self._tables: dict[tuple[str, str], TableReport] = {}
        self._read: dict[str, tuple[TableName, TableReport]] = {}
        self._written: set[str] = set()

    @property
    def tables(self) -> tuple[TableReport, ...]:
        """Every table and place that was named, by name; one name may mean several."""
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
            if not report.known and report.way is not Way.AMBIGUOUS and urn not in self._written
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

    def place(self, said: Reported, *, dialect: str | None) -> Placed:
        """What a reporter says, and which of its names mean more than one dataset."""
        finding = _Finding(self, said, dialect)
        placed = [(each, self._edge(finding, said.reporter, each)) for each in said.edges]
        edges = tuple(_of_highest_rank(placed))
        descriptions = tuple((finding.urn(each.dataset), each) for each in said.descriptions)
        return Placed(
            reporter=said.reporter,
            edges=edges,
            scripts=tuple(_script(finding, each) for each in said.scripts),
            unparsed=tuple(_unparsed(finding, each) for each in said.unparsed),
            jobs=tuple(_jobs(finding, said, edges)),
            descriptions=descriptions,
            owners=_owners(descriptions),
            reads=tuple((finding.urn(each.dataset), each) for each in said.reads),
            problems=(*finding.ambiguities(), *self._missing(edges)),
            written=None if said.written is None else frozenset(map(finding.urn, said.written)),
            memory=said.memory,
        )

    def find(
        self, reference: Reference, *, dialect: str | None, others: Iterable[Reference] = ()
    ) -> TableReport:
        """A dataset that is named, and how it was found."""
        found = self._names.find(reference, dialect=dialect, others=others)
        report = self._report(reference, found)
        if not isinstance(reference, Known):
            self._tables.setdefault((report.name, report.urn), report)
            self._names.assume(report.urn)
        return report

    def possible(self, reference: Reference, *, dialect: str | None) -> tuple[str, ...]:
        """All datasets that a name may mean; nothing is remembered of a name that may be none."""
        try:
            found = self._names.find(reference, dialect=dialect)
        except InvalidUrn:
            # Words of a text that nobody could parse, which no dataset can be called.
            return ()
        return (found.urn, *found.candidates)

    def definitions(self, urns: Iterable[str]) -> dict[str, str]:
        """The query files that create some tables, each with a name that means it alone."""
        return self._names.definitions(urns)

    def _report(self, reference: Reference, found: Found) -> TableReport:
        return TableReport(
            name=written(reference),
            urn=found.urn,
            way=found.way,
            known=found.urn in self._names,
            candidates=found.candidates,
        )

    def _missing(self, edges: Iterable[Edge]) -> Iterator[Problem]:
        """Columns that people declare and the datasets do not have."""
        for edge in edges:
            if not edge.origin.startswith(DECLARED):
                continue
            facts: tuple[ColumnMapping | ColumnUse, ...] = (*edge.columns, *edge.uses)
            for fact in facts:
                ends = (edge.upstream, fact.upstream), (edge.downstream, fact.downstream)
                for urn, column in ends:
                    if column is not None and self._schemas.lacks(urn, column):
                        reason = f"{urn} has no column '{column}'."
                        yield Problem(
                            place=fact.file or edge.origin,
                            line=fact.line,
                            reason=reason,
                            severity="remark",
                        )

    def _edge(self, finding: "_Finding", reporter: str, said: ReportedEdge) -> Edge:
        upstream, downstream = finding.urn(said.upstream), finding.urn(said.downstream)
        self._written.add(downstream)
        if isinstance(said.upstream, TableName) and upstream not in self._read:
            table = self._tables[written(said.upstream), upstream]
            self._read[upstream] = said.upstream, table
        return Edge(
            upstream=upstream,
            downstream=downstream,
            origin=reporter,
            at=self._at,
            type=said.type,
            confidence=said.confidence,
            created_by=self._by,
            job=said.job,
            columns=tuple(self._mapping(each, upstream, downstream) for each in said.columns),
            uses=tuple(self._use(each, upstream, downstream) for each in said.uses),
        )

    def _mapping(self, mapping: ColumnMapping, upstream: str, downstream: str) -> ColumnMapping:
        ends = (
            self._schemas.spelled(upstream, mapping.upstream),
            self._schemas.spelled(downstream, mapping.downstream),
        )
        if ends == (mapping.upstream, mapping.downstream):
            return mapping
        return msgspec.structs.replace(mapping, upstream=ends[0], downstream=ends[1])

    def _use(self, use: ColumnUse, upstream: str, downstream: str) -> ColumnUse:
        decided = use.downstream
        if decided is not None:
            decided = self._schemas.spelled(downstream, decided)
        used = self._schemas.spelled(upstream, use.upstream)
        if (used, decided) == (use.upstream, use.downstream):
            return use
        return msgspec.structs.replace(use, upstream=used, downstream=decided)


class _Finding:
    """The names of one reporter."""

    def __init__(self, placing: Placing, said: Reported, dialect: str | None) -> None:
        self._placing = placing
        self._reporter = said.reporter
        self._dialect = dialect
        self._others = {each.dataset: each.others for each in said.aliases}
        self._ambiguous: dict[str, TableReport] = {}

    def urn(self, reference: Reference) -> str:
        found = self._placing.find(
            reference, dialect=self._dialect, others=self._others.get(reference, ())
        )
        if found.way is Way.AMBIGUOUS:
            self._ambiguous[found.name] = found
        return found.urn

    def possible(self, references: Iterable[Reference]) -> tuple[str, ...]:
        found = (self._placing.possible(each, dialect=self._dialect) for each in references)
        return tuple(dict.fromkeys(urn for urns in found for urn in urns))

    def ambiguities(self) -> Iterator[Problem]:
        for name, found in sorted(self._ambiguous.items()):
            if self._reporter.removeprefix("sql:") in self._placing.definitions([found.urn]):
                # Its own full name, which is also the end of another one.
                continue
            files = self._placing.definitions(found.candidates)
            if files:
                names = " or ".join(dict.fromkeys(files.values()))
                reason = (
                    f"'{name}' is defined by {len(files):,} files: {', '.join(files)}; "
                    f"write {names}."
                )
            else:
                reason = (
                    f"'{name}' may be {' or '.join(found.candidates)}; it was taken for neither "
                    f"and stays {found.urn}. Say which with a rule in 'sql_names', or qualify the "
                    "name."
                )
            yield Problem(place=self._reporter, reason=reason, severity="remark")


def _of_highest_rank(edges: Sequence[tuple[ReportedEdge, Edge]]) -> Iterator[Edge]:
    highest: dict[str, tuple[bool, datetime]] = {}
    for said, edge in edges:
        if said.rank is not None:
            highest[edge.downstream] = max(said.rank, highest.get(edge.downstream, said.rank))
    for said, edge in edges:
        if said.rank is None or said.rank == highest[edge.downstream]:
            yield edge


def _script(finding: _Finding, said: ReportedScript) -> Script:
    return Script(
        sql=said.sql,
        dialect=said.dialect,
        file=said.file,
        dataset=None if said.dataset is None else finding.urn(said.dataset),
        tables=tuple((parts, finding.urn(table)) for parts, table in said.tables),
    )


def _unparsed(finding: _Finding, said: ReportedUnparsed) -> UnparsedStatement:
    return UnparsedStatement(
        line=said.line,
        file=said.file,
        # A name that is no table's gives a URN that no dataset has.
        reads=finding.possible((*said.reads, *said.others)),
        writes=finding.possible(said.writes),
    )


def _owners(descriptions: Iterable[tuple[str, Described]]) -> dict[str, tuple[str, ...]]:
    """Whom a reporter names for each dataset, whether anybody knows the dataset or not."""
    named: dict[str, dict[str, None]] = {}
    for urn, each in descriptions:
        if each.owners:
            named.setdefault(urn, {}).update(dict.fromkeys(owner.name for owner in each.owners))
    return {urn: tuple(names) for urn, names in named.items()}


def _jobs(finding: _Finding, said: Reported, edges: Iterable[Edge]) -> Iterator[Job]:
    """The jobs with what they read and write."""
    inputs: dict[str, dict[str, None]] = {}
    outputs: dict[str, dict[str, None]] = {}
    for flow in said.flows:
        inputs.setdefault(flow.job, {}).update(dict.fromkeys(map(finding.urn, flow.inputs)))
        outputs.setdefault(flow.job, {}).update(dict.fromkeys(map(finding.urn, flow.outputs)))
    for edge in edges:
        if edge.job is not None:
            inputs.setdefault(edge.job, {})[edge.upstream] = None
            outputs.setdefault(edge.job, {})[edge.downstream] = None
    for job in said.jobs:
        yield msgspec.structs.replace(
            job,
            inputs=tuple(sorted({*job.inputs, *inputs.get(job.urn, ())})),
            outputs=tuple(sorted({*job.outputs, *outputs.get(job.urn, ())})),
        )


def written(reference: Reference) -> str:
    """What a dataset is called by, in words for people."""
    match reference:
        case TableName():
            return mask_arguments(reference.parts, dotted(reference.parts))
        case Place():
            return mask_arguments([reference.uri], reference.uri)
        case Known():
            return reference.urn
