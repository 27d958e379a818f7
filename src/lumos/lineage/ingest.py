"""`lumos lineage ingest`: files of any kind that tell of lineage, into the store."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from lumos.config import Settings
from lumos.config.sql_names import NameTemplate
from lumos.lineage.name_index import names_of
from lumos.lineage.readers import Failure, FileReader, Heard, Said
from lumos.lineage.recognition import Folder, Kind, Recognised, recognise
from lumos.lineage.recorder import Describe, Recorder
from lumos.lineage.reported import Coverage, Problem
from lumos.lineage.reports import CoverageReport, LineageIngestReport, ReporterReport, Tally
from lumos.lineage.schemas import Schemas
from lumos.lineage.sql import analyse
from lumos.lineage.sql.names import dialect_named
from lumos.lineage.urns import Placed, Placing
from lumos.model.lineage import Edge, Script
from lumos.progress import Progress
from lumos.storage.file_names import FileNames, is_inside
from lumos.store import Store
from lumos.store.actor import who

if TYPE_CHECKING:
    from lumos.usage.reports import UsageIngestReport
    from lumos.usage.service import UsageService

# Reporters that are files: where a folder was looked through, those no longer in it are gone.
_FILES = ("sql:", "declared:")
# How many files a remark on a dataset with several definitions names.
_MOST_FILES = 5


class LineageIngest:
    """One ingest: what is given, what is said, what is written."""

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
        describe: Describe,
        usage: "UsageService",
        progress: Progress,
    ) -> None:
        dialect_named(dialect)
        self._store = store
        self._files = files
        self._dialect = dialect
        template = name_from if name_from is not None else settings.sql_name_from
        self._name_from = None if template is None else NameTemplate(template)
        self._dry_run = dry_run
        self._accept_removals = accept_removals
        self._usage = usage
        self._announce = progress
        self._at = datetime.now(UTC)
        self._names = names_of(settings, store)
        self._schemas = Schemas(store)
        self._placing = Placing(self._names, self._schemas, at=self._at, by=who())
        self._recorder = Recorder(
            store, self._names, at=self._at, dry_run=dry_run, describe=describe
        )
        self._problems: list[Problem] = []
        self._failed: list[str] = []
        self._coverage = Coverage()
        self._saids: dict[str, Said] = {}
        self._defined_in: dict[str, dict[str, None]] = {}
        self._reads = 0

    def ingest(self, paths: Sequence[str | Path]) -> LineageIngestReport:
        """Reads all that lies in the paths and records it."""
        started = monotonic()
        self._announce("Looking at files")
        recognised = recognise(paths, names=self._files)
        self._problems += recognised.problems
        reporters = [*self._recorded(recognised)]
        self._problems += self._defined_twice()
        logs = self._logs(recognised)
        gone, held = self._gone(recognised, {each.reporter for each in reporters})
        total = sum((each.edges for each in reporters), Tally())
        total += self._recorder.withdraw(gone)
        if self._store is not None and not self._dry_run:
            # Texts of SQL that are no longer kept must not be found in it.
            self._store.merge_log()
        not_found = self._placing.not_found(self._store)
        columns, resolved = self._coverage.columns, self._coverage.resolved
        return LineageIngestReport(
            dry_run=self._dry_run,
            edges=total,
            coverage=CoverageReport(
                columns=columns,
                resolved=resolved,
                share=round(resolved / columns, 4) if columns else None,
                tables=self._placing.tables_read,
                tables_found=self._placing.tables_read - len(not_found),
            ),
            reporters=tuple(sorted(reporters, key=lambda each: each.reporter)),
            tables=self._placing.tables,
            not_found=not_found,
            problems=tuple(dict.fromkeys(self._problems)),
            files=dict(Counter(str(each.kind) for each in recognised.given)),
            jobs=sum(each.jobs for each in reporters),
            runs=sum(each.runs for each in reporters),
            described=sum(each.described for each in reporters),
            reads=self._reads,
            logs=logs,
            failed=tuple(self._failed),
            unrecognised=recognised.unknown,
            gone=tuple(gone),
            held=tuple(held),
            seconds=round(monotonic() - started, 3),
        )

    def _recorded(self, recognised: Recognised) -> Iterator[ReporterReport]:
        reader = FileReader(
            self._names,
            self._schemas,
            recall=self._recalled,
            dialect=self._dialect,
            name_from=self._name_from,
            progress=self._announce,
        )
        placed = self._placed(reader.read(recognised))
        for each, tally, described in self._recorder.record(placed):
            said = self._saids[each.reporter]
            if each.reads and not self._dry_run:
                recorded = self._usage.record(each.reporter, each.reads)
                self._reads += recorded.counted
                if recorded.ahead:
                    reason = f"{recorded.ahead:,} reads lie in the future and do not count."
                    self._problems.append(Problem(place=each.reporter, reason=reason))
            yield ReporterReport(
                reporter=each.reporter,
                edges=tally,
                coverage=said.reported.coverage,
                jobs=len(each.jobs),
                runs=sum(len(job.runs) for job in each.jobs),
                described=described,
                problems=len(said.reported.problems) + len(each.problems),
                model=said.model,
            )
        if any(said.reported.reads for said in self._saids.values()) and not self._dry_run:
            self._usage.find_homes()

    def _recalled(self, reporters: Collection[str]) -> Mapping[str, bytes]:
        return {} if self._store is None else self._store.lineage.remembered(reporters)

    def _placed(self, heard: Iterable[Heard]) -> Iterator[Placed]:
        for each in heard:
            if not isinstance(each, Said):
                self._problems += each.problems
                self._failed += [each.name] if isinstance(each, Failure) else []
                continue
            reporter = each.reported.reporter
            if reporter in self._saids:
                reason = "This is told in several of the files; the first one counts."
                self._problems.append(Problem(place=reporter, reason=reason))
                continue
            self._saids[reporter] = each
            placed = self._with_earlier(
                self._placing.place(each.reported, dialect=each.dialect), each.place
            )
            for table in each.defines:
                urn = self._placing.find(table, dialect=each.dialect).urn
                self._defined_in.setdefault(urn, {})[each.place] = None
            self._coverage += each.reported.coverage
            self._problems += (*each.reported.problems, *placed.problems)
            yield placed

    def _defined_twice(self) -> Iterator[Problem]:
        """Datasets that several files create, with the names of the files."""
        for urn, files in sorted(self._defined_in.items()):
            if len(files) > 1:
                first, *_ = named = sorted(files)
                rest = f" and {len(named) - _MOST_FILES:,} more" if len(named) > _MOST_FILES else ""
                reason = (
                    f"{urn} is defined in {len(named):,} files: {', '.join(named[:_MOST_FILES])}"
                    f"{rest}. The lineage of all of them is kept."
                )
                yield Problem(place=first, reason=reason, severity="remark")

    def _with_earlier(self, placed: Placed, place: str) -> Placed:
        """With what the reporter said before of what it cannot be understood on now."""
        written = placed.written
        if written is None or self._store is None:
            return placed
        named = self._store.lineage.owners_told_by(placed.reporter)
        owners = {urn: each for urn, each in named.items() if urn not in written}
        placed = msgspec.structs.replace(placed, owners={**owners, **placed.owners})
        told = self._store.lineage.told_by(placed.reporter)
        earlier = [edge for edge in told if edge.downstream not in written]
        if not earlier:
            return placed
        reason = (
            "Not all is understood, so that what was told before stays on "
            f"{', '.join(sorted({edge.downstream for edge in earlier}))}."
        )
        remark = Problem(place=place, reason=reason, severity="remark")
        return msgspec.structs.replace(
            placed,
            edges=(*placed.edges, *earlier),
            scripts=(*placed.scripts, *self._earlier_scripts(placed.reporter, earlier)),
            problems=(*placed.problems, remark),
        )

    def _earlier_scripts(self, reporter: str, edges: Iterable[Edge]) -> Iterator[Script]:
        """The texts that a reporter's earlier edges were taken from, each for its dataset alone."""
        assert self._store is not None
        kept = self._store.lineage.scripts({edge.downstream for edge in edges})
        for urn, texts in kept.items():
            own = [script for name, script in texts if name == reporter]
            # One that stayed before is older than the text that was not understood either.
            stayed = [script for script in own if script.dataset == urn]
            for script in stayed or own:
                # Earlier versions of Lumos kept texts as a whole.
                safe = analyse(script.sql, dialect=script.dialect).kept
                yield msgspec.structs.replace(script, dataset=urn, sql=safe)

    def _logs(self, recognised: Recognised) -> "UsageIngestReport | None":
        """What query logs say; they are counted, so that a dry run leaves them alone."""
        logs = [each.log for each in recognised.of(Kind.QUERY_LOG) if each.log is not None]
        if not logs:
            return None
        if self._dry_run:
            place = recognised.of(Kind.QUERY_LOG)[0].name
            reason = "Query logs are not read in a dry run."
            self._problems.append(Problem(place=place, reason=reason, severity="remark"))
            return None
        return self._usage.ingest_logs(logs, dialect=self._dialect, progress=self._announce)

    def _gone(self, recognised: Recognised, speaking: set[str]) -> tuple[list[str], list[str]]:
        """Reporters that were files of the folders and are not there any more.

        Where nothing is left of a folder, a disk may be missing rather than all files.
        """
        if self._store is None:
            return [], []
        remarks = self._store.remarks
        unparsed = {reporter for reporter, _ in self._store.lineage.unparsed()}
        known = [
            each.name
            for each in self._store.lineage.reporters()
            if each.name in speaking | unparsed or each.edges or remarks.urns(each.name)
        ]
        unread = {f"{kind}{name}" for kind in _FILES for name in self._failed}
        gone: dict[str, None] = {}
        held: dict[str, None] = {}
        for folder in recognised.folders:
            own = [name for name in known if _lies_in(name, folder)]
            absent = [name for name in own if name not in speaking | unread]
            is_doubtful = not folder.complete or (
                len(absent) == len(own) and not self._accept_removals
            )
            (held if is_doubtful else gone).update(dict.fromkeys(absent))
        return [name for name in gone if name not in held], list(held)


def _lies_in(reporter: str, folder: Folder) -> bool:
    return any(
        reporter.startswith(kind) and is_inside(reporter.removeprefix(kind), folder.name)
        for kind in _FILES
    )
