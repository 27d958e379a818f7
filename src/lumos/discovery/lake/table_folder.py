"""The folder of a table in any storage, for the readers of table formats."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from lumos.discovery.lake.table_paths import TablePaths, without_dot_segments
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.iceberg.metadata import find_table_location
from lumos.formats.tables.interface import FileEntry
from lumos.storage import FileStorage, ListedFile, LocalStorage
from lumos.storage.table_roots import LOG_FOLDERS, METADATA_FOLDER
from lumos.storage.uris import canonical

# Log files are read into memory, and one commit may add a million data files.
MAX_FILE_BYTES: Final = 1024**3
# Longer listings are not cached.
_MAX_CACHED_ENTRIES: Final = 50_000


class StoredTableFolder:
    """A table's root in any storage, without the folder `excluded_uri`.

    Nothing outside of the folder `scanned`, by default the table's root, is listed or opened.
    Listings are cached, so that the signature of a table and its facts come from the same listing.
    """

    def __init__(
        self, storage: FileStorage, root: str, *, scanned: str = "", excluded_uri: str = ""
    ) -> None:
        self.root = root
        self._paths = TablePaths(root, (scanned or root,))
        self._storage = storage
        self._prefix = f"{root.rstrip('/')}/"
        self._excluded_prefix = f"{excluded_uri.rstrip('/')}/" if excluded_uri else ""
        self._listings: dict[str, list[FileEntry]] = {}
        self._sizes: dict[str, int] = {}

    def entries(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        if (listing := self._listings.get(folder)) is not None:
            yield from (entry for entry in listing if entry.name > after)
            return
        path = self._paths.resolve(self._prefix + folder if folder else self.root)
        cached: list[FileEntry] = []
        for listed in self._storage.entries(path, after=after):
            entry = self._entry(listed)
            yield entry
            if len(cached) <= _MAX_CACHED_ENTRIES:
                cached.append(entry)
        if not after and len(cached) <= _MAX_CACHED_ENTRIES:
            self._listings[folder] = cached

    def below(self) -> Iterator[FileEntry]:
        for listed in self._storage.entries(self.root, deep=True, excluded_folders=LOG_FOLDERS):
            name = listed.path[len(self._prefix) :]
            if isinstance(self._storage, LocalStorage):
                # A local file may be a symbolic link; this raises an error if it leads outside.
                self._paths.resolve(listed.path)
            if not self._excluded_prefix or not listed.path.startswith(self._excluded_prefix):
                yield FileEntry(name, listed.size, listed.modified, listed.etag)

    def read(self, path: str) -> bytes:
        location = self._paths.resolve(self._path(path))
        return self._storage.read_within(location, MAX_FILE_BYTES)

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        locations = [self._paths.resolve(self._path(path)) for path in paths]
        yield from self._storage.read_many(locations, max_bytes=MAX_FILE_BYTES, sizes=self._sizes)

    def inside(self, uri: str, location: str) -> str | None:
        """The path of a URI relative to the table's folder or `location`; None if it is outside."""
        target = canonical(uri, self.root)
        for root in (canonical(location, self.root), self.root):
            if root and (path := _relative_to(target, root)) is not None:
                return path
        return None

    def _path(self, path: str) -> str:
        return self._prefix + path

    def _entry(self, listed: ListedFile) -> FileEntry:
        if len(self._sizes) < _MAX_CACHED_ENTRIES:
            self._sizes[listed.path] = listed.size
        name = listed.path.rpartition("/")[2]
        return FileEntry(name, listed.size, listed.modified, listed.etag)


