"""Scans of one source: locking, manifests, and the discovery of its datasets."""

import hashlib
import logging
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lumos.annotations.rules import reported_properties
from lumos.config import Settings
from lumos.discovery.scan_recorder import ScanRecorder
from lumos.discovery.targets import DatabaseTarget, LakeTarget, ScanFailed, ScanTarget, ScanTargets
from lumos.errors import LumosError, MisuseError
from lumos.model.discovery import Discovery
from lumos.model.schema import Schema
from lumos.progress import Progress
from lumos.sources import IncrementalSource, MetastoreSource, SampledSource, TableSource
from lumos.sources.addresses import is_address
from lumos.sources.interface import EarlierSchema, EarlierSchemas
from lumos.storage import StorageAccess, storage_of
from lumos.storage.errors import StorageFault
from lumos.store import FinishedScan, Store

if TYPE_CHECKING:
    from lumos.discovery.grouping.state import GroupingState
    from lumos.discovery.registrations import RegistrationStore

_log = logging.getLogger(__name__)
# Pure-Python packages that the executors of a cluster may not have.
_LIBRARIES: Final = {"mongodb": ("bson", "pymongo", "dns")}


class StateNotUsable(MisuseError):
    """A state_uri that cannot be listed or written."""

    def __init__(self, state_uri: str, problem: OSError) -> None:
        self.found = f"state_uri {state_uri} cannot be used: {problem}."
        self.next_step = "Grant list, read, write and delete permissions, or set another state_uri."
        super().__init__(f"{self.found} {self.next_step}")


def state_folder(state_uri: str, source_id: str) -> str:
    """The folder with the manifests of one source."""
    return f"{state_uri}/{hashlib.blake2b(source_id.encode(), digest_size=8).hexdigest()}"


def check_state(state_uri: str, access: StorageAccess) -> None:
    """Write and delete a small file if the state is kept in an object store."""
    if not is_address(state_uri):
        return
    test_file = f"{state_uri}/{uuid.uuid4().hex}.trial"
    try:
        storage = storage_of(state_uri, access)
        storage.files(state_uri)
        storage.write(test_file, b"")
        storage.discard([test_file])
    except OSError as problem:
        raise StateNotUsable(state_uri, problem) from None


class OpenScan(NamedTuple):
    """A scan that holds the lock of its source, and the last finished scan."""

    target: ScanTarget
    scan: FinishedScan
    last: FinishedScan | None
    recorder: ScanRecorder

    @property
    def last_manifest(self) -> str | None:
        """The name of the last manifest."""
        return None if self.last is None else self.last.manifest


