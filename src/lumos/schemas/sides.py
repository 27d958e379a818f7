"""What somebody means by one side of a comparison: a file, a folder, or a dataset at some time."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from lumos.errors import MisuseError
from lumos.model.dataset import Dataset
from lumos.model.schema import Schema
from lumos.model.time_expression import parse_time
from lumos.model.urn import SCHEME
from lumos.schemas.changes import versions_of
from lumos.schemas.errors import NotComparable, UnknownVersion
from lumos.schemas.files import ENDING, Described, has_files, read_file
from lumos.schemas.output import given
from lumos.schemas.snapshot_schemas import Estate, estate_in, may_be_snapshot
from lumos.snapshots.format.reader import open_snapshot
from lumos.store import Store
from lumos.store.archive import Version
from lumos.store.errors import UnknownDataset

# A schema, a folder of them, or a snapshot.
Side: TypeAlias = Described | Path | Estate

_SEMVER: Final = re.compile(r"\d+\.\d+\.\d+\Z", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?\Z", re.ASCII)


class Shelf:
    """The datasets of a store, as they are and as they were."""

    def __init__(self, store: Store, *, now: datetime) -> None:
        self._store = store
        self._now = now

    def dataset(self, text: str) -> Described:
        """A dataset's schema now or, as `NAME@VERSION` or `NAME@DATE`, at an earlier time."""
        name, _, version = text.rpartition("@")
        try:
            return _described(self.known(text))
        except UnknownDataset:
            # The whole may be a name as well: an `@` can stand in one.
            if not name or "/" in version:
                raise
        dataset = self.known(name)
        return self.at_version(dataset, version)

    def known(self, name: str) -> Dataset:
        """A dataset by its URN or by a name that only it has."""
        return self._store.get(self._store.find(given(name, "name of a dataset")))

    def at_version(self, dataset: Dataset, version: str) -> Described:
        """The dataset as it was at a schema version, at a cloud version or on a date."""
        versions = self._store.archive.versions(dataset.urn)
        if _SEMVER.match(version):
            found = next((each for each in versions if each.record.version == version), None)
        elif _DATE.match(version):
            found = self.as_of(dataset, version)
        else:
            cloud_versions = versions_of(self._store, self._store.ledger.known(dataset.urn))
            begun = cloud_versions.get(version)
            found = next((each for each in versions if each.record.version == begun), None)
            if found is None and version[-1:].isdigit():
                raise UnknownVersion(dataset.urn, version, cloud_versions)
        if found is None:
            raise UnknownVersion(dataset.urn, version, _known_versions(versions))
        return Described(
            urn=dataset.urn,
            schema=found.record.schema,
            version=found.record.version,
            format=dataset.format,
        )

    def as_of(self, dataset: Dataset, when: str) -> Version:
        """The version that was in force at a time; a date is meant with its last moment."""
        at = parse_time(when, now=self._now, end=True)
        versions = self._store.archive.versions(dataset.urn)
        in_force = [version for version in versions if version.record.recorded_at <= at]
        if not in_force:
            first = versions[0].record.recorded_at if versions else None
            why = f"it was first seen on {first:%Y-%m-%d %H:%M:%S} UTC" if first else ""
            raise UnknownVersion(dataset.urn, when, _known_versions(versions), why=why)
        return in_force[-1]


def side_in_files(text: str) -> Side | None:
    """The side that is a schema file, a folder of them or a snapshot, or nothing."""
    path = Path(text)
    if (estate := estate_in(path)) is not None:
        return estate
    if path.is_dir():
        return path if has_files(path) else None
    if not text.endswith(ENDING) or text.startswith(SCHEME):
        return None
    if not path.exists():
        raise MisuseError(
            f"There is no file {path}. Write the schemas of the store with: lumos schema export DIR"
        )
    return read_file(path)


def refuse_file(text: str) -> None:
    """Says why a file or folder that is no dataset's name either cannot be compared."""
    path = Path(text)
    if path.is_dir():
        raise NotComparable(
            f"The folder {path} holds no file that ends in {ENDING}. "
            f"Write some with: lumos schema export {path}"
        )
    if may_be_snapshot(path):
        # Says what is wrong with it, and where.
        open_snapshot(path)
    if path.exists():
        raise NotComparable(
            f"{path} is no schema in text form (a name that ends in {ENDING}) and no snapshot. To "
            f"compare a dataset with a schema in another form: lumos schema predict DATASET {path}"
        )


def _described(dataset: Dataset) -> Described:
    versioning = dataset.versioning
    return Described(
        urn=dataset.urn,
        schema=dataset.schema or Schema(),
        version=versioning.schema_version if versioning else None,
        format=dataset.format,
    )


def _known_versions(versions: Sequence[Version]) -> list[str]:
    return [each.record.version for each in versions]
