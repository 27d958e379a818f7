"""The folder that a reader of tables is given: a root in some storage."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from lumos.discovery.table_paths import TablePaths, without_dot_segments
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.iceberg.metadata import find_table_home
from lumos.formats.tables.interface import FileEntry
from lumos.storage import FileStorage, ListedFile, LocalStorage
from lumos.storage.table_roots import LOG_FOLDERS, METADATA_FOLDER
from lumos.storage.uris import canonical

# The log of a table is read file by file, each as a whole. One commit may add a million files.
LONGEST_FILE: Final = 1024**3
# A longer listing is made anew each time, rather than held in memory.
_MOST_KEPT: Final = 50_000


class StoredFolder:
    """A table's root in some storage; what lies in `left_out` is no part of it.

    Nothing outside of the root `scanned` is listed or opened; without one, of the table's own. Its
    folders are as they were when they were listed first, so that a reading and the signature
    before it are of the same table.
    """

    def __init__(
        self, storage: FileStorage, root: str, *, scanned: str = "", left_out: str = ""
    ) -> None:
        self.root = root
        self._paths = TablePaths(root, (scanned or root,))
        self._storage = storage
        self._inside = f"{root.rstrip('/')}/"
        self._left_out = f"{left_out.rstrip('/')}/" if left_out else ""
        self._listings: dict[str, list[FileEntry]] = {}
        self._sizes: dict[str, int] = {}

    def entries(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        if (known := self._listings.get(folder)) is not None:
            yield from (entry for entry in known if entry.name > after)
            return
        path = self._paths.resolve(self._inside + folder if folder else self.root)
        kept: list[FileEntry] = []
        for listed in self._storage.entries(path, after=after):
            entry = self._entry(listed)
            yield entry
            if len(kept) <= _MOST_KEPT:
                kept.append(entry)
        if not after and len(kept) <= _MOST_KEPT:
            self._listings[folder] = kept

    def below(self) -> Iterator[FileEntry]:
        for listed in self._storage.entries(self.root, deep=True, without=LOG_FOLDERS):
            name = listed.path[len(self._inside) :]
            if isinstance(self._storage, LocalStorage):
                # A file may be a link; object stores have none, and what they list is inside.
                self._paths.resolve(listed.path)
            if not self._left_out or not listed.path.startswith(self._left_out):
                yield FileEntry(name, listed.size, listed.modified, listed.etag)

    def read(self, path: str) -> bytes:
        place = self._paths.resolve(self._path(path))
        return self._storage.read_within(place, LONGEST_FILE)

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        places = [self._paths.resolve(self._path(path)) for path in paths]
        yield from self._storage.read_many(places, longest=LONGEST_FILE, sizes=self._sizes)

    def inside(self, uri: str, location: str) -> str | None:
        place = canonical(uri, self.root)
        for root in (canonical(location, self.root), self.root):
            if root and (path := _below(place, root)) is not None:
                return path
        return None

    def _path(self, path: str) -> str:
        return self._inside + path

    def _entry(self, listed: ListedFile) -> FileEntry:
        if len(self._sizes) < _MOST_KEPT:
            self._sizes[listed.path] = listed.size
        name = listed.path.rpartition("/")[2]
        return FileEntry(name, listed.size, listed.modified, listed.etag)


class ApartFolder(StoredFolder):
    """The root of a table that has metadata in the folder `log`, whatever that is called.

    Both folders of metadata are shown as one: where a table was told to put it elsewhere later on,
    older files stay where they were. `told` and `location` are what the table calls the log and the
    root. Where only the log can be reached, it is the root as well, and data lies elsewhere.
    """

    def __init__(
        self,
        storage: FileStorage,
        root: str,
        log: str,
        *,
        told: str = "",
        location: str = "",
        scanned: str = "",
        left_out: str = "",
    ) -> None:
        super().__init__(storage, root, scanned=scanned, left_out=left_out)
        self.log = log
        self._told = told
        self._location = location

    def entries(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        if folder != METADATA_FOLDER:
            yield from super().entries(folder, after=after)
            return
        usual = (each for each in super().entries(METADATA_FOLDER) if each.name not in self._in_log)
        found = sorted([*usual, *self._in_log.values()])
        yield from (each for each in found if each.name > after)

    def inside(self, uri: str, location: str) -> str | None:
        has_data = self.root != self.log
        if has_data and (path := super().inside(uri, self._location or location)) is not None:
            return path
        place = canonical(uri, self.root)
        for log in filter(None, (self._told, self.log)):
            if (path := _below(place, log)) is not None:
                return f"{METADATA_FOLDER}/{path}" if has_data else path
        return None

    def _path(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        in_log = folder == METADATA_FOLDER and name in self._in_log
        return f"{self.log}/{name}" if in_log else super()._path(path)

    @cached_property
    def _in_log(self) -> dict[str, FileEntry]:
        return {
            entry.name: entry
            for listed in self._storage.entries(self._paths.resolve(self.log))
            if (entry := self._entry(listed)).name
        }


def folder_of(
    storage: FileStorage, root: str, log: str, *, scanned: str, left_out: str = ""
) -> StoredFolder:
    """The folder of a table, whose log may be known to lie elsewhere."""
    if log:
        return ApartFolder(storage, root, log, scanned=scanned, left_out=left_out)
    return StoredFolder(storage, root, scanned=scanned, left_out=left_out)


def home_around(storage: FileStorage, log: str, *, scanned: str, left_out: str = "") -> ApartFolder:
    """The folder of the table whose metadata lies in a log; raises UnreadableFile.

    Of a lake that was moved or copied as a whole, the table lies beside its metadata as before.
    """
    home = find_table_home(ApartFolder(storage, log, log, scanned=scanned))
    told = canonical(home.metadata, log).rstrip("/")
    location = canonical(home.location, log).rstrip("/")
    root = without_dot_segments(_moved(location, told, log))
    if root != log and _below(root, log) is not None:
        raise UnreadableFile(
            "stray_metadata",
            f"Metadata of Iceberg lies here, above its table {root}; the table is not read, and "
            "its files are taken for loose ones",
        )
    if root != scanned.rstrip("/") and _below(root, scanned) is None:
        root = log
    return ApartFolder(
        storage,
        root,
        log,
        told=told,
        location=location,
        scanned=scanned,
        left_out=left_out,
    )


def _moved(location: str, told: str, log: str) -> str:
    """Where a location is now, if what the table calls its log is the log."""
    before, now = told.split("/"), log.split("/")
    while before and now and before[-1] == now[-1]:
        before.pop()
        now.pop()
    if (path := _below(location, "/".join(before))) is None:
        return location
    return f"{'/'.join(now)}/{path}"


def _below(place: str, folder: str) -> str | None:
    around = f"{folder.rstrip('/')}/"
    return place.removeprefix(around) if place.startswith(around) else None
