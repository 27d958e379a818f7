"""Folders of tables for the tests of their readers: files in memory, and files on a local disk."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lumos.formats.tables.interface import FileEntry


class _Folder:
    """What both have in common: how addresses are told apart, and what was asked for."""

    def __init__(self, root: str) -> None:
        self.root = root
        # What a reader looked at, in order, so that tests can tell how little that was.
        self.listed: list[str] = []
        self.opened: list[str] = []

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        for path in paths:
            try:
                yield self.read(path)
            except OSError as problem:
                yield problem

    def read(self, path: str) -> bytes:
        raise NotImplementedError

    def inside(self, uri: str, location: str) -> str | None:
        place = _plain(uri)
        for root in (_plain(location), _plain(self.root)):
            below = root.rstrip("/") + "/"
            if root and place.startswith(below):
                return place.removeprefix(below)
        return None


class MemoryFolder(_Folder):
    """A table whose files are the values of a dict; a missing folder is an empty one, as in S3."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        root: str = "s3://lake/table",
        modified: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(root)
        self.files = files
        self._modified = modified or {}

    def entries(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        self.listed.append(folder)
        below = f"{folder}/" if folder else ""
        for path in sorted(self.files):
            name = path.removeprefix(below)
            if path.startswith(below) and "/" not in name and name > after:
                yield self._entry(path, name)

    def below(self) -> Iterator[FileEntry]:
        self.listed.append("**")
        for path in sorted(self.files):
            if not _is_hidden(path):
                yield self._entry(path, path)

    def read(self, path: str) -> bytes:
        self.opened.append(path)
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def _entry(self, path: str, name: str) -> FileEntry:
        data = self.files[path]
        return FileEntry(name, len(data), self._modified.get(path, 0), f"{hash(data):x}")


class LocalFolder(_Folder):
    """A table on disk, as a judge wrote it; there are no ETags, and a missing folder is none."""

    def __init__(self, root: Path | str) -> None:
        super().__init__(str(root))

    def entries(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        self.listed.append(folder)
        place = Path(self.root, folder)
        names = sorted(os.listdir(place)) if place.is_dir() else ()
        for name in names:
            if name > after and (place / name).is_file():
                yield _local_entry(place / name, name)

    def below(self) -> Iterator[FileEntry]:
        self.listed.append("**")
        root = Path(self.root)
        for path in sorted(each for each in root.rglob("*") if each.is_file()):
            name = path.relative_to(root).as_posix()
            if not _is_hidden(name):
                yield _local_entry(path, name)

    def read(self, path: str) -> bytes:
        self.opened.append(path)
        return Path(self.root, path).read_bytes()


def _local_entry(path: Path, name: str) -> FileEntry:
    stat = path.stat()
    return FileEntry(name, stat.st_size, stat.st_mtime_ns // 1000, "")


def _is_hidden(path: str) -> bool:
    folders = path.split("/")[:-1]
    return any(part.startswith((".", "_")) and "=" not in part for part in folders)


def _plain(uri: str) -> str:
    """An address without what is spelled in several ways."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return unquote(parts.path) if parts.scheme else uri
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}{parts.path}"
