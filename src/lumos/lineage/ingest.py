"""`lumos lineage ingest`: read lineage files and record their edges in the store."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from lumos.config import Settings
from lumos.config.airflow import AirflowSettings
from lumos.config.sql_names import NameTemplate
from lumos.lineage.file_reader import FailedFile, FileReader, FileReport, ReadResult
from lumos.lineage.input_files import InputFiles, InputKind, identify_files
from lumos.lineage.name_index import load_name_index
from lumos.lineage.reported_lineage import ColumnCoverage, LineageProblem, ReportedAnnotations
from lumos.lineage.reports import CoverageReport, EdgeCounts, LineageIngestReport, ReporterReport
from lumos.lineage.resolver import ReferenceResolver, ResolvedLineage, SchemaCache
from lumos.lineage.sql import analyse
from lumos.lineage.sql.dialects import find_dialect
from lumos.model.lineage import Edge, Script
from lumos.progress import Progress
from lumos.storage.file_names import FileNames, is_inside
from lumos.store import Store
from lumos.store.lineage import ReporterContents
from lumos.store.transaction import current_user

if TYPE_CHECKING:
    from lumos.usage.reports import UsageIngestReport
    from lumos.usage.service import UsageService

# Prefixes of reporters that are files; they are removed if their file is missing in its folder.
_FILE_REPORTERS = ("sql:", "declared:", "exposures:", "metabase:", "superset:")
# The number of files that a remark about duplicate definitions lists.
_MAX_LISTED_FILES = 5
# The number of reporters that are written in one transaction.
_BATCH_SIZE: Final = 100
# Applies a reporter's annotations, to all datasets or only to the given ones; returns the number of
# changed datasets.
ApplyAnnotations: TypeAlias = Callable[
    [str, Sequence[tuple[str, ReportedAnnotations]], Collection[str] | None], int
]


class _DryRun(Exception):
    """Rolls back the transaction of a dry run."""


class LineageIngest:
    """One run of `lumos lineage ingest`; without `usage`, reads are not counted."""

    def __init__(
        self,
        settings: Settings,
        store: Store | None,
        *,
        files: FileNames,
        dialect: str | None,
        name_from: str | None,
        dry_run: bool,
        accept_removals: bool,
        apply_annotations: ApplyAnnotations,
        usage: "UsageService | None",
        progress: Progress,
    ) -> None:
        find_dialect(dialect)
        self._store = store
        self._files = files
        self._dialect = dialect
        template = name_from if name_from is not None else settings.sql_name_from
        self._name_from = None if template is None else NameTemplate(template)
        self._dry_run = dry_run
        self._accept_removals = accept_removals
        self._usage = usage
        self._progress = progress
        self._at = datetime.now(UTC)
        self._names = load_name_index(settings, store)
        self._schemas = SchemaCache(store, self._names)
        self._resolver = ReferenceResolver(
            self._names, self._schemas, at=self._at, by=current_user()
        )
        self._apply_annotations = apply_annotations
        self._problems: list[LineageProblem] = []
        self._failed: list[str] = []
        self._coverage = ColumnCoverage()
        self._reports: dict[str, FileReport] = {}
        self._reporters: set[str] = set()
        self._defined_in: dict[str, dict[str, None]] = {}
        self._reads = 0
        # Reporters of DAGs that a server no longer lists: those to remove, and those to keep since
        # the server may only hide them.
        self._missing_dags: list[str] = []
        self._held_dags: list[str] = []

    def ingest(
        self, paths: Sequence[str | Path], servers: Sequence[AirflowSettings] = ()
    ) -> LineageIngestReport:
        """Read all files in the paths, and the DAGs of servers, and record their lineage."""
        started = monotonic()
        self._progress("Looking at files")
        inputs = identify_files(paths, names=self._files)
        self._problems += inputs.problems
        reporters = [*self._record(inputs, servers)]
        self._problems += self._duplicate_definitions()
        logs = self._ingest_logs(inputs)
        active = {each.reporter for each in reporters}
        missing, held_back = self._missing_reporters(inputs, active)
        missing += self._missing_dags
        held_back += self._held_dags
        total = sum((each.edges for each in reporters), EdgeCounts())
        without_lineage = (ResolvedLineage(reporter=name) for name in missing)
        total = sum((counts for _, counts, _ in self._write(without_lineage)), total)
        if self._store is not None and not self._dry_run:
            # SQL texts that were removed must not remain in the write-ahead log.
            self._store.checkpoint()
        not_found = self._resolver.not_found(self._store)
        columns, resolved = self._coverage.columns, self._coverage.resolved
        return LineageIngestReport(
            dry_run=self._dry_run,
            edges=total,
            coverage=CoverageReport(
                columns=columns,
                resolved=resolved,
                share=round(resolved / columns, 4) if columns else None,
                tables=self._resolver.tables_read,
                tables_found=self._resolver.tables_read - len(not_found),
            ),
            reporters=tuple(sorted(reporters, key=lambda each: each.reporter)),
            tables=self._resolver.tables,
            not_found=not_found,
            problems=tuple(dict.fromkeys(self._problems)),
            files=dict(
                Counter((*(str(each.kind) for each in inputs.files), *("airflow" for _ in servers)))
            ),
            jobs=sum(each.jobs for each in reporters),
            runs=sum(each.runs for each in reporters),
            described=sum(each.described for each in reporters),
            reads=self._reads,
            logs=logs,
            failed=tuple(self._failed),
            unrecognised=inputs.unknown,
            gone=tuple(missing),
            held=tuple(held_back),
            seconds=round(monotonic() - started, 3),
        )

    def _read_server(self, settings: AirflowSettings) -> Iterator[ReadResult]:
        """Read the DAGs of an Airflow server, and collect those that it no longer has."""
        # Imported late: most runs read files only.
        from lumos.lineage.airflow import AirflowReader, AirflowUnavailable, reporter_prefix

        reader = AirflowReader(settings, self._progress)
        try:
            for lineage in reader.read():
                yield FileReport(lineage=lineage)
        except AirflowUnavailable as problem:
            place = settings.base_url
            yield FailedFile(
                name=place, problems=(LineageProblem(place=place, reason=str(problem)),)
            )
            return
        finally:
            reader.close()
        self._problems += reader.problems
        prefix = reporter_prefix(settings)
        known_reporters = (
            () if self._store is None else self._store.lineage.active_reporters(prefix)
        )
        missing_reporters = [
            name for name in known_reporters if name.removeprefix(prefix) not in reader.listed
        ]
        # A user who lost permissions sees no DAGs.
        is_doubtful = not reader.listed and not self._accept_removals
        (self._held_dags if is_doubtful else self._missing_dags).extend(missing_reporters)

    def _record(
        self, inputs: InputFiles, servers: Sequence[AirflowSettings]
    ) -> Iterator[ReporterReport]:
        reader = FileReader(
            self._names,
            self._schemas,
            load_stored_events=(lambda _: {})
            if self._store is None
            else self._store.lineage.memories,
            dialect=self._dialect,
            name_from=self._name_from,
            progress=self._progress,
        )
        from_servers = chain.from_iterable(map(self._read_server, servers))
        resolved = self._resolve(chain(reader.read(inputs), from_servers))
        has_reads = False
        for each, counts, described in self._write(resolved):
            report = self._reports.pop(each.reporter)
            has_reads |= bool(report.lineage.reads)
            if each.reads and self._usage is not None and not self._dry_run:
                recorded = self._usage.record(each.reporter, each.reads)
                self._reads += recorded.counted
                if recorded.in_future:
                    reason = (
                        f"{recorded.in_future:,} reads have a time in the future and were not "
                        "counted."
                    )
                    self._problems.append(LineageProblem(place=each.reporter, reason=reason))
            yield ReporterReport(
                reporter=each.reporter,
                edges=counts,
                coverage=report.lineage.coverage,
                jobs=len(each.jobs),
                runs=sum(len(job.runs) for job in each.jobs),
                described=described,
                problems=len(report.lineage.problems) + len(each.problems),
                model=report.model,
            )
        if has_reads and self._usage is not None and not self._dry_run:
            self._usage.assign_unresolved_reads()

    def _write(
        self, resolved: Iterable[ResolvedLineage]
    ) -> Iterator[tuple[ResolvedLineage, EdgeCounts, int]]:
        """Write lineage in batches; yields each with its edge counts and annotated datasets."""
        if self._store is None:
            # In a dry run without a store, all edges are new.
            for each in resolved:
                edges = {(edge.upstream, edge.downstream, edge.job) for edge in each.edges}
                yield each, EdgeCounts(added=len(edges)), 0
            return
        remaining = iter(resolved)
        while batch := list(islice(remaining, _BATCH_SIZE)):
            all_counts = self._write_batch(self._store, batch)
            annotating = self._store.annotations.annotating({each.reporter for each in batch})
            for each, counts in zip(batch, all_counts, strict=True):
                yield each, counts, self._annotate(each, annotating)

    def _write_batch(self, store: Store, resolved: Sequence[ResolvedLineage]) -> list[EdgeCounts]:
        counts: list[EdgeCounts] = []
        try:
            with store.transaction() as transaction:
                reports = [
                    ReporterContents(
                        reporter=each.reporter,
                        edges=each.edges,
                        items=(*each.jobs, *each.consumers),
                        scripts=each.scripts,
                        owners=each.owners,
                        unparsed=each.unparsed,
                    )
                    for each in resolved
                ]
                all_changes = transaction.lineage.report_all(reports, at=self._at)
                for each, changes in zip(resolved, all_changes, strict=True):
                    if each.stored_events is not None:
                        transaction.lineage.save_memory(each.reporter, each.stored_events)
                    counts.append(
                        EdgeCounts(
                            added=changes.added,
                            changed=changes.changed,
                            removed=changes.removed,
                            unchanged=changes.unchanged,
                        )
                    )
                    if changes.touched:
                        details = (
                            f"{changes.added} new, {changes.changed} changed, "
                            f"{changes.removed} removed"
                        )
                        transaction.audit("lineage", each.reporter, at=self._at, details=details)
                if self._dry_run:
                    raise _DryRun
        except _DryRun:
            pass
        return counts

    def _annotate(self, resolved: ResolvedLineage, annotating: Collection[str]) -> int:
        """Apply annotations; `annotating` are the reporters with earlier ones."""
        # A shortcut: most files neither have annotations of known datasets nor had any.
        annotations = [each for each in resolved.annotations if each[0] in self._names]
        if not annotations and resolved.reporter not in annotating:
            return 0
        return self._apply_annotations(resolved.reporter, annotations, resolved.analysed_targets)

    def _resolve(self, results: Iterable[ReadResult]) -> Iterator[ResolvedLineage]:
        for each in results:
            if not isinstance(each, FileReport):
                self._problems += each.problems
                self._failed += [each.name] if isinstance(each, FailedFile) else []
                continue
            reporter = each.lineage.reporter
            if reporter in self._reporters:
                reason = "Several files have this reporter; the first file is used."
                self._problems.append(LineageProblem(place=reporter, reason=reason))
                continue
            self._reporters.add(reporter)
            self._reports[reporter] = each
            resolved = self._add_earlier_edges(
                self._resolver.resolve(each.lineage, dialect=each.dialect), each.file
            )
            for table in each.defines:
                urn = self._resolver.find(table, dialect=each.dialect).urn
                self._defined_in.setdefault(urn, {})[each.file] = None
            self._coverage += each.lineage.coverage
            self._problems += (*each.lineage.problems, *resolved.problems)
            yield resolved

    def _duplicate_definitions(self) -> Iterator[LineageProblem]:
        """A remark for each dataset that several files create."""
        for urn, files in sorted(self._defined_in.items()):
            if len(files) > 1:
                names = sorted(files)
                unlisted = len(names) - _MAX_LISTED_FILES
                more = f" and {unlisted:,} more" if unlisted > 0 else ""
                reason = (
                    f"{urn} is defined in {len(names):,} files: "
                    f"{', '.join(names[:_MAX_LISTED_FILES])}{more}. "
                    "The lineage of all of them is kept."
                )
                yield LineageProblem(place=names[0], reason=reason, severity="remark")

    def _add_earlier_edges(self, resolved: ResolvedLineage, file: str) -> ResolvedLineage:
        """Add earlier edges of targets whose statements could not be parsed this time."""
        analysed_urns = resolved.analysed_targets
        if analysed_urns is None or self._store is None:
            return resolved
        earlier_owners = self._store.lineage.owners_by(resolved.reporter)
        owners = {urn: each for urn, each in earlier_owners.items() if urn not in analysed_urns}
        resolved = msgspec.structs.replace(resolved, owners={**owners, **resolved.owners})
        stored_edges = self._store.lineage.edges_by(resolved.reporter)
        earlier_edges = [edge for edge in stored_edges if edge.downstream not in analysed_urns]
        if not earlier_edges:
            return resolved
        reason = (
            "Some statements could not be parsed. The earlier lineage of these datasets is kept: "
            f"{', '.join(sorted({edge.downstream for edge in earlier_edges}))}."
        )
        remark = LineageProblem(place=file, reason=reason, severity="remark")
        return msgspec.structs.replace(
            resolved,
            edges=(*resolved.edges, *earlier_edges),
            scripts=(*resolved.scripts, *self._earlier_scripts(resolved.reporter, earlier_edges)),
            problems=(*resolved.problems, remark),
        )

    def _earlier_scripts(self, reporter: str, edges: Iterable[Edge]) -> Iterator[Script]:
        """The stored scripts of a reporter's earlier edges, each assigned to one dataset."""
        assert self._store is not None
        stored = self._store.lineage.scripts({edge.downstream for edge in edges})
        for urn, texts in stored.items():
            scripts = [script for name, script in texts if name == reporter]
            # A script that is assigned to the dataset is from before the first failure.
            assigned = [script for script in scripts if script.dataset == urn]
            for script in assigned or scripts:
                # Earlier versions of Lumos stored complete texts, with secrets.
                sql = analyse(script.sql, dialect=script.dialect).storable_text
                yield msgspec.structs.replace(script, dataset=urn, sql=sql)

    def _ingest_logs(self, inputs: InputFiles) -> "UsageIngestReport | None":
        """Ingest query logs; a dry run skips them, since their reads are recorded while reading."""
        logs = [each.log for each in inputs.of_kind(InputKind.QUERY_LOG) if each.log is not None]
        if not logs:
            return None
        if self._dry_run or self._usage is None:
            file = inputs.of_kind(InputKind.QUERY_LOG)[0].name
            reason = (
                "Query logs are not read in a dry run."
                if self._dry_run
                else "Query logs are not read: features.usage is false in the configuration."
            )
            self._problems.append(LineageProblem(place=file, reason=reason, severity="remark"))
            return None
        return self._usage.ingest_logs(logs, dialect=self._dialect, progress=self._progress)

    def _missing_reporters(
        self, inputs: InputFiles, active: set[str]
    ) -> tuple[list[str], list[str]]:
        """Reporters to remove since their files are missing, and missing reporters to keep.

        If all files of a folder are missing, a disk may be unavailable, so that nothing is removed.
        """
        if self._store is None:
            return [], []
        annotations = self._store.annotations
        unparsed = {reporter for reporter, _ in self._store.lineage.unparsed()}
        reporters = [
            each.name
            for each in self._store.lineage.reporters()
            if each.name in active | unparsed or each.edges or annotations.urns(each.name)
        ]
        unread = {f"{kind}{name}" for kind in _FILE_REPORTERS for name in self._failed}
        missing: dict[str, None] = {}
        held_back: dict[str, None] = {}
        for folder in inputs.folders:
            in_folder = [
                name
                for name in reporters
                if any(
                    name.startswith(kind) and is_inside(name.removeprefix(kind), folder.name)
                    for kind in _FILE_REPORTERS
                )
            ]
            absent = [name for name in in_folder if name not in active | unread]
            is_doubtful = not folder.complete or (
                len(absent) == len(in_folder) and not self._accept_removals
            )
            (held_back if is_doubtful else missing).update(dict.fromkeys(absent))
        return [name for name in missing if name not in held_back], list(held_back)
