"""Reports the partitions of datasets."""

from collections.abc import Callable, Collection

from lumos.config import Settings
from lumos.model.dataset import Dataset
from lumos.model.report import FORMAT_VERSION
from lumos.names import find_urn
from lumos.partitions.days import PartitionDays, sum_by_day
from lumos.profiles.files import NotProfiled, ScannedDatasets
from lumos.store import Store


class PartitionsReport(PartitionDays, frozen=True, kw_only=True):
    """The partitions of a dataset over time, from the files of its last scan.

    `reason` says why there are none: databases and imported datasets have no known files.
    """

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    partition_keys: tuple[str, ...]
    reason: str | None = None


class Partitions:
    """Shows the partitions of the datasets of one store."""

    def __init__(
        self, settings: Settings, store: Callable[[], Store], state: Callable[[], str]
    ) -> None:
        self._settings = settings
        self._store = store
        self._state = state

    def show(self, dataset: str) -> PartitionsReport:
        """The rows, bytes and files of each day of a dataset, and the missing days."""
        urn = find_urn(self._store(), dataset)
        return self.reader().show_many([urn])[urn]

    def reader(self) -> "PartitionReader":
        """A reader for many datasets; it reads the manifest of each scan only once."""
        return PartitionReader(self._settings, self._store(), self._state())


class PartitionReader:
    """Reads the partitions of datasets from their last scans."""

    def __init__(self, settings: Settings, store: Store, state: str) -> None:
        self._store = store
        self._scanned = ScannedDatasets(settings, store, state=state)

    def show_many(self, urns: Collection[str]) -> dict[str, PartitionsReport]:
        """The partitions of datasets by current URN."""
        return {urn: self._show(each) for urn, each in self._store.get_many(urns).items()}

    def _show(self, dataset: Dataset) -> PartitionsReport:
        reason = None
        days = PartitionDays(granularity=None, days=(), missing=(), undated=0)
        try:
            days = sum_by_day(self._scanned.files_of(dataset).files)
        except NotProfiled as problem:
            reason = problem.reason
        return PartitionsReport(
            urn=dataset.urn,
            name=dataset.name,
            partition_keys=dataset.location.partition_keys if dataset.location else (),
            reason=reason,
            granularity=days.granularity,
            days=days.days,
            missing=days.missing,
            undated=days.undated,
        )
