"""How a dataset's two versions move, and which schema version each cloud version had."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple, assert_never

from lumos.model.change import ChangeEvent, EventType, Finding, Verdict
from lumos.model.version import ChangeType, CloudVersion, Level, SchemaVersion
from lumos.schemas.compatibility import worst

# How far a person's word moves the schema version where they do not say it.
USUAL_LEVEL: Final[Mapping[ChangeType, Level]] = {
    ChangeType.SCHEMA_CHANGE: "minor",
    ChangeType.DATA_UPDATE: "patch",
    ChangeType.METADATA_UPDATE: "patch",
}
EVENT_OF_CHANGE: Final[Mapping[ChangeType, EventType]] = {
    ChangeType.SCHEMA_CHANGE: EventType.SCHEMA_CHANGED,
    ChangeType.DATA_UPDATE: EventType.MODIFIED,
    ChangeType.METADATA_UPDATE: EventType.METADATA_CHANGED,
}


class Step(NamedTuple):
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
    """What an event was about: the schema, the data, or what is said of them."""
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
    landmarks: Iterable[Step], recorded: Iterable[Step] = ()
) -> dict[str, str]:
    """The schema version of every cloud version: {"S-311": "1.0.0", "S-312": "1.1.0"}.

    `landmarks` are the steps at which the schema version moved and the present one, `recorded`
    all others that are still on record. Those in between are counted, unless the prefix changed
    there: nobody can tell how they were spelled.
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
