"""Reads the inputs of `lumos schema diff`: files, folders, snapshots, and versions of datasets."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from lumos.errors import MisuseError, did_you_mean
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.schema import Schema
from lumos.model.time_expression import parse_time
from lumos.model.urn import SCHEME
from lumos.names import find_urn
from lumos.schemas.changes import schema_versions_of
from lumos.schemas.files import SCHEMA_SUFFIX, DatasetSchema, has_schema_files, read_file
from lumos.snapshots.format.comparison import is_part
from lumos.snapshots.format.document import DATASETS
from lumos.snapshots.format.encodings import EXTENSIONS
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.reader import EntryRecord, OpenSnapshot, open_snapshot
from lumos.store import Store
from lumos.store.errors import UnknownDataset
from lumos.store.history import RecordedSchemaVersion

_HEAD_BYTES: Final = 65_536
_SNAPSHOT_MARKER: Final = b"lumos"
_COMPRESSED_SUFFIX: Final = ".zst"


class SnapshotFile(NamedTuple):
    """A snapshot as one side of a comparison."""

    file: Path


def find_snapshot(path: Path) -> SnapshotFile | None:
    """The snapshot at a path, or None if there is none."""
    if not is_likely_snapshot(path):
        return None
    try:
        with open_snapshot(path):
            return SnapshotFile(path)
    except SnapshotError:
        return None


def is_likely_snapshot(path: Path) -> bool:
    """Whether a file looks like a snapshot; data files may have similar names."""
    name = path.name.lower()
    if not name.endswith(EXTENSIONS) or not path.exists():
        return False
    if name.endswith(_COMPRESSED_SUFFIX) or path.is_dir():
        return True
    with path.open("rb") as file:
        return _SNAPSHOT_MARKER in file.read(_HEAD_BYTES)


def read_snapshot_schemas(
    before: SnapshotFile, after: SnapshotFile
) -> tuple[dict[str, DatasetSchema], dict[str, DatasetSchema]]:
    """The schemas that differ between two snapshots, by URN; equal entries are not decoded.

    If a snapshot only contains a part of the datasets, datasets that it lacks are not returned.
    """
    old: dict[str, DatasetSchema] = {}
    new: dict[str, DatasetSchema] = {}
    with open_snapshot(before.file) as first, open_snapshot(after.file) as second:
        is_complete = (
            not is_part(first.header, of=second.header),
            not is_part(second.header, of=first.header),
        )
        for old_record, new_record in _paired_records(first, second):
            sides = _schema_in_snapshot(first, old_record), _schema_in_snapshot(second, new_record)
            for side, other, schemas, is_other_complete in zip(
                sides, sides[::-1], (old, new), is_complete[::-1], strict=True
            ):
                if side is not None and (other is not None or is_other_complete):
                    schemas[side.urn] = side
    return old, new


def _paired_records(
    before: OpenSnapshot, after: OpenSnapshot
) -> Iterator[tuple[EntryRecord | None, EntryRecord | None]]:
    old_records, new_records = before.records(DATASETS), after.records(DATASETS)
    old_record, new_record = next(old_records, None), next(new_records, None)
    while old_record is not None or new_record is not None:
        if new_record is None or (old_record is not None and old_record.key < new_record.key):
            yield old_record, None
            old_record = next(old_records, None)
        elif old_record is None or new_record.key < old_record.key:
            yield None, new_record
            new_record = next(new_records, None)
        else:
            if old_record.body != new_record.body:
                yield old_record, new_record
            old_record, new_record = next(old_records, None), next(new_records, None)


def _schema_in_snapshot(snapshot: OpenSnapshot, record: EntryRecord | None) -> DatasetSchema | None:
    if record is None:
        return None
    entry: CatalogEntry = snapshot.entry(DATASETS, record)
    if entry.deleted:
        return None
    return DatasetSchema(
        urn=entry.urn,
        schema=entry.schema or Schema(),
        version=entry.versioning.schema_version if entry.versioning else None,
        format=entry.format,
    )


# A schema, a folder of schemas, or a snapshot.
DiffSide: TypeAlias = DatasetSchema | Path | SnapshotFile

_SEMVER: Final = re.compile(r"\d+\.\d+\.\d+\Z", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?\Z", re.ASCII)


class SchemaHistory:
    """Reads the current and earlier schemas of datasets from a store."""

    def __init__(self, store: Store, *, now: datetime) -> None:
        self._store = store
        self._now = now

    def schema(self, text: str) -> DatasetSchema:
        """The current schema of `NAME`, or the earlier one of `NAME@VERSION` or `NAME@DATE`."""
        name, _, version = text.rpartition("@")
        try:
            return _to_current_schema(self.find(text))
        except UnknownDataset:
            # Names may contain an `@`, so a version is only tried if there is no such dataset.
            if not name or "/" in version:
                raise
        return self.at_version(self.find(name), version)

    def find(self, name: str) -> Dataset:
        """A dataset by its URN or a unique name."""
        return self._store.get(find_urn(self._store, name))

    def at_version(self, dataset: Dataset, version: str) -> DatasetSchema:
        """The schema of a dataset at a schema version, at a cloud version, or on a date.

        The cloud version counts all changes of the dataset, not only those of its schema.
        """
        versions = self._store.schemas.versions(dataset.urn)
        if _SEMVER.match(version):
            recorded = next((each for each in versions if each.record.version == version), None)
        elif _DATE.match(version):
            recorded = self.as_of(dataset, version)
        else:
            cloud_versions = schema_versions_of(self._store, self._store.known_dataset(dataset.urn))
            schema_version = cloud_versions.get(version)
            recorded = next(
                (each for each in versions if each.record.version == schema_version), None
            )
            if recorded is None and version[-1:].isdigit():
                raise UnknownVersion(dataset.urn, version, cloud_versions)
        if recorded is None:
            raise UnknownVersion(dataset.urn, version, _known_versions(versions))
        return DatasetSchema(
            urn=dataset.urn,
            schema=recorded.record.schema,
            version=recorded.record.version,
            format=dataset.format,
        )

    def as_of(self, dataset: Dataset, when: str) -> RecordedSchemaVersion:
        """The schema version at a time; a date means the end of that day."""
        at = parse_time(when, now=self._now, end=True)
        versions = self._store.schemas.versions(dataset.urn)
        earlier = [version for version in versions if version.record.recorded_at <= at]
        if not earlier:
            first = versions[0].record.recorded_at if versions else None
            reason = f"it was first seen on {first:%Y-%m-%d %H:%M:%S} UTC" if first else ""
            raise UnknownVersion(dataset.urn, when, _known_versions(versions), reason=reason)
        return earlier[-1]


def read_side(text: str) -> DiffSide | None:
    """Read the schema file, folder of schema files or snapshot at a path; None if there is none."""
    path = Path(text)
    if (snapshot := find_snapshot(path)) is not None:
        return snapshot
    if path.is_dir():
        return path if has_schema_files(path) else None
    if not text.endswith(SCHEMA_SUFFIX) or text.startswith(SCHEME):
        return None
    if not path.exists():
        raise MisuseError(
            f"There is no file {path}. Write the schemas of the store with: lumos schema export DIR"
        )
    return read_file(path)


def check_not_a_file(text: str) -> None:
    """Raise an error if `text` is the path of a file or folder: neither can be compared."""
    path = Path(text)
    if path.is_dir():
        raise NotComparable(
            f"The folder {path} contains no file that ends in {SCHEMA_SUFFIX}. "
            f"Write some with: lumos schema export {path}"
        )
    if is_likely_snapshot(path):
        # Opening it raises an error with the reason and the position.
        open_snapshot(path)
    if path.exists():
        raise NotComparable(
            f"{path} is neither a schema file (*{SCHEMA_SUFFIX}) nor a snapshot. To compare a"
            f" dataset with a schema in another form: lumos schema predict DATASET {path}"
        )


def _to_current_schema(dataset: Dataset) -> DatasetSchema:
    versioning = dataset.versioning
    return DatasetSchema(
        urn=dataset.urn,
        schema=dataset.schema or Schema(),
        version=versioning.schema_version if versioning else None,
        format=dataset.format,
    )


def _known_versions(versions: Sequence[RecordedSchemaVersion]) -> list[str]:
    return [each.record.version for each in versions]


_MAX_LISTED = 12


class UnknownVersion(MisuseError):
    """The dataset has no schema for a version or date."""

    def __init__(
        self, dataset: str, version: str, known: Iterable[str], *, reason: str = ""
    ) -> None:
        self.version = version
        self.known = tuple(known)
        listed = ", ".join(self.known[-_MAX_LISTED:])
        earlier = len(self.known) - _MAX_LISTED
        more = f" (and {earlier} earlier)" if earlier > 0 else ""
        explanation = f": {reason}" if reason else ""
        super().__init__(
            f"{dataset} has no version '{version}'{explanation}. Its versions: {listed}{more}."
            f"{did_you_mean(version, self.known)}"
        )


class NotComparable(MisuseError):
    """The two inputs cannot be compared."""
