"""A lake whose scans find what a test gives them, recorded as any scan is."""

from collections.abc import Iterable
from datetime import UTC, datetime

from lumos import Lumos
from lumos.config.sources import FileSourceSettings as FileSettings
from lumos.discovery.scan_recorder import RecordedScan, ScanRecorder
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import Discovery, FoundDataset
from lumos.model.schema import parse_schema
from lumos.sources.file import FileSource
from lumos.store import FinishedScan, Store
from recorded_lake import RecordedLake, urn_of

OLD = "/lake/events"
OLD_URN = str(urn_of(OLD))


def dataset(
    path: str,
    schema: str = "id INT64\nemail STRING",
    *,
    split_from: str | None = None,
    content: str = "1",
    size: int = 10,
) -> FoundDataset:
    return FoundDataset(
        path=path,
        format="parquet",
        location=Location(uri=path),
        schema=parse_schema(schema),
        statistics=Statistics(file_count=1, total_size_bytes=size),
        drift=(),
        content=content,
        split_from=split_from,
    )


def parts(count: int, *, of: str = OLD) -> list[FoundDataset]:
    return [dataset(f"{of}/part_{number:03}", split_from=of) for number in range(count)]


class Lake:
    """A lake whose scans find what they are given."""

    def __init__(self, seen: RecordedLake) -> None:
        self.lumos: Lumos = seen.lumos
        self.store: Store = seen.store
        self._source = FileSource(FileSettings(paths=("/lake",)))

    def scan(self, datasets: Iterable[FoundDataset]) -> RecordedScan:
        last = self.store.last_scan("file:/lake")
        scan_id = "000001" if last is None else f"{int(last.scan_id) + 1:06d}"
        scan = FinishedScan(
            source="file:/lake", scan_id=scan_id, manifest=scan_id, finished_at=datetime.now(UTC)
        )
        recorder = ScanRecorder(self.lumos.settings, self.store, self._source, scan)
        return recorder.record(Discovery(datasets=tuple(datasets)))

    def events(self, type: EventType) -> list[ChangeEvent]:
        return [
            each
            for urn in {OLD_URN, *self.live()}
            for each in self.store.events(urn)
            if each.type is type
        ]

    def live(self) -> set[str]:
        return {each.urn for each in self.lumos.list().datasets}


def urns(datasets: Iterable[FoundDataset]) -> set[str]:
    return {str(urn_of(each.path)) for each in datasets}
