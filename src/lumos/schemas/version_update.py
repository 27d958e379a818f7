"""Datasets with new versions since the last version tag, and the versions of the run."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from lumos.model.version import CloudVersion, Level, SchemaVersion
from lumos.schemas.reports import DatasetVersions, UpdatedVersion
from lumos.schemas.version_tags import VersionTag

_LEVELS: Final[tuple[Level, ...]] = ("none", "patch", "minor", "major")


class RunVersions(NamedTuple):
    """The versions of a run, for all datasets together."""

    cloud_version: CloudVersion
    schema_version: SchemaVersion

    @classmethod
    def of(cls, tag: VersionTag) -> "RunVersions":
        return cls(tag.cloud_version, tag.schema_version)


def moved_datasets(
    before: Mapping[str, DatasetVersions],
    after: Mapping[str, DatasetVersions],
    names: Mapping[str, str],
) -> tuple[UpdatedVersion, ...]:
    """The datasets whose versions differ, including new and deleted ones, sorted by URN."""
    return tuple(
        UpdatedVersion(
            urn=urn,
            name=names.get(urn, urn),
            before=before.get(urn),
            after=after.get(urn),
            level=_level(before.get(urn), after.get(urn)),
        )
        for urn in sorted(before.keys() | after.keys())
        if before.get(urn) != after.get(urn)
    )


def run_versions(
    moved: Iterable[UpdatedVersion],
    versions: Mapping[str, DatasetVersions],
    last: VersionTag | None,
    *,
    prefix: str,
) -> RunVersions | None:
    """The versions of a run; None if nothing moved.

    The cloud version is the highest one of all datasets, or the next one after the last run if that
    is higher, so that no two runs have the same. The schema version rises by the largest step of a
    dataset and is at least the highest schema version among the datasets that moved.
    """
    moved = tuple(moved)
    if not moved:
        return None
    numbers = [CloudVersion.parse(each.cloud_version).number for each in versions.values()]
    schemas = [
        SchemaVersion.parse(each.after.schema_version) for each in moved if each.after is not None
    ]
    if last is not None:
        numbers.append(last.cloud_version.number + 1)
        # New data alone is a patch, although no schema version changed.
        largest = max((each.level for each in moved), key=_LEVELS.index)
        schemas.append(last.schema_version.next("patch" if largest == "none" else largest))
    return RunVersions(
        CloudVersion(max(numbers, default=1), prefix), max(schemas, default=SchemaVersion())
    )


def _level(before: DatasetVersions | None, after: DatasetVersions | None) -> Level:
    """The step between two versions: a new dataset is minor, a deleted one major."""
    if after is None:
        return "major"
    if before is None:
        return "minor"
    old, new = (SchemaVersion.parse(each.schema_version) for each in (before, after))
    if old.major != new.major:
        return "major"
    if old.minor != new.minor:
        return "minor"
    return "patch" if old.patch != new.patch else "none"
