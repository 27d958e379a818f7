"""Records schemas of datasets over time, as scans do, without any files."""

from datetime import UTC, datetime

from lumos.analysis.tracking import OnRecord, Sighting, decide
from lumos.analysis.wording import summary_of
from lumos.model.change import ChangeEvent
from lumos.model.text import parse_schema
from lumos.model.urn import Urn
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.store import KnownDataset, Store


def day(text: str) -> datetime:
    """Noon of a date."""
    return datetime.fromisoformat(f"{text}T12:00:00").replace(tzinfo=UTC)


def record(
    store: Store, urn: str, schema: str, at: datetime, *, content: str = "", format: str = "parquet"
) -> None:
    """Records that a dataset was seen with a schema."""
    content = content or schema[-32:]
    with store.transaction() as transaction:
        known = transaction.known(urn)
        before = None
        if known is not None and known.schema_hash is not None:
            before = OnRecord(
                schema=transaction.schema(known.schema_hash),
                content=known.content,
                cloud_version=CloudVersion.parse(known.cloud_version),
                schema_version=SchemaVersion.parse(known.schema_version),
            )
        seen = Sighting(schema=parse_schema(schema), content=content, format=format)
        decision = decide(seen, before, prefix="S-")
        assert decision is not None, "nothing changed"
        dataset = KnownDataset(
            urn=urn,
            name=Urn.parse(urn).name,
            platform=Urn.parse(urn).platform,
            format=format,
            source="file:/lake",
            state="live",
            cloud_version=str(decision.cloud_version),
            schema_version=str(decision.schema_version),
            schema_hash=transaction.save_schema(seen.schema),
            fingerprint=seen.schema.full,
            content=content,
            created_at=at,
            updated_at=at,
        )
        event = ChangeEvent(
            event_id=f"{abs(hash((urn, dataset.cloud_version))):x}",
            urn=urn,
            type=decision.type,
            at=at,
            cause="scan",
            cloud_version=dataset.cloud_version,
            schema_version=dataset.schema_version,
            source_path=f"/lake/{dataset.name}",
            findings=decision.findings,
            summary=summary_of(decision.type, decision.findings, decision.flags),
        )
        transaction.save(dataset)
        transaction.save_event(event)
        if decision.schema_changed:
            transaction.save_schema_version(dataset, event)
