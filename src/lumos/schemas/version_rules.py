"""Which event a scan records for a dataset, and how its two versions move."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple, assert_never

import msgspec

from lumos.model.change import ChangeEvent, EventType, Finding, Verdict
from lumos.model.schema import Schema
from lumos.model.version import ChangeType, CloudVersion, Level, SchemaVersion
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import judge, worst

# How far a manual bump moves the schema version without --level.
DEFAULT_LEVEL: Final[Mapping[ChangeType, Level]] = {
    ChangeType.SCHEMA_CHANGE: "minor",
    ChangeType.DATA_UPDATE: "patch",
    ChangeType.METADATA_UPDATE: "patch",
}
EVENT_OF_CHANGE: Final[Mapping[ChangeType, EventType]] = {
    ChangeType.SCHEMA_CHANGE: EventType.SCHEMA_CHANGED,
    ChangeType.DATA_UPDATE: EventType.MODIFIED,
    ChangeType.METADATA_UPDATE: EventType.METADATA_CHANGED,
}


class VersionStep(NamedTuple):
    """A cloud version and the schema version that it has."""

    cloud_version: CloudVersion
    schema_version: str


def level_of(findings: Iterable[Finding]) -> Level:
    """Breaking or undetermined steps the major, compatible the minor, informational the patch."""
    match worst(findings):
        case None:
            return "none"
        case Verdict.BREAKING | Verdict.UNDETERMINED:
            return "major"
        case Verdict.COMPATIBLE:
            return "minor"
        case Verdict.INFORMATIONAL:
            return "patch"
        case _ as unreachable:
            assert_never(unreachable)


def next_schema_version(version: SchemaVersion, findings: Iterable[Finding]) -> SchemaVersion:
    """The version after some judged changes."""
    return version.next(level_of(findings))


def change_type_of(event: ChangeEvent) -> ChangeType:
    """Whether an event is about the schema, the data, or their metadata."""
    match event.type:
        case EventType.CREATED | EventType.SCHEMA_CHANGED:
            return ChangeType.SCHEMA_CHANGE
        case EventType.RESTORED:
            return ChangeType.SCHEMA_CHANGE if event.findings else ChangeType.DATA_UPDATE
        case EventType.MODIFIED | EventType.DELETED:
            return ChangeType.DATA_UPDATE
        case EventType.METADATA_CHANGED | EventType.RENAMED | EventType.MERGED | EventType.SPLIT:
            return ChangeType.METADATA_UPDATE
        case _ as unreachable:
            assert_never(unreachable)


def versions_by_cloud_version(
    landmarks: Iterable[VersionStep], recorded: Iterable[VersionStep] = ()
) -> dict[str, str]:
    """The schema version of every cloud version: {"S-311": "1.0.0", "S-312": "1.1.0"}.

    `landmarks` are the steps at which the schema version moved and the current one, `recorded` are
    all others that are still stored. Those in between are derived by counting, unless the prefix
    changed there: then their spelling is unknown.
    """
    known = {step.cloud_version.number: step for step in (*recorded, *landmarks)}
    steps = [known[number] for number in sorted(known)]
    versions: dict[str, str] = {}
    for (start, version), (end, _) in pairwise(steps):
        versions[str(start)] = version
        if start.prefix == end.prefix:
            for number in range(start.number + 1, end.number):
                versions[str(CloudVersion(number, start.prefix))] = version
    for cloud, version in steps[-1:]:
        versions[str(cloud)] = version
    return versions


class ObservedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset as a scan sees it: its schema and a fingerprint of its content.

    The content is the data files or, if `is_from_source`, the metadata of the source.
    `has_new_source_metadata` if a table, which has both, has other metadata than before.
    """

    schema: Schema
    content: str
    is_from_source: bool = False
    has_new_source_metadata: bool = False
    format: str | None = None
    reverted: bool = False


class RecordedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset as it was last recorded, with its versions and whether it is live."""

    schema: Schema
    content: str
    cloud_version: CloudVersion
    schema_version: SchemaVersion
    is_live: bool = True


class EventDecision(msgspec.Struct, frozen=True, kw_only=True):
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


def decide_event(
    observed: ObservedDataset, known: RecordedDataset | None, *, prefix: str
) -> EventDecision | None:
    """What to record for a scanned dataset; None if nothing changed."""
    if known is None:
        return EventDecision(
            type=EventType.CREATED,
            cloud_version=CloudVersion(prefix=prefix),
            schema_version=SchemaVersion(),
        )
    findings = judge(compare(known.schema, observed.schema), format=observed.format)
    event = _event(observed, known, findings)
    if event is None:
        return None
    return EventDecision(
        type=event,
        cloud_version=known.cloud_version.next(prefix=prefix),
        schema_version=next_schema_version(known.schema_version, findings),
        findings=findings,
        flags=("reverted",) if observed.reverted and findings else (),
    )


def _event(
    observed: ObservedDataset, known: RecordedDataset, findings: tuple[Finding, ...]
) -> EventType | None:
    if not known.is_live:
        return EventType.RESTORED
    if observed.schema.shape != known.schema.shape:
        return EventType.SCHEMA_CHANGED
    is_same_content = observed.content == known.content
    if findings or (
        observed.has_new_source_metadata if is_same_content else observed.is_from_source
    ):
        return EventType.METADATA_CHANGED
    return None if is_same_content else EventType.MODIFIED
