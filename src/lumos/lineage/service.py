"""The lineage feature of the SDK: ingest files, add and remove edges, view lineage."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lumos.config import Settings
from lumos.errors import MisuseError, question
from lumos.lineage.declared import parse_reference
from lumos.lineage.reported_lineage import ReportedAnnotations, ResolutionMethod
from lumos.lineage.reports import EdgeChange, EdgeReport, LineageIngestReport, TableReport
from lumos.model.json_codec import to_json
from lumos.model.lineage import ColumnMapping, Edge, LineageType
from lumos.model.urn import Urn
from lumos.names import has_lineage
from lumos.progress import Progress, no_progress
from lumos.store import Store
from lumos.store.errors import AmbiguousName, UnknownDataset
from lumos.store.transaction import current_user

if TYPE_CHECKING:
    from lumos.annotations.writer import AnnotationWriter
    from lumos.lineage.resolver import SchemaCache
    from lumos.lineage.sql_report import SqlLineageReport
    from lumos.lineage.view import LineageViewer
    from lumos.usage.service import UsageService

# The reporter of edges that users add with `lumos lineage add`.
USER_REPORTER = "user"


class DanglingEdge(MisuseError):
    """An edge from or to a dataset that is otherwise unknown; its name is probably misspelt."""

    def __init__(self, unknown: UnknownDataset) -> None:
        self.name = unknown.name
        nearest = f" {question(unknown.nearest)}" if unknown.nearest else ""
        super().__init__(
            f"No dataset {self.name} in the store.{nearest} Scan it with lumos ingest PATH, or "
            "record the edge anyway with --allow-dangling"
        )


class LineageService:
    """The lineage of one store; `store_folder` is the folder of its file, if it is a file."""

    def __init__(
        self,
        settings: Settings,
        *,
        open_store: Callable[[], Store],
        create_store: Callable[[], Store],
        annotations: Callable[[], "AnnotationWriter"],
        usage: Callable[[], "UsageService | None"],
        publishing: Callable[[], AbstractContextManager[None]],
        is_empty: Callable[[], bool],
        store_folder: Path | None,
    ) -> None:
        self._settings = settings
        self._open_store = open_store
        self._create_store = create_store
        self._annotations = annotations
        self._usage = usage
        self._publishing = publishing
        self._is_empty = is_empty
        self._store_folder = store_folder

    @cached_property
    def view(self) -> "LineageViewer":
        """The lineage around a dataset or column, and paths between two columns."""
        from lumos.lineage.view import LineageViewer

        return LineageViewer(self._open_store)

    @staticmethod
    def sql(
        file: str | Path, *, dialect: str | None = None, schema: str | Path | None = None
    ) -> "SqlLineageReport":
        """The column lineage of one SQL file; records nothing and needs no store.

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
        """Read SQL, dbt artefacts, OpenLineage events, exports of BI tools and the like.

        A path may be the URL of an Airflow server in the configuration. Without paths, all of
        these servers are read.
        A reporter (a file, project or job) replaces its own earlier edges. The edges of other
        reporters stay.
        `name_from` names queries after their files' paths, as `sql_name_from` in the configuration
        does. `accept_removals` removes the lineage of files even if all files of a folder are
        missing.
        """
        from lumos.lineage.ingest import LineageIngest
        from lumos.storage.file_names import FileNames

        servers = [
            each
            for each in self._settings.airflow
            if not paths or each.base_url in {str(path).rstrip("/") for path in paths}
        ]
        urls = {each.base_url for each in servers}
        files = [path for path in paths if str(path).rstrip("/") not in urls]
        if not servers and not files:
            raise MisuseError("Give the files or folders to read: lumos lineage ingest PATH...")
        store = None if dry_run and self._is_empty() else self._create_store()
        ingest = LineageIngest(
            self._settings,
            store,
            files=FileNames(self._store_folder),
            dialect=dialect,
            name_from=name_from,
            dry_run=dry_run,
            accept_removals=accept_removals,
            apply_annotations=partial(self._apply_annotations, dry_run=dry_run),
            usage=self._usage(),
            progress=progress,
        )
        if dry_run:
            return ingest.ingest(files, servers)
        with self._publishing():
            return ingest.ingest(files, servers)

    def record_events(self, *events: Mapping[str, Any]) -> LineageIngestReport:
        """Record the lineage of OpenLineage events, as an OpenLineage client sends them."""
        from lumos.lineage.openlineage import is_event

        if unknown := sum(not is_event(event) for event in events):
            raise MisuseError(
                f"{unknown} of {len(events)} values are not OpenLineage events: they have no "
                "eventTime with a run, job or dataset. See https://openlineage.io/spec"
            )
        with TemporaryDirectory(prefix="lumos-events-") as folder:
            file = Path(folder) / "events.jsonl"
            file.write_bytes(b"".join(to_json(event) + b"\n" for event in events))
            return self.ingest(file)

    def add(
        self,
        upstream: str,
        downstream: str,
        *,
        type: LineageType = "TRANSFORMED",
        columns: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        job: str | None = None,
        confidence: float = 1.0,
        allow_dangling: bool = False,
    ) -> EdgeReport:
        """Record an edge that a user declares.

        `columns` are pairs of an upstream and a downstream column. Both datasets are URNs, paths,
        tables or unambiguous names. `allow_dangling` accepts datasets that are neither in the
        store nor in other lineage.
        """
        if not 0 <= confidence <= 1:
            raise MisuseError(f"The confidence {confidence} must be a number from 0 to 1.")
        from lumos.lineage.resolver import SchemaCache

        store = self._create_store()
        at = datetime.now(UTC)
        schemas = SchemaCache(store)
        ends = self._resolve_datasets(store, schemas, upstream, downstream, at=at)
        for end in ends:
            if not (allow_dangling or end.known or has_lineage(store, end.urn)):
                raise DanglingEdge(store.unknown(end.name))
        pairs = columns.items() if isinstance(columns, Mapping) else columns
        edge = Edge(
            upstream=ends[0].urn,
            downstream=ends[1].urn,
            origin=USER_REPORTER,
            at=at,
            type=type,
            confidence=confidence,
            created_by=current_user(),
            job=None if job is None else str(Urn.parse(job)),
            columns=tuple(
                ColumnMapping(
                    upstream=schemas.path_in_schema_case(ends[0].urn, upstream_column),
                    downstream=schemas.in_schema_case(ends[1].urn, downstream_column),
                )
                for upstream_column, downstream_column in pairs
            ),
        )
        before = _user_edge(store, edge.upstream, edge.downstream)
        with self._publishing(), store.transaction() as transaction:
            changes = transaction.lineage.add(USER_REPORTER, [edge], at=at)
            if changes.touched:
                target = f"{edge.upstream} -> {edge.downstream}"
                transaction.audit("lineage add", target, at=at, before=before, after=edge)
        change: EdgeChange = (
            "added" if changes.added else "changed" if changes.changed else "unchanged"
        )
        return EdgeReport(upstream=ends[0], downstream=ends[1], change=change)

    def remove(self, upstream: str, downstream: str) -> EdgeReport:
        """Retract an edge that a user added; the same edge from other reporters stays."""
        from lumos.lineage.resolver import SchemaCache

        store = self._open_store()
        at = datetime.now(UTC)
        ends = self._resolve_datasets(store, SchemaCache(store), upstream, downstream, at=at)
        link = (ends[0].urn, ends[1].urn)
        before = _user_edge(store, *link)
        if before is not None:
            with self._publishing(), store.transaction() as transaction:
                transaction.lineage.retract(USER_REPORTER, [link])
                transaction.audit("lineage remove", " -> ".join(link), at=at, before=before)
        other_reporters = {
            edge.origin for each in store.lineage.between([link]) for edge in each.origins
        }
        return EdgeReport(
            upstream=ends[0],
            downstream=ends[1],
            change="removed" if before is not None else "not there",
            still_told_by=tuple(sorted(other_reporters)),
        )

    def _resolve_datasets(
        self, store: Store, schemas: "SchemaCache", upstream: str, downstream: str, *, at: datetime
    ) -> tuple[TableReport, TableReport]:
        from lumos.lineage.name_index import load_name_index
        from lumos.lineage.resolver import ReferenceResolver

        resolver = ReferenceResolver(
            load_name_index(self._settings, store), schemas, at=at, by=current_user()
        )
        ends = []
        for text in (upstream, downstream):
            end = resolver.find(parse_reference(text), dialect=None)
            if not end.known:
                # A table that is only known from lineage may be named by the end of its path.
                urns = store.lineage.find_by_name(text)
                if len(urns) > 1:
                    raise AmbiguousName(text, urns)
                if urns:
                    end = resolver.find(parse_reference(urns[0]), dialect=None)
            ends.append(end)
        for end in ends:
            # Ingested files only get a remark, but here the user can correct the name at once.
            if end.way is ResolutionMethod.AMBIGUOUS:
                raise AmbiguousName(end.name, end.candidates)
        return ends[0], ends[1]

    def _apply_annotations(
        self,
        reporter: str,
        descriptions: Sequence[tuple[str, ReportedAnnotations]],
        only: Collection[str] | None,
        *,
        dry_run: bool,
    ) -> int:
        from lumos.annotations.reporters import apply_descriptions

        return apply_descriptions(
            self._annotations(), reporter, descriptions, only=only, dry_run=dry_run
        ).changed


def _user_edge(store: Store, upstream: str, downstream: str) -> Edge | None:
    """The edge between two datasets that a user added."""
    for each in store.lineage.between([(upstream, downstream)]):
        for edge in each.origins:
            if edge.origin == USER_REPORTER:
                return edge
    return None
