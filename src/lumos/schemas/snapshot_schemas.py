"""The schemas of two portable snapshots, as far as their entries differ."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from lumos.model.catalog import CatalogEntry
from lumos.model.schema import Schema
from lumos.schemas.files import Described
from lumos.snapshots.format.comparison import is_part
from lumos.snapshots.format.document import DATASETS
from lumos.snapshots.format.encodings import ENDINGS
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.reader import Record, Snapshot, open_snapshot

_GLANCE: Final = 65_536
_MARK: Final = b"lumos"
_PACKED: Final = ".zst"
_FOLDER: Final = ".parquet"


class Estate(NamedTuple):
    """A snapshot as one side of a comparison."""

    file: Path


def estate_in(path: Path) -> Estate | None:
    """The snapshot at a path, or nothing where something else is there."""
    if not may_be_snapshot(path):
        return None
    try:
        with open_snapshot(path):
            return Estate(path)
    except SnapshotError:
        return None


def may_be_snapshot(path: Path) -> bool:
    """Whether a file looks like a snapshot at a glance; data may be called like one."""
    name = path.name.lower()
    if not name.endswith(ENDINGS) or not path.exists():
        return False
    if name.endswith(_PACKED) or path.is_dir():
        return True
    with path.open("rb") as file:
        return _MARK in file.read(_GLANCE)


def read_estates(
    before: Estate, after: Estate
) -> tuple[dict[str, Described], dict[str, Described]]:
    """What differs between two snapshots, by URN; entries that are the same are not decoded.

    What a part of an estate does not speak of is left out of the other one, too.
    """
    old: dict[str, Described] = {}
    new: dict[str, Described] = {}
    with open_snapshot(before.file) as first, open_snapshot(after.file) as second:
        is_whole = (
            not is_part(first.header, of=second.header),
            not is_part(second.header, of=first.header),
        )
        for was, now in _paired(first, second):
            sides = _described(first, was), _described(second, now)
            for side, other, found, may_lack in zip(
                sides, sides[::-1], (old, new), is_whole[::-1], strict=True
            ):
                if side is not None and (other is not None or may_lack):
                    found[side.urn] = side
    return old, new


def _paired(before: Snapshot, after: Snapshot) -> Iterator[tuple[Record | None, Record | None]]:
    old, new = before.records(DATASETS), after.records(DATASETS)
    was, now = next(old, None), next(new, None)
    while was is not None or now is not None:
        if now is None or (was is not None and was.key < now.key):
            yield was, None
            was = next(old, None)
        elif was is None or now.key < was.key:
            yield None, now
            now = next(new, None)
        else:
            if was.body != now.body:
                yield was, now
            was, now = next(old, None), next(new, None)


def _described(snapshot: Snapshot, record: Record | None) -> Described | None:
    if record is None:
        return None
    entry: CatalogEntry = snapshot.entry(DATASETS, record)
    if entry.deleted:
        return None
    return Described(
        urn=entry.urn,
        schema=entry.schema or Schema(),
        version=entry.versioning.schema_version if entry.versioning else None,
        format=entry.format,
    )
