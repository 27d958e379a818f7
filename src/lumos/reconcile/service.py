"""`lumos reconcile`: compares the last scan of a metastore with the last scans of storage."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from lumos.config import Settings
from lumos.discovery.grouping.patterns import NULL_PARTITION
from lumos.discovery.lake.manifest import ManifestStore
from lumos.discovery.registrations import RegistrationIndex, RegistrationStore
from lumos.discovery.scans import state_folder
from lumos.discovery.targets import is_below
from lumos.errors import MisuseError, UnknownName
from lumos.model.change import Finding, Verdict
from lumos.model.dataset import Location, Statistics
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.model.urn import Urn
from lumos.reconcile.contents import TableContents, TableLocation, parent_folders, read_contents
from lumos.reconcile.plan import repair_statements
from lumos.reconcile.reports import (
    ReconciledPartition,
    ReconcileFinding,
    ReconcileReport,
    StorageScan,
    UnscannedTables,
)
from lumos.reconcile.rules import LOG_FORMATS, is_same_format, is_stale, schema_findings
from lumos.rendering.text import format_number, format_size, plural
from lumos.schemas.compatibility import worst_verdict
from lumos.schemas.findings import change_rows
from lumos.schemas.wording import sentence_of
from lumos.sources.addresses import access_of, is_root
from lumos.sources.interface import RegisteredPartition, RegisteredTable
from lumos.storage.uris import canonical
from lumos.store import FinishedScan, KnownDataset, Store

METASTORES: Final = ("glue", "hive", "iceberg", "nessie")
# Tables are compared in groups with at most this many partitions, so that memory does not grow with
# the number of tables.
_GROUP_SIZE: Final = 100_000
_MAX_PARTITIONS: Final = 1_000
_MAX_CHANGES: Final = 3
_MAX_EXAMPLES: Final = 3


class _LakeDataset(NamedTuple):
    """A dataset of files or a lake table."""

    known: KnownDataset
    location: str
    statistics: Statistics | None


class _Table(NamedTuple):
    """A registered table with its canonical location, whether a scan covers it, and its record."""

    registered: RegisteredTable
    location: str
    is_scanned: bool
    known: KnownDataset

    @property
    def name(self) -> str:
        return ".".join(map(unquote, self.registered.path.split("/")))

    @property
    def keys(self) -> tuple[str, ...]:
        """The partition keys that have folders."""
        is_log = self.registered.format in LOG_FORMATS
        return () if is_log else self.registered.partition_keys


class Reconciliation:
    """Compares metastores with storage."""

    def __init__(
        self, settings: Settings, open_store: Callable[[], Store], state: Callable[[], str]
    ) -> None:
        self._settings = settings
        self._open_store = open_store
        self._state = state

    def compare(self, source: str | None = None, *, fix_plan: bool = False) -> ReconcileReport:
        """Compare the last scan of a metastore with the last scans of storage.

        `source` is the name or the type of a source; it may be omitted if there is only one
        metastore. With `fix_plan`, the report has the statements that would repair the
        differences; they are never executed.
        """
        store = self._open_store()
        scan = self._scan(store, source)
        return _Comparison(self._settings, store, scan, self._state()).report(fix_plan=fix_plan)

    def _scan(self, store: Store, source: str | None) -> FinishedScan:
        scans = {
            scan.source.partition(":")[0]: scan
            for scan in store.scans()
            if scan.source.partition("@")[0].partition(":")[0] in METASTORES
        }
        configured = {each.type for each in self._settings.sources}
        if source is None:
            if len(scans) == 1:
                return next(iter(scans.values()))
            if scans:
                raise MisuseError(
                    f"Several metastores were scanned: {', '.join(sorted(scans))}. Name one: "
                    f"lumos reconcile {min(scans)}"
                )
            add = "" if configured & {*METASTORES} else "Add one to 'sources' of lumos.yaml, then "
            raise MisuseError(
                f"No metastore ({', '.join(METASTORES)}) has been scanned with this store. "
                f"{add}{'run' if add else 'Run'}: lumos ingest"
            )
        names = {
            section.name: f"{section.type}@{section.instance}" if section.instance else section.type
            for section in self._settings.sources
            if section.type in METASTORES and section.name
        }
        identity = names.get(source, source)
        if identity in scans:
            return scans[identity]
        if identity in names.values() or identity in METASTORES:
            step = (
                "Run: lumos ingest"
                if identity in names.values() or identity in configured
                else "Add it to 'sources' of lumos.yaml, then run: lumos ingest"
            )
            raise MisuseError(f"The source '{source}' has not been scanned with this store. {step}")
        raise UnknownName("metastore", source, sorted({*scans, *names}), listed="Scanned")


class _Comparison:
    """One comparison; everything is read from the store and the state of scans."""

    def __init__(self, settings: Settings, store: Store, scan: FinishedScan, state: str) -> None:
        self._store = store
        self._scan = scan
        self._state_access = access_of(state, settings.sources)
        folder = state_folder(state, scan.source)
        self._registrations = RegistrationStore(folder, self._state_access)
        index = self._registrations.index(scan.manifest)
        if index is None:
            raise MisuseError(
                f"The state of the last scan of {scan.source} is missing. Run: lumos ingest"
            )
        self._index: RegistrationIndex = index
        self._lake_scans = [each for each in store.scans() if is_root(_root(each))]
        self._roots = [_root(each).rstrip("/") for each in self._lake_scans]
        self._hdfs_root = next((root for root in self._roots if root.startswith("hdfs://")), "")
        self._manifests = [
            ManifestStore(state_folder(state, each.source), self._state_access).read(each.manifest)
            for each in self._lake_scans
        ]
        self._partitions = 0
        # The datasets of single files and of files with one name pattern, by their folder.
        self._by_folder: dict[str, list[_LakeDataset]] = {}
        # Locations of partitions outside of the folder of their table.
        self._outside_locations: set[str] = set()

    def report(self, *, fix_plan: bool) -> ReconcileReport:
        tables = self._tables()
        datasets = self._lake_datasets()
        for dataset in datasets.values():
            folder = dataset.location.rpartition("/")[0]
            self._by_folder.setdefault(folder, []).append(dataset)
        findings = list(_location_findings(tables))
        for group in _group_tables(tables):
            findings += self._compare_group(group, datasets)
        findings += self._data_without_tables(tables, datasets)
        findings.sort(key=lambda each: (each.kind, each.table or "", each.location))
        plan = None
        if fix_plan:
            schemas = self._store.schemas.current(
                [each.dataset_urn for each in findings if each.dataset_urn]
            )
            keys = {table.name: table.registered.partition_keys for table in tables}
            plan = tuple(repair_statements(findings, keys, schemas))
        return ReconcileReport(
            source=self._scan.source.partition(":")[0],
            scanned_at=self._scan.finished_at,
            storage_scans=tuple(
                StorageScan(root=_root(each), finished_at=each.finished_at)
                for each in self._lake_scans
            ),
            tables=len(tables),
            compared=sum(table.is_scanned for table in tables),
            partitions=self._partitions,
            counts=dict(sorted(Counter(each.kind for each in findings).items())),
            findings=tuple(findings),
            not_scanned=tuple(_unscanned_tables(tables)),
            statements=plan,
        )

    def _tables(self) -> list[_Table]:
        """The registered tables that are live in the store, by path."""
        by_path = {
            Urn.parse(urn).path_text: known
            for urn, known in self._store.known(source=self._scan.source).items()
            if known.state == "live"
        }
        tables = []
        for registered in self._registrations.tables(self._index):
            parts = map(unquote, registered.path.split("/"))
            known = by_path.get(Urn.of("any", parts).path_text)
            if known is None or not registered.location:
                continue
            location = self._canonical(registered.location)
            tables.append(_Table(registered, location, self._is_scanned(location), known))
        return sorted(tables, key=lambda table: table.registered.path)

    def _canonical(self, location: str) -> str:
        return canonical(location, self._hdfs_root).rstrip("/")

    def _is_scanned(self, location: str) -> bool:
        return any(is_below(location, root) for root in self._roots)

    def _lake_datasets(self) -> dict[str, _LakeDataset]:
        """The live datasets of storage by location."""
        datasets: dict[str, _LakeDataset] = {}
        for scan in self._lake_scans:
            locations: dict[str, Location] = self._store.aspects("location", source=scan.source)
            statistics: dict[str, Statistics] = self._store.aspects(
                "statistics", source=scan.source
            )
            for urn, known in self._store.known(source=scan.source).items():
                if known.state == "live" and urn in locations:
                    location = self._canonical(locations[urn].uri)
                    datasets[location] = _LakeDataset(known, location, statistics.get(urn))
        return datasets

    def _dataset_of(
        self, table: _Table, datasets: Mapping[str, _LakeDataset]
    ) -> _LakeDataset | None:
        """The dataset at the location of a table, or the only dataset in this folder."""
        if table.location in datasets:
            return datasets[table.location]
        datasets_in_folder = self._by_folder.get(table.location, ())
        return datasets_in_folder[0] if len(datasets_in_folder) == 1 else None

    def _compare_group(
        self, group: Sequence[_Table], datasets: Mapping[str, _LakeDataset]
    ) -> Iterator[ReconcileFinding]:
        partitions = self._registered_partitions(group)
        locations = [
            TableLocation(
                table.registered.path,
                table.location,
                table.keys,
                tuple(each.location for each in partitions.get(table.registered.path, ())),
            )
            for table in group
            if table.is_scanned or partitions.get(table.registered.path)
        ]
        contents = read_contents(locations, self._manifests, state_access=self._state_access)
        table_schemas = self._store.schemas.current([table.known.urn for table in group])
        dataset_urns = [
            dataset.known.urn
            for table in group
            if (dataset := self._dataset_of(table, datasets)) is not None
        ]
        dataset_schemas = self._store.schemas.current(dataset_urns)
        for table in group:
            table_contents = contents.get(table.registered.path, TableContents())
            dataset = self._dataset_of(table, datasets)
            yield from _table_findings(
                table,
                table_contents,
                dataset,
                partitions.get(table.registered.path, []),
                schema=table_schemas.get(table.known.urn),
                files_schema=self._files_schema(table_contents, dataset, dataset_schemas),
                is_scanned=self._is_scanned,
            )

    def _registered_partitions(
        self, group: Sequence[_Table]
    ) -> dict[str, list[RegisteredPartition]]:
        """The partitions of tables with their canonical locations."""
        by_path = {table.registered.path: table for table in group if table.keys}
        partitions: dict[str, list[RegisteredPartition]] = {}
        if not by_path:
            return partitions
        for partition in self._registrations.partitions(
            self._index, first=min(by_path), last=max(by_path)
        ):
            table = by_path.get(partition.table)
            if table is None:
                continue
            self._partitions += 1
            location = self._canonical(
                partition.location or _default_location(table, partition.values)
            )
            if not is_below(location, table.location):
                self._outside_locations.add(location)
            partitions.setdefault(partition.table, []).append(partition._replace(location=location))
        return partitions

    def _files_schema(
        self,
        contents: TableContents,
        dataset: _LakeDataset | None,
        schemas: Mapping[str, Schema],
    ) -> Schema | None:
        """The schema of the dataset at the location, or else that of the newest file there."""
        if dataset is not None:
            return schemas.get(dataset.known.urn)
        for manifest in self._manifests:
            body = manifest.schemas.get(contents.schema_fingerprint)
            if body is not None:
                return from_json(body, Schema)
        return None

    def _data_without_tables(
        self, tables: Sequence[_Table], datasets: Mapping[str, _LakeDataset]
    ) -> Iterator[ReconcileFinding]:
        registered = {table.location for table in tables} | self._outside_locations
        folders_with_tables = {
            folder for location in registered for folder in parent_folders(location)
        }
        sorted_locations = sorted(registered)
        for location, dataset in datasets.items():
            is_inside = any(
                folder in registered for folder in (location, *parent_folders(location))
            )
            if (
                is_inside
                or location in folders_with_tables
                or _matches_any(location, sorted_locations)
            ):
                continue
            statistics = dataset.statistics or Statistics()
            yield ReconcileFinding(
                kind="data_without_table",
                location=location,
                dataset_urn=dataset.known.urn,
                details=f"{dataset.known.format}, {plural(statistics.file_count, 'file')}, "
                f"{format_size(statistics.total_size_bytes)}; no table has this location",
                count=statistics.file_count,
            )


def _matches_any(pattern: str, locations: Sequence[str]) -> bool:
    """Whether the location of a dataset is a pattern that matches one of the locations.

    An example of a pattern is /lake/{region}/orders.
    """
    prefix, brace, _ = pattern.partition("{")
    if not brace:
        return False
    literals = (re.escape(text) for text in re.split(r"\{[^{}/]*\}", pattern))
    matches = re.compile(f"{'[^/]*'.join(literals)}(?:/.*)?", re.DOTALL).fullmatch
    for location in islice(locations, bisect_left(locations, prefix), None):
        if not location.startswith(prefix):
            return False
        if matches(location):
            return True
    return False


def _root(scan: FinishedScan) -> str:
    return scan.source.partition(":")[2]


def _group_tables(tables: Sequence[_Table]) -> Iterator[list[_Table]]:
    group: list[_Table] = []
    size = 0
    for table in tables:
        size += 1 + (table.registered.partition_count or 0)
        group.append(table)
        if size >= _GROUP_SIZE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _default_location(table: _Table, values: Sequence[str]) -> str:
    pairs = zip(table.keys, values, strict=False)
    names = (f"{key}={quote(value or NULL_PARTITION, safe=' ')}" for key, value in pairs)
    return "/".join((table.location, *names))


def _location_findings(tables: Sequence[_Table]) -> Iterator[ReconcileFinding]:
    """Tables that share a location, or whose location is inside that of another table."""
    by_location: dict[str, list[_Table]] = {}
    for table in tables:
        by_location.setdefault(table.location, []).append(table)
    for location, tables_at_location in by_location.items():
        names = tuple(table.name for table in tables_at_location)
        if len(tables_at_location) > 1:
            yield ReconcileFinding(
                kind="shared_location",
                location=location,
                table=names[0],
                table_urn=tables_at_location[0].known.urn,
                other_tables=names[1:],
                details=f"also the location of {', '.join(names[1:])}",
            )
        outer = next((each for each in parent_folders(location) if each in by_location), None)
        if outer is not None:
            outer_tables = tuple(table.name for table in by_location[outer])
            yield ReconcileFinding(
                kind="nested_location",
                location=location,
                table=names[0],
                table_urn=tables_at_location[0].known.urn,
                other_tables=outer_tables,
                details=f"inside {outer}, the location of {', '.join(outer_tables)}",
            )


def _table_findings(
    table: _Table,
    contents: TableContents,
    dataset: _LakeDataset | None,
    partitions: Sequence[RegisteredPartition],
    *,
    schema: Schema | None,
    files_schema: Schema | None,
    is_scanned: Callable[[str], bool],
) -> Iterator[ReconcileFinding]:
    def finding(**facts: object) -> ReconcileFinding:
        return ReconcileFinding(
            location=table.location,
            table=table.name,
            table_urn=table.known.urn,
            dataset_urn=None if dataset is None else dataset.known.urn,
            **facts,  # type: ignore[arg-type]
        )

    registered = table.registered
    missing_partitions = [
        each
        for each in partitions
        if each.location not in contents.partitions_with_files and is_scanned(each.location)
    ]
    has_data = contents.files > 0 or dataset is not None
    if (
        table.is_scanned
        and not has_data
        and (not partitions or len(missing_partitions) == len(partitions))
    ):
        partition_note = f"; all {len(partitions):,} partitions are empty" if partitions else ""
        kind = "managed" if registered.managed else "external"
        yield finding(
            kind="table_without_data",
            details=f"{kind} table without files{partition_note}",
            count=len(partitions) or None,
        )
        return
    if missing_partitions:
        yield finding(
            kind="partitions_missing",
            details=f"{len(missing_partitions):,} of {plural(len(partitions), 'partition')} "
            "without files",
            count=len(missing_partitions),
            partitions=tuple(
                ReconciledPartition(values=each.values, location=each.location)
                for each in missing_partitions[:_MAX_PARTITIONS]
            ),
        )
    # An incomplete list of partitions proves nothing about folders that are not in it.
    if contents.files_by_unregistered_folder and registered.partition_count is not None:
        folders = sorted(contents.files_by_unregistered_folder)
        yield finding(
            kind="partitions_unregistered",
            details=f"{plural(len(folders), 'folder')} with "
            f"{plural(contents.files_by_unregistered_folder.total(), 'file')} not registered",
            count=len(folders),
            partitions=tuple(
                ReconciledPartition(values=_partition_values(each, table), location=each)
                for each in folders[:_MAX_PARTITIONS]
            ),
        )
    if contents.outside_partitions and registered.partition_count is not None:
        yield finding(
            kind="files_outside_partitions",
            details=f"{plural(contents.outside_partitions, 'file')} in no partition folder, "
            "which queries do not read",
            count=contents.outside_partitions,
        )
    formats = {dataset.known.format or ""} if dataset is not None else set(contents.formats)
    if has_data and not is_same_format(registered.format, formats):
        yield finding(
            kind="format_difference",
            details=f"declared as {registered.format}, files are {', '.join(sorted(formats))}",
        )
    elif schema is not None and files_schema is not None:
        format = next(iter(sorted(formats)), registered.format)
        changes = schema_findings(
            schema, files_schema, keys=registered.partition_keys, format=format
        )
        if changes:
            yield finding(
                kind="schema_difference",
                details=_describe_changes(changes),
                verdict=worst_verdict(changes),
                changes=change_rows(table.known.urn, changes),
            )
    stale = list(_stale_statistics(registered, contents)) if table.is_scanned else []
    if stale:
        yield finding(kind="stale_statistics", details="; ".join(stale))


def _describe_changes(changes: Sequence[Finding]) -> str:
    order = {Verdict.BREAKING: 0, Verdict.UNDETERMINED: 1}
    sorted_changes = sorted(changes, key=lambda each: order.get(each.consumer, 2))
    texts = [sentence_of(each.change) for each in sorted_changes[:_MAX_CHANGES]]
    more = len(changes) - len(texts)
    return "; ".join(texts) + (f"; {more:,} more" if more else "")


def _partition_values(folder: str, table: _Table) -> tuple[str, ...]:
    names = folder.split("/")[-len(table.keys) :]
    return tuple(unquote(name.partition("=")[2]) for name in names)


def _stale_statistics(registered: RegisteredTable, contents: TableContents) -> Iterator[str]:
    # The log of a table format determines which files belong to the table.
    if registered.format in LOG_FORMATS or not contents.files:
        return
    if is_stale(registered.rows, contents.rows):
        actual_rows = format_number(contents.rows)
        yield f"{format_number(registered.rows)} rows registered, {actual_rows} found"
    if is_stale(registered.files, contents.files):
        yield f"{registered.files:,} files registered, {contents.files:,} found"
    if registered.bytes is not None and is_stale(registered.bytes, contents.bytes):
        yield f"{format_size(registered.bytes)} registered, {format_size(contents.bytes)} found"


def _unscanned_tables(tables: Iterable[_Table]) -> Iterator[UnscannedTables]:
    """Tables in locations that no scan covers, by bucket or top folder."""
    by_store: dict[str, list[str]] = {}
    for table in tables:
        if not table.is_scanned:
            parts = table.location.split("/")
            store = "/".join(parts[:3]) if "://" in table.location else "/".join(parts[:2])
            by_store.setdefault(store, []).append(table.name)
    for store, names in sorted(by_store.items()):
        yield UnscannedTables(
            location=store, tables=len(names), examples=tuple(names[:_MAX_EXAMPLES])
        )
