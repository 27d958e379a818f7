"""Raises the versions of datasets outside of scans, and records the events."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from lumos.model.change import ChangeEvent
from lumos.model.dataset import Location
from lumos.model.version import CloudVersion, Level, SchemaVersion
from lumos.store import KnownDataset, Transaction


class VersionWriter:
    """Raises versions; callers call `on_written` with the written URNs after the commit."""

    def __init__(self, *, prefix: str, on_written: Callable[[Sequence[str]], None]) -> None:
        self.prefix = prefix
        self.on_written = on_written

    def next_version(self, dataset: KnownDataset, level: Level, *, at: datetime) -> KnownDataset:
        """The dataset with the next cloud version, and a schema version raised by `level`."""
        cloud_version = CloudVersion.parse(dataset.cloud_version).next(prefix=self.prefix)
        schema_version = SchemaVersion.parse(dataset.schema_version).next(level)
        return msgspec.structs.replace(
            dataset,
            cloud_version=str(cloud_version),
            schema_version=str(schema_version),
            updated_at=at,
        )

    def write(
        self,
        transaction: Transaction,
        after: KnownDataset,
        event: ChangeEvent,
        *,
        starts_version: bool,
    ) -> None:
        """Write a dataset with its new versions, and the event that raised them."""
        transaction.save(after)
        transaction.save_event(event)
        if starts_version and after.schema_hash is not None:
            transaction.save_schema_version(after, event)


def source_path(transaction: Transaction, urn: str) -> str | None:
    """The recorded location of a dataset's data."""
    location: Location | None = transaction.aspect(urn, "location")
    return None if location is None else location.uri
