"""What somebody means by one side of a comparison: a file, a folder, or a dataset at some time."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from lumos.engine.schemas.errors import NotComparable, UnknownVersion
from lumos.engine.schemas.files import ENDING, Described, has_files, read_file
from lumos.errors import MisuseError
from lumos.model.dataset import Dataset
from lumos.model.moment import moment
from lumos.model.schema import Schema
from lumos.model.urn import SCHEME
from lumos.model.version import CloudVersion
from lumos.store import Store
from lumos.store.archive import Version
from lumos.store.errors import UnknownDataset

# A schema, or a folder of them.
Side: TypeAlias = Described | Path

_SEMVER: Final = re.compile(r"\d+\.\d+\.\d+\Z", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?\Z", re.ASCII)
_SNAPSHOTS: Final = (".json", ".jsonl", ".yaml", ".yml", ".zst")


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
        return self._store.get(self._store.find(name))

    def at_version(self, dataset: Dataset, version: str) -> Described:
        """The dataset as it was at a schema version, at a cloud version or on a date."""
        versions = self._store.archive.versions(dataset.urn)
        if _SEMVER.match(version):
            found = next((each for each in versions if each.record.version == version), None)
        elif _DATE.match(version):
            found = self.as_of(dataset, version)
        else:
            found = _at_cloud_version(dataset, versions, version)
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
        at = moment(when, now=self._now, end=True)
        versions = self._store.archive.versions(dataset.urn)
        in_force = [version for version in versions if version.record.recorded_at <= at]
        if not in_force:
            first = versions[0].record.recorded_at if versions else None
            why = f"it was first seen on {first:%Y-%m-%d %H:%M:%S} UTC" if first else ""
            raise UnknownVersion(dataset.urn, when, _known_versions(versions), why=why)
        return in_force[-1]


def side_in_files(text: str) -> Side | None:
    """The side that is a schema file or a folder of them, or nothing for what is neither."""
    path = Path(text)
    if path.is_dir() and has_files(path):
        return path
    if not text.endswith(ENDING) or text.startswith(SCHEME):
        return None
    if not path.exists():
        raise MisuseError(f"There is no file {path}.")
    return read_file(path)


def refuse_file(text: str) -> None:
    """Says why a file or folder that is no dataset's name either cannot be compared."""
    path = Path(text)
    if path.is_dir():
        raise NotComparable(
            f"The folder {path} holds no file that ends in {ENDING}. "
            f"Write some with: lumos schema export {path}"
        )
    if path.name.lower().endswith(_SNAPSHOTS) and path.exists():
        raise NotComparable(
            f"{path}: snapshots cannot be compared yet. Compare folders that "
            "'lumos schema export' wrote, or check a proposed schema with: "
            f"lumos schema predict NAME {path}"
        )
    if path.exists():
        raise NotComparable(
            f"{path} is no schema in text form (a name that ends in {ENDING}). To compare a "
            f"dataset with a schema in another form: lumos schema predict NAME {path}"
        )


def _described(dataset: Dataset) -> Described:
    versioning = dataset.versioning
    return Described(
        urn=dataset.urn,
        schema=dataset.schema or Schema(),
        version=versioning.schema_version if versioning else None,
        format=dataset.format,
    )


def _at_cloud_version(
    dataset: Dataset, versions: Sequence[Version], version: str
) -> Version | None:
    """The version that was in force at a cloud version that the dataset really had."""
    present = [dataset.versioning.cloud_version] if dataset.versioning else []
    known = [CloudVersion.parse(text) for text in (*map(_cloud_version, versions), *present)]
    wanted = CloudVersion.parse(version) if version[-1:].isdigit() else None
    if wanted is None or wanted.prefix not in {each.prefix for each in known}:
        return None
    if wanted.number > max(each.number for each in known):
        return None
    begun = zip(versions, known, strict=False)
    in_force = [each for each, cloud in begun if cloud.number <= wanted.number]
    return in_force[-1] if in_force else None


def _cloud_version(version: Version) -> str:
    return version.record.cloud_version


def _known_versions(versions: Sequence[Version]) -> list[str]:
    return [each.record.version for each in versions]
