"""Datasets that a scan might have found, recorded without a scan."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count

import msgspec

from lumos import Lumos
from lumos.discovery.dataset_recorder import DatasetRecorder
from lumos.model.change import ChangeEvent
from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import FoundDataset
from lumos.model.schema import Schema, parse_schema
from lumos.model.urn import Urn

SOURCE = "file:/lake"
START = datetime(2024, 1, 1, tzinfo=UTC)


def urn_of(path: str) -> Urn:
    return Urn.of("file", path.strip("/").split("/"))


class RecordedLake:
    """A lake whose datasets look as they are told to, an hour after one another."""

    def __init__(self, lumos: Lumos) -> None:
        self.lumos = lumos
        self.store = lumos._store.create()
        self.hours = count()
        self.start = self.at = START

    def recorder(self) -> DatasetRecorder:
        self.at = self.start + timedelta(hours=next(self.hours))
        return DatasetRecorder(
            self.store,
            source=SOURCE,
            prefix=self.lumos.settings.cloud_version_prefix,
            urn_of=urn_of,
            at=self.at,
            tracks_schemas=self.lumos.settings.switches.is_on("schema_tracking"),
        )

    def see(self, name: str, schema: str, *, renamed_from: str | None = None) -> ChangeEvent:
        """A dataset with new data in it, and perhaps another schema."""
        (event,) = self.see_all([name], schema, renamed_from=renamed_from)
        return event

    def see_all(
        self, names: Iterable[str], schema: str, *, renamed_from: str | None = None
    ) -> list[ChangeEvent]:
        """Several datasets in one scan."""
        recorder = self.recorder()
        parsed = parse_schema(schema)
        found = [self._found(name, parsed, renamed_from) for name in names]
        outcomes = recorder.record([(urn_of(each.path), each) for each in found])
        return [outcome.event for outcome in outcomes if outcome.event is not None]

    def see_below(self, root: str, names: Iterable[str]) -> None:
        """Files of CSV in a lake that lies elsewhere, as a scan of its own finds them."""
        source, at = f"file:{root}", self.start
        recorder = DatasetRecorder(self.store, source=source, prefix="S", urn_of=urn_of, at=at)
        found = []
        for path in (f"{root}/{name}" for name in names):
            like = self._found(path, parse_schema("id INT64"), None)
            each = msgspec.structs.replace(
                like, path=path, format="csv", location=Location(uri=path)
            )
            found.append((urn_of(path), each))
        list(recorder.record(found))

    def _found(self, name: str, schema: Schema, renamed_from: str | None) -> FoundDataset:
        return FoundDataset(
            path=f"/lake/{name}",
            format="parquet",
            location=Location(uri=f"/lake/{name}"),
            schema=schema,
            statistics=Statistics(
                file_count=1, total_size_bytes=10, row_count=3, row_count_exact=True
            ),
            drift=(),
            content=str(self.at.timestamp()),
            renamed_from=renamed_from and f"/lake/{renamed_from}",
        )

    def lose(self, name: str) -> None:
        """A dataset that is gone."""
        recorder = self.recorder()
        known = self.store.known(source=SOURCE)[str(urn_of(f"/lake/{name}"))]
        with self.store.transaction() as transaction:
            recorder.remove(transaction, known, Location(uri=f"/lake/{name}"))