class SeparateMetadataFolder(StoredTableFolder):
    """The root of an Iceberg table whose metadata folder, `log`, is outside of the root.

    When a table is configured to write its metadata elsewhere, older files stay in the usual
    folder, so both folders are listed as one. `log_uri` and `location` are the addresses of the
    metadata folder and of the root as written in the table's metadata. If only the metadata folder
    is accessible, it is also used as the root.
    """

    def __init__(
        self,
        storage: FileStorage,
        root: str,
        log: str,
        *,
        log_uri: str = "",
        location: str = "",
        scanned: str = "",
        excluded_uri: str = "",
    ) -> None:
        super().__init__(storage, root, scanned=scanned, excluded_uri=excluded_uri)
        self.log = log
        self._log_uri = log_uri
        self._location = location

    def entries(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        if folder != METADATA_FOLDER:
            yield from super().entries(folder, after=after)
            return
        entries = {each.name: each for each in super().entries(METADATA_FOLDER)} | self._log_entries
        yield from (each for each in sorted(entries.values()) if each.name > after)

    def inside(self, uri: str, location: str) -> str | None:
        is_root_accessible = self.root != self.log
        if (
            is_root_accessible
            and (path := super().inside(uri, self._location or location)) is not None
        ):
            return path
        target = canonical(uri, self.root)
        for log in filter(None, (self._log_uri, self.log)):
            if (path := _relative_to(target, log)) is not None:
                return f"{METADATA_FOLDER}/{path}" if is_root_accessible else path
        return None

    def _path(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        is_in_log = folder == METADATA_FOLDER and name in self._log_entries
        return f"{self.log}/{name}" if is_in_log else super()._path(path)

    @cached_property
    def _log_entries(self) -> dict[str, FileEntry]:
        return {
            entry.name: entry
            for listed in self._storage.entries(self._paths.resolve(self.log))
            if (entry := self._entry(listed)).name
        }


def open_table_folder(
    storage: FileStorage, root: str, log: str, *, scanned: str, excluded_uri: str = ""
) -> StoredTableFolder:
    """The folder of a table; `log` is its metadata folder if that lies elsewhere."""
    if log:
        return SeparateMetadataFolder(
            storage, root, log, scanned=scanned, excluded_uri=excluded_uri
        )
    return StoredTableFolder(storage, root, scanned=scanned, excluded_uri=excluded_uri)


def locate_table(
    storage: FileStorage, log: str, *, scanned: str, excluded_uri: str = ""
) -> SeparateMetadataFolder:
    """The folder of the table whose metadata is in `log`; raises UnreadableFile.

    The metadata contains the location of the table. If the lake was moved or copied since, the
    table is expected at the same path relative to its metadata.
    """
    metadata_location = find_table_location(
        SeparateMetadataFolder(storage, log, log, scanned=scanned)
    )
    log_uri = canonical(metadata_location.metadata, log).rstrip("/")
    location = canonical(metadata_location.location, log).rstrip("/")
    root = without_dot_segments(_relocate(location, log_uri, log))
    if root != log and _relative_to(root, log) is not None:
        raise UnreadableFile(
            "stray_metadata",
            "This folder contains the Iceberg metadata of a table in its own subfolder "
            f"{root}. The table is not read; its files are treated like files outside of tables",
        )
    if root != scanned.rstrip("/") and _relative_to(root, scanned) is None:
        root = log
    return SeparateMetadataFolder(
        storage,
        root,
        log,
        log_uri=log_uri,
        location=location,
        scanned=scanned,
        excluded_uri=excluded_uri,
    )


def _relocate(location: str, log_uri: str, log: str) -> str:
    """The current address of `location` if the metadata was moved from `log_uri` to `log`."""
    old_parts, new_parts = log_uri.split("/"), log.split("/")
    while old_parts and new_parts and old_parts[-1] == new_parts[-1]:
        old_parts.pop()
        new_parts.pop()
    if (path := _relative_to(location, "/".join(old_parts))) is None:
        return location
    return f"{'/'.join(new_parts)}/{path}"


def _relative_to(location: str, folder: str) -> str | None:
    prefix = f"{folder.rstrip('/')}/"
    return location.removeprefix(prefix) if location.startswith(prefix) else None
