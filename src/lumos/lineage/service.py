"""Lineage as the SDK offers it: taking files in, and edges that people add and remove."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.config import Settings
from lumos.errors import MisuseError
from lumos.lineage.declared import reference
from lumos.lineage.reported import Described
from lumos.lineage.reports import EdgeChange, EdgeReport, LineageIngestReport, TableReport
from lumos.lineage.resolution import Way
from lumos.model.lineage import ColumnMapping, Edge, LineageType
from lumos.model.urn import Urn
from lumos.progress import Progress, no_progress
from lumos.store import Store
from lumos.store.actor import audit, who
from lumos.store.errors import AmbiguousName

if TYPE_CHECKING:
    from lumos.annotations.writer import AnnotationWriter
    from lumos.lineage.schemas import Schemas
    from lumos.lineage.sql_report import SqlLineageReport
    from lumos.lineage.view import Viewer
    from lumos.usage.service import UsageService

# Who says what people add by hand.
USER = "user"


class LineageService:
    """The lineage of one store; `beside` is the folder of its file, where it is one."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Callable[[], Store],
        make_store: Callable[[], Store],
        scribe: Callable[[], "AnnotationWriter"],
        usage: Callable[[], "UsageService"],
        telling: Callable[[], AbstractContextManager[None]],
        is_empty: Callable[[], bool],
        beside: Path | None,
    ) -> None:
        self._settings = settings
        self._open = store
        self._make = make_store
        self._scribe = scribe
        self._usage = usage
        self._telling = telling
        self._is_empty = is_empty
        self._beside = beside

    @cached_property
    def view(self) -> "Viewer":
        """Looks at the lineage that is known: around a dataset or column, and ways between two."""
        from lumos.lineage.view import Viewer

        return Viewer(self._open)

    @staticmethod
    def sql(
        file: str | Path, *, dialect: str | None = None, schema: str | Path | None = None
    ) -> "SqlLineageReport":
        """Which columns a file of SQL makes from which; records nothing and needs no store.

        `schema` is a YAML file with the columns of tables.
        """
        from lumos.lineage.sql_report import sql_file_lineage

        return sql_file_lineage(
            Path(file), dialect=dialect, schema=None if schema is None else Path(schema)
        )

    def ingest(
        self,
        *paths: str | Path,
        dialect: str | None = None,
        name_from: str | None = None,
        dry_run: bool = False,
        accept_removals: bool = False,
        progress: Progress = no_progress,
    ) -> LineageIngestReport:
        """Reads SQL, dbt artefacts, OpenLineage events, declared edges and query logs.

        What a reporter (a file, a project, a job) said before and does not repeat goes; what others
        say stays. `name_from` names queries after their files' paths, as `sql_name_from` in the
        configuration does. `accept_removals` believes that all files of a folder are gone.
        """
        from lumos.lineage.ingest import LineageIngest
        from lumos.storage.file_names import FileNames

        if not paths:
            raise MisuseError("Name what to read: lumos lineage ingest PATH...")
        store = None if dry_run and self._is_empty() else self._make()
        ingest = LineageIngest(
            self._settings,
            store,
            files=FileNames(self._beside),
            dialect=dialect,
            name_from=name_from,
            dry_run=dry_run,
            accept_removals=accept_removals,
            describe=lambda reporter, told, only: self._describe(
                reporter, told, only, dry_run=dry_run
            ),
            usage=self._usage(),
            progress=progress,
        )
        if dry_run:
            return ingest.ingest(paths)
        with self._telling():
            return ingest.ingest(paths)

    def add(
        self,
        upstream: str,
        downstream: str,
        *,
        type: LineageType = "TRANSFORMED",
        columns: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        job: str | None = None,
        confidence: float = 1.0,
    ) -> EdgeReport:
        """Records that data flows from one dataset to another, as a person says.

        `columns` are pairs of an upstream column and the downstream one that is made from it. Both
        datasets are URNs, paths, tables or names that only one dataset has.
        """
        if not 0 <= confidence <= 1:
            raise MisuseError(f"The confidence {confidence} must be a number from 0 to 1.")
        from lumos.lineage.schemas import Schemas

        store = self._make()
        at = datetime.now(UTC)
        schemas = Schemas(store)
        ends = self._ends(store, schemas, upstream, downstream, at=at)
        pairs = columns.items() if isinstance(columns, Mapping) else columns
        edge = Edge(
            upstream=ends[0].urn,
            downstream=ends[1].urn,
            origin=USER,
            at=at,
            type=type,
            confidence=confidence,
            created_by=who(),
            job=None if job is None else str(Urn.parse(job)),
            columns=tuple(
                ColumnMapping(
                    upstream=schemas.spelled(ends[0].urn, before),
                    downstream=schemas.spelled(ends[1].urn, after),
                )
                for before, after in pairs
            ),
        )
        with self._telling(), store.transaction() as transaction:
            done = transaction.lineage.add(USER, [edge], at=at)
            if done.touched:
                target = f"{edge.upstream} -> {edge.downstream}"
                audit(transaction, "lineage add", target, at=at)
        change: EdgeChange = "added" if done.added else "changed" if done.changed else "unchanged"
        return EdgeReport(upstream=ends[0], downstream=ends[1], change=change)

    def remove(self, upstream: str, downstream: str) -> EdgeReport:
        """Takes back what a person said of an edge; what files and others say of it stays."""
        from lumos.lineage.schemas import Schemas

        store = self._open()
        at = datetime.now(UTC)
        ends = self._ends(store, Schemas(store), upstream, downstream, at=at)
        link = (ends[0].urn, ends[1].urn)
        is_there = any(
            edge.origin == USER for each in store.lineage.between([link]) for edge in each.origins
        )
        if is_there:
            with self._telling(), store.transaction() as transaction:
                transaction.lineage.withdraw(USER, [link])
                audit(transaction, "lineage remove", " -> ".join(link), at=at)
        others = {edge.origin for each in store.lineage.between([link]) for edge in each.origins}
        return EdgeReport(
            upstream=ends[0],
            downstream=ends[1],
            change="removed" if is_there else "not there",
            still_told_by=tuple(sorted(others)),
        )

    def _ends(
        self, store: Store, schemas: "Schemas", upstream: str, downstream: str, *, at: datetime
    ) -> tuple[TableReport, TableReport]:
        from lumos.lineage.name_index import names_of
        from lumos.lineage.urns import Placing

        placing = Placing(names_of(self._settings, store), schemas, at=at, by=who())
        ends = [placing.find(reference(text), dialect=None) for text in (upstream, downstream)]
        for end in ends:
            # A person can be asked, so that nothing need be assumed.
            if end.way is Way.AMBIGUOUS:
                raise AmbiguousName(end.name, end.candidates)
        return ends[0], ends[1]

    def _describe(
        self,
        reporter: str,
        told: Sequence[tuple[str, Described]],
        only: Collection[str] | None,
        *,
        dry_run: bool,
    ) -> int:
        from lumos.annotations.reporters import apply_described

        scribe = self._scribe()
        return apply_described(scribe, reporter, told, only=only, dry_run=dry_run).changed
