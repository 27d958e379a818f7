"""The inputs of `lumos schema diff`: files, folders, snapshots, and datasets at some time."""

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
from lumos.snapshots.format.encodings import ENDINGS
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.reader import EntryRecord, OpenSnapshot, open_snapshot
from lumos.store import Store
from lumos.store.errors import UnknownDataset
from lumos.store.history import RecordedSchemaVersion

_HEAD_BYTES: Final = 65_536
_SNAPSHOT_MARK: Final = b"lumos"
_COMPRESSED: Final = ".zst"
_FOLDER: Final = ".parquet"


class SnapshotFile(NamedTuple):
    """A snapshot as one side of a comparison."""

    file: Path


def find_snapshot(path: Path) -> SnapshotFile | None:
    """The snapshot at a path, or None if there is something else."""
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
    if not name.endswith(ENDINGS) or not path.exists():
        return False
    if name.endswith(_COMPRESSED) or path.is_dir():
        return True
    with path.open("rb") as file:
        return _SNAPSHOT_MARK in file.read(_HEAD_BYTES)


def read_snapshot_schemas(
    before: SnapshotFile, after: SnapshotFile
) -> tuple[dict[str, DatasetSchema], dict[str, DatasetSchema]]:
    """The schemas that differ between two snapshots, by URN; equal entries are not decoded.

    If one snapshot covers only a part of the other, datasets outside of that part are left out.
    """
    old: dict[str, DatasetSchema] = {}
    new: dict[str, DatasetSchema] = {}
    with open_snapshot(before.file) as first, open_snapshot(after.file) as second:
        is_whole = (
            not is_part(first.header, of=second.header),
            not is_part(second.header, of=first.header),
        )
        for before_schema, now in _paired(first, second):
            sides = _schema_in_snapshot(first, before_schema), _schema_in_snapshot(second, now)
            for side, other, found, may_lack in zip(
                sides, sides[::-1], (old, new), is_whole[::-1], strict=True
            ):
                if side is not None and (other is not None or may_lack):
                    found[side.urn] = side
    return old, new


def _paired(
    before: OpenSnapshot, after: OpenSnapshot
) -> Iterator[tuple[EntryRecord | None, EntryRecord | None]]:
    old, new = before.records(DATASETS), after.records(DATASETS)
    before_schema, now = next(old, None), next(new, None)
    while before_schema is not None or now is not None:
        if now is None or (before_schema is not None and before_schema.key < now.key):
            yield before_schema, None
            before_schema = next(old, None)
        elif before_schema is None or now.key < before_schema.key:
            yield None, now
            now = next(new, None)
        else:
            if before_schema.body != now.body:
                yield before_schema, now
            before_schema, now = next(old, None), next(new, None)


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
    """The schemas of the datasets in a store, now and at earlier times."""

    def __init__(self, store: Store, *, now: datetime) -> None:
        self._store = store
        self._now = now

    def schema(self, text: str) -> DatasetSchema:
        """A dataset's schema now or, as `NAME@VERSION` or `NAME@DATE`, at an earlier time."""
        name, _, version = text.rpartition("@")
        try:
            return _current_schema(self.find(text))
        except UnknownDataset:
            # Tried only now because names may contain an `@` themselves.
            if not name or "/" in version:
                raise
        return self.at_version(self.find(name), version)

    def find(self, name: str) -> Dataset:
        """A dataset by its URN or a unique name."""
        return self._store.get(find_urn(self._store, name))

    def at_version(self, dataset: Dataset, version: str) -> DatasetSchema:
        """The dataset as it was at a schema version, at a cloud version or on a date."""
        versions = self._store.schemas.versions(dataset.urn)
        if _SEMVER.match(version):
            found = next((each for each in versions if each.record.version == version), None)
        elif _DATE.match(version):
            found = self.as_of(dataset, version)
        else:
            cloud_versions = schema_versions_of(self._store, self._store.known_dataset(dataset.urn))
            begun = cloud_versions.get(version)
            found = next((each for each in versions if each.record.version == begun), None)
            if found is None and version[-1:].isdigit():
                raise UnknownVersion(dataset.urn, version, cloud_versions)
        if found is None:
            raise UnknownVersion(dataset.urn, version, _known_versions(versions))
        return DatasetSchema(
            urn=dataset.urn,
            schema=found.record.schema,
            version=found.record.version,
            format=dataset.format,
        )

    def as_of(self, dataset: Dataset, when: str) -> RecordedSchemaVersion:
        """The version at a time; a date means the end of that day."""
        at = parse_time(when, now=self._now, end=True)
        versions = self._store.schemas.versions(dataset.urn)
        in_force = [version for version in versions if version.record.recorded_at <= at]
        if not in_force:
            first = versions[0].record.recorded_at if versions else None
            why = f"it was first seen on {first:%Y-%m-%d %H:%M:%S} UTC" if first else ""
            raise UnknownVersion(dataset.urn, when, _known_versions(versions), why=why)
        return in_force[-1]


def read_side(text: str) -> DiffSide | None:
    """The side that is a schema file, a folder of them or a snapshot, else None."""
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
    """Raises the reason why a file or folder that exists cannot be compared."""
    path = Path(text)
    if path.is_dir():
        raise NotComparable(
            f"The folder {path} contains no file that ends in {SCHEMA_SUFFIX}. "
            f"Write some with: lumos schema export {path}"
        )
    if is_likely_snapshot(path):
        # Raises what is wrong with it, and where.
        open_snapshot(path)
    if path.exists():
        raise NotComparable(
            f"{path} is neither a schema file (*{SCHEMA_SUFFIX}) nor a snapshot. To compare a"
            f" dataset with a schema in another form: lumos schema predict DATASET {path}"
        )


def _current_schema(dataset: Dataset) -> DatasetSchema:
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
    """A version or a date for which a dataset has no schema."""

    def __init__(self, dataset: str, version: str, known: Iterable[str], *, why: str = "") -> None:
        self.version = version
        self.known = tuple(known)
        listed = ", ".join(self.known[-_MAX_LISTED:])
        earlier = len(self.known) - _MAX_LISTED
        more = f" (and {earlier} earlier)" if earlier > 0 else ""
        reason = f": {why}" if why else ""
        super().__init__(
            f"{dataset} has no version '{version}'{reason}. Its versions: {listed}{more}."
            f"{did_you_mean(version, self.known)}"
        )


class NotComparable(MisuseError):
    """Two inputs that cannot be compared."""
