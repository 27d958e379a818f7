"""The files in the locations of tables, as the last scans of storage listed them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from lumos.discovery.lake.manifest import ScanManifest
from lumos.discovery.lake.parts import DataFileEntry, read_files
from lumos.storage import StorageAccess


class TableLocation(NamedTuple):
    """A table, its location, its partition keys, and the locations of its partitions."""

    path: str
    location: str
    keys: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()


class TableContents:
    """The files of one table."""

    def __init__(self) -> None:
        self.files = 0
        self.bytes = 0
        self.rows: int | None = 0
        self.formats: Counter[str] = Counter()
        # The locations of registered partitions with files.
        self.partitions_with_files: set[str] = set()
        # Folders that look like partitions of the table, and the number of their files.
        self.files_by_unregistered_folder: Counter[str] = Counter()
        self.outside_partitions = 0
        self._newest = (-1, "")

    def add(self, file: DataFileEntry) -> None:
        """Count a file."""
        self.files += 1
        self.bytes += max(file.size, 0)
        are_rows_known = self.rows is not None and file.row_count is not None
        self.rows = (self.rows or 0) + (file.row_count or 0) if are_rows_known else None
        self.formats[file.format] += 1
        self._newest = max(self._newest, (file.modified, file.schema_fingerprint))

    @property
    def schema_fingerprint(self) -> str:
        """The fingerprint of the schema of the newest file; empty without files."""
        return self._newest[1]


class _Owners(NamedTuple):
    """The tables that a folder belongs to, and its partition in them.

    `unregistered` is the folder of a partition that is not registered.
    """

    tables: tuple[str, ...]
    partition: str | None = None
    unregistered: str | None = None


def read_contents(
    tables: Sequence[TableLocation],
    manifests: Iterable[ScanManifest],
    *,
    state_access: StorageAccess,
) -> dict[str, TableContents]:
    """The files of each table by its path; a file belongs to the innermost location."""
    index = _LocationIndex(tables)
    contents = {table.path: TableContents() for table in tables}
    for manifest in manifests:
        for part in manifest.parts:
            if not index.overlaps(part.first, part.last):
                continue
            for file in read_files(part.path, access=state_access):
                owners = index.owners(file.path.rpartition("/")[0])
                if owners is not None:
                    _add(contents, owners, file, index.keys)
    return contents


def _add(
    contents: Mapping[str, TableContents],
    owners: _Owners,
    file: DataFileEntry,
    keys: Mapping[str, tuple[str, ...]],
) -> None:
    for path in owners.tables:
        table = contents[path]
        table.add(file)
        if owners.partition is not None:
            table.partitions_with_files.add(owners.partition)
        elif owners.unregistered is not None:
            table.files_by_unregistered_folder[owners.unregistered] += 1
        elif keys[path]:
            table.outside_partitions += 1


class _LocationIndex:
    """Finds the tables that a folder belongs to."""

    def __init__(self, tables: Sequence[TableLocation]) -> None:
        self.keys = {table.path: table.keys for table in tables}
        self._tables: dict[str, list[str]] = {}
        self._partitions: dict[str, list[str]] = {}
        for table in tables:
            self._tables.setdefault(table.location, []).append(table.path)
            for location in table.partitions:
                self._partitions.setdefault(location, []).append(table.path)
        self._sorted = sorted({*self._tables, *self._partitions})
        self.owners = lru_cache(maxsize=4096)(self._owners)

    def overlaps(self, first: str, last: str) -> bool:
        """Whether a range of paths may contain files in one of the locations."""
        position = bisect_left(self._sorted, first)
        if position < len(self._sorted) and self._sorted[position] <= last:
            return True
        # A location that is a parent folder of the first path.
        return any(
            folder in self._tables or folder in self._partitions for folder in parent_folders(first)
        )

    def _owners(self, folder: str) -> _Owners | None:
        for current in (folder, *parent_folders(folder)):
            if current in self._partitions:
                return _Owners(tuple(self._partitions[current]), partition=current)
            if current in self._tables:
                tables = tuple(self._tables[current])
                return _Owners(tables, unregistered=self._partition_folder(tables, current, folder))
        return None

    def _partition_folder(self, tables: Sequence[str], location: str, folder: str) -> str | None:
        """The part of a folder's path that would be a partition of one of the tables."""
        names = folder[len(location) + 1 :].split("/")
        for keys in filter(None, (self.keys[table] for table in tables)):
            pairs = list(zip(keys, names, strict=False))
            if len(pairs) == len(keys) and all(
                name.lower().startswith(f"{key.lower()}=") for key, name in pairs
            ):
                return f"{location}/{'/'.join(names[: len(keys)])}"
        return None


def parent_folders(folder: str) -> Iterator[str]:
    """The parent folders of a folder, the nearest first."""
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        if folder.endswith(":/") or not folder:
            return
        yield folder