class SourceScanner:
    """Scans targets in order; starts Spark for the first lake and stops it at the end.

    The store is opened when it is first needed, after everything else has been checked. `short`
    configures Spark for a short job.
    """

    def __init__(
        self,
        settings: Settings,
        targets: ScanTargets,
        *,
        open_store: Callable[[], Store],
        state: str,
        state_access: StorageAccess,
        progress: Progress,
        column_stats: bool,
        short: bool,
    ) -> None:
        self._settings = settings
        self._targets = targets
        self._open_store = open_store
        self._state = state
        self._state_access = state_access
        self._progress = progress
        self._column_stats = column_stats
        self._short = short
        self._resources = ExitStack()

    def __enter__(self) -> "SourceScanner":
        has_metastores = any(
            isinstance(each.source, MetastoreSource) for each in self._targets.databases
        )
        if self._targets.lakes or has_metastores:
            check_state(self._state, self._state_access)
        return self

    def __exit__(self, *problem: object) -> bool | None:
        return self._resources.__exit__(*problem)  # type: ignore[arg-type]

    @cached_property
    def store(self) -> Store:
        """The store, created if there is none."""
        return self._open_store()

    @contextmanager
    def begin(self, target: ScanTarget) -> Iterator[OpenScan]:
        """Lock a target while it is scanned and recorded.

        If the scan fails, the manifest of the last scan is kept, and the new manifest is deleted.
        """
        if isinstance(target, LakeTarget):
            _ = self._spark
        with self.store.lock(target.source_id):
            _log.info("scan started", extra={"facts": {"source": target.source_id}})
            last = self.store.last_scan(target.source_id)
            number = 1 if last is None else int(last.scan_id.partition("-")[0]) + 1
            scan_id = f"{number:06d}-{uuid.uuid4().hex[:8]}"
            finished_at = datetime.now(UTC)
            if last is not None:
                # Later than the last scan, even if the clock was set back.
                finished_at = max(finished_at, last.finished_at + timedelta(microseconds=1))
            scan = FinishedScan(
                source=target.source_id,
                scan_id=scan_id,
                manifest=scan_id,
                finished_at=finished_at,
            )
            recorder = ScanRecorder(self._settings, self.store, target.source, scan)
            referenced = set() if last is None else {last.manifest}
            try:
                yield OpenScan(target, scan, last, recorder)
                referenced.add(scan.manifest)
            finally:
                if isinstance(target, LakeTarget):
                    from lumos.discovery.lake.manifest import ManifestStore

                    folder = state_folder(self._state, target.source_id)
                    ManifestStore(folder, self._state_access).delete_all_but(referenced)
                elif isinstance(target.source, MetastoreSource):
                    self._registrations(target).delete_all_but(referenced)

    def discover(self, scan: OpenScan, *, changed: Collection[str] | None = None) -> Discovery:
        """Discover the datasets of a target; `changed` limits the scan of a lake to these paths."""
        match scan.target:
            case LakeTarget():
                return self._discover_lake(scan.target, scan, changed)
            case DatabaseTarget(source):
                step = f"Reading {source.address}"
                self._progress(step)
                if isinstance(source, SampledSource):
                    load_schema = stored_schema_loader(
                        self.store, source, self._settings.environment
                    )
                    return sample_source(source, load_schema, self._settings, self._progress)

                def report_progress(share: float) -> None:
                    self._progress(step, share=share)

                if isinstance(source, MetastoreSource):
                    writer = self._registrations(scan.target).writer(scan.scan.manifest)
                    discovery = source.read_registered(writer.add, report_progress)
                    writer.finish()
                    return discovery
                if isinstance(source, IncrementalSource):
                    load_schema = stored_schema_loader(
                        self.store, source, self._settings.environment
                    )
                    return source.read_changes(load_schema, report_progress)
                return source.read(report_progress)

    def _registrations(self, target: DatabaseTarget) -> "RegistrationStore":
        """The tables and partitions that scans of a metastore store for `lumos reconcile`."""
        from lumos.discovery.registrations import RegistrationStore

        folder = state_folder(self._state, target.source_id)
        return RegistrationStore(folder, self._state_access)

    def explain_fault(self, target: ScanTarget, fault: StorageFault) -> LumosError:
        """The error for a storage fault: StateNotUsable or ScanFailed."""
        try:
            check_state(self._state, self._state_access)
        except StateNotUsable as unusable:
            return unusable
        return ScanFailed(target.address, fault)

    @cached_property
    def _spark(self) -> Any:
        self._progress("Starting Spark")
        from lumos.spark.session import spark_session

        def prepare() -> None:
            import lumos.discovery.lake.job  # noqa: F401 - imported while the JVM starts

            _ = self.store

        spark = self._settings.spark
        return self._resources.enter_context(
            spark_session(
                master=spark.master,
                settings=spark.properties(),
                short=self._short,
                run_meanwhile=prepare,
            )
        )

    def _discover_lake(
        self, target: LakeTarget, scan: OpenScan, changed: Collection[str] | None
    ) -> Discovery:
        from lumos.discovery.lake.job import scan_lake

        step = f"Scanning {target.address}"
        self._progress(step)
        if changed is not None and self._was_interrupted(scan):
            _log.info("The whole lake %s is listed, since a scan did not finish.", target.address)
            changed = None
        return scan_lake(
            self._spark,
            target.selection,
            state=state_folder(self._state, target.source_id),
            before=scan.last_manifest,
            after=scan.scan.manifest,
            state_access=self._state_access,
            column_stats=self._column_stats,
            excluded_uri=self._state,
            inherited=self._inherited_grouping(target.source_id),
            load_memories=scan.recorder.load_memories,
            report_progress=lambda files, share: self._progress(step, files=files, share=share),
            changed=changed,
        )

    def _was_interrupted(self, scan: OpenScan) -> bool:
        """Whether a scan was killed after it had recorded some of its datasets.

        The last manifest does not describe them, so only a whole scan can tell whether they exist.
        """
        recorded_at = self.store.last_recorded_at(scan.scan.source)
        finished_at = None if scan.last is None else scan.last.finished_at
        return recorded_at is not None and (finished_at is None or recorded_at > finished_at)

    def _inherited_grouping(self, source_id: str) -> "GroupingState | None":
        """The grouping of the last scan of the outermost folder above a root, if there is one."""
        from lumos.discovery.lake.manifest import ManifestStore

        parents = [
            scan
            for scan in self.store.scans()
            if source_id.startswith(f"{scan.source.rstrip('/')}/")
        ]
        if not parents:
            return None
        outermost = min(parents, key=lambda scan: len(scan.source))
        manifests = ManifestStore(state_folder(self._state, outermost.source), self._state_access)
        return manifests.grouping_of(manifests.read(outermost.manifest))


def sample_source(
    source: SampledSource, load_schema: EarlierSchemas, settings: Settings, progress: Progress
) -> Discovery:
    """Discover the datasets of a database without schemas, from samples that Spark takes."""
    progress("Starting Spark")
    from lumos.discovery.sampling_job import run_samples
    from lumos.spark.session import spark_session

    spark = settings.spark
    with spark_session(
        master=spark.master,
        settings=spark.properties(),
        libraries=_LIBRARIES.get(source.kind, ()),
    ) as session:
        progress(f"Reading {source.address}")
        return source.read_samples(partial(run_samples, session), load_schema)


def stored_schema_loader(store: Store, source: TableSource, environment: str) -> EarlierSchemas:
    """Return a function that loads the recorded schema of a live dataset of a source."""
    source_id = f"{source.identity}:{source.scope}"
    recorded, annotations = store.known(source=source_id), store.annotations.reported(source_id)

    def load_schema(path: str) -> EarlierSchema | None:
        urn = str(source.urn(path, environment=environment))
        record = recorded.get(urn)
        if record is None or record.state != "live":
            return None
        properties = reported_properties(annotations.get(urn, {}), record.platform)
        return EarlierSchema(properties, lambda: store.schemas.current([urn]).get(urn, Schema()))

    return load_schema
