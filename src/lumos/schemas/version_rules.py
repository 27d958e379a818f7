"""Decides which event a scan records for a dataset, and which versions the dataset gets."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple, assert_never

import msgspec

from lumos.model.change import ChangeEvent, EventType, Finding, Verdict
from lumos.model.schema import Schema
from lumos.model.version import ChangeType, CloudVersion, Level, SchemaVersion
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify, worst_verdict

# The level of a manual bump without --level.
DEFAULT_LEVEL: Final[Mapping[ChangeType, Level]] = {
    ChangeType.SCHEMA_CHANGE: "minor",
    ChangeType.DATA_UPDATE: "patch",
    ChangeType.METADATA_UPDATE: "patch",
}
EVENT_BY_CHANGE_TYPE: Final[Mapping[ChangeType, EventType]] = {
    ChangeType.SCHEMA_CHANGE: EventType.SCHEMA_CHANGED,
    ChangeType.DATA_UPDATE: EventType.MODIFIED,
    ChangeType.METADATA_UPDATE: EventType.METADATA_CHANGED,
}


class VersionStep(NamedTuple):
    """A cloud version and the schema version that it has."""

    cloud_version: CloudVersion
    schema_version: str


def level_of(findings: Iterable[Finding]) -> Level:
    """The level by which findings raise the schema version: major if a change may be breaking."""
    match worst_verdict(findings):
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
    """The schema version after changes."""
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
    version_changes: Iterable[VersionStep], recorded: Iterable[VersionStep] = ()
) -> dict[str, str]:
    """The schema version of each cloud version, such as `{"S-311": "1.0.0", "S-312": "1.1.0"}`.

    `version_changes` are the steps that changed the schema version, and the current step.
    `recorded` are other steps that are still stored. Between two steps, cloud versions are numbered
    consecutively. If their prefixes differ, the cloud versions between them are not returned,
    because their prefixes are unknown.
    """
    by_number = {step.cloud_version.number: step for step in (*recorded, *version_changes)}
    steps = [by_number[number] for number in sorted(by_number)]
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
    """A dataset as a scan finds it: its schema, and a fingerprint of its content.

    The content consists of the data files or, if `is_from_source`, of the metadata in the source. A
    table has both; `has_new_source_metadata` is true if its metadata changed.
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
    """The event to record, and the versions after it."""

    type: EventType
    cloud_version: CloudVersion
    schema_version: SchemaVersion
    findings: tuple[Finding, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def schema_changed(self) -> bool:
        """Whether a new schema version starts."""
        return self.type is EventType.CREATED or bool(self.findings)


def decide_event(
    observed: ObservedDataset, recorded: RecordedDataset | None, *, prefix: str
) -> EventDecision | None:
    """Decide what to record for a scanned dataset; None if nothing changed."""
    if recorded is None:
        return EventDecision(
            type=EventType.CREATED,
            cloud_version=CloudVersion(prefix=prefix),
            schema_version=SchemaVersion(),
        )
    findings = classify(compare(recorded.schema, observed.schema), format=observed.format)
    event = _event(observed, recorded, findings)
    if event is None:
        return None
    return EventDecision(
        type=event,
        cloud_version=recorded.cloud_version.next(prefix=prefix),
        schema_version=next_schema_version(recorded.schema_version, findings),
        findings=findings,
        flags=("reverted",) if observed.reverted and findings else (),
    )


def _event(
    observed: ObservedDataset, recorded: RecordedDataset, findings: tuple[Finding, ...]
) -> EventType | None:
    if not recorded.is_live:
        return EventType.RESTORED
    if observed.schema.shape != recorded.schema.shape:
        return EventType.SCHEMA_CHANGED
    is_same_content = observed.content == recorded.content
    if findings or (
        observed.has_new_source_metadata if is_same_content else observed.is_from_source
    ):
        return EventType.METADATA_CHANGED
    return None if is_same_content else EventType.MODIFIED
