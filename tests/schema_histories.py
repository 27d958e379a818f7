"""Records schemas of datasets over time, as scans do, without any files."""

from datetime import UTC, datetime

from lumos.discovery.dataset_recorder import DatasetRecorder
from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import FoundDataset
from lumos.model.schema import parse_schema
from lumos.model.urn import Urn
from lumos.store import Store

SOURCE = "file:/lake"


def day(text: str) -> datetime:
    """Noon of a date."""
    return datetime.fromisoformat(f"{text}T12:00:00").replace(tzinfo=UTC)


def record(
    store: Store, urn: str, schema: str, at: datetime, *, content: str = "", format: str = "parquet"
) -> None:
    """Records that a dataset was seen with a schema."""
    name = Urn.parse(urn)
    recorder = DatasetRecorder(store, source=SOURCE, prefix="S-", urn_of=lambda _: name, at=at)
    found = FoundDataset(
        path=f"/lake/{name.name}",
        format=format,
        location=Location(uri=f"/lake/{name.name}"),
        schema=parse_schema(schema),
        statistics=Statistics(file_count=1),
        drift=(),
        content=content or schema[-32:],
    )
    (outcome,) = recorder.record([(name, found)])
    assert outcome.event is not None, "nothing changed"
