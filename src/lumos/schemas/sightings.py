"""What a new sighting of a dataset means, compared with what is on record."""

import msgspec

from lumos.model.change import EventType, Finding
from lumos.model.schema import Schema
from lumos.model.version import CloudVersion, SchemaVersion
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import judge
from lumos.schemas.version_rules import next_schema_version


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset's schema and content fingerprint at one time.

    The content is that of its files or, where it is `told`, what its place says of it. `retold`
    says that a table, which is both, tells something else of itself than before.
    """

    schema: Schema
    content: str
    told: bool = False
    retold: bool = False
    format: str | None = None
    reverted: bool = False


class OnRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The last recorded sighting, its versions, and whether the dataset is still there."""

    schema: Schema
    content: str
    cloud_version: CloudVersion
    schema_version: SchemaVersion
    is_live: bool = True


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The event to record and the versions that follow."""

    type: EventType
    cloud_version: CloudVersion
    schema_version: SchemaVersion
    findings: tuple[Finding, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def schema_changed(self) -> bool:
        """Whether a new schema version begins."""
        return self.type is EventType.CREATED or bool(self.findings)


def decide(seen: Sighting, known: OnRecord | None, *, prefix: str) -> Decision | None:
    """What to record for a sighting, or nothing where all is as it was."""
    if known is None:
        return Decision(
            type=EventType.CREATED,
            cloud_version=CloudVersion(prefix=prefix),
            schema_version=SchemaVersion(),
        )
    findings = judge(compare(known.schema, seen.schema), format=seen.format)
    event = _event(seen, known, findings)
    if event is None:
        return None
    return Decision(
        type=event,
        cloud_version=known.cloud_version.next(prefix=prefix),
        schema_version=next_schema_version(known.schema_version, findings),
        findings=findings,
        flags=("reverted",) if seen.reverted and findings else (),
    )


def _event(seen: Sighting, known: OnRecord, findings: tuple[Finding, ...]) -> EventType | None:
    if not known.is_live:
        return EventType.RESTORED
    if seen.schema.shape != known.schema.shape:
        return EventType.SCHEMA_CHANGED
    is_as_before = seen.content == known.content
    if findings or (seen.retold if is_as_before else seen.told):
        return EventType.METADATA_CHANGED
    return None if is_as_before else EventType.MODIFIED
