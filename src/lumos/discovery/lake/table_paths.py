"""Paths of tables: the files that belong to a table, and the paths it may refer to."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from lumos.formats.interface import UnreadableFile
from lumos.storage import KeyRange, ListedFile
from lumos.storage.uris import ADDRESS, absolute

OUTSIDE: Final = "outside_path"
_MAX_SHOWN_LENGTH: Final = 200
_MAX_CACHED_FOLDERS: Final = 1024
# Sorts after every path below a folder.
AFTER_ALL: Final = "\U0010ffff"


class TablePaths:
    """Resolves the paths in a table's logs, properties and manifests.

    Anyone with write access to a lake can write such a file. So a path is resolved, including
    symbolic links, before it is opened, and rejected unless it lies below one of `roots`.
    """

    def __init__(self, root: str, roots: Sequence[str]) -> None:
        self._root = root
        self._roots = roots
        self._real_folder = lru_cache(maxsize=_MAX_CACHED_FOLDERS)(os.path.realpath)
        self._real_roots = [self._resolve_links(each) for each in roots]

    def resolve(self, path: str) -> str:
        """The location of an address or of a path relative to the table's root.

        Raises UnreadableFile if it lies outside of all roots.
        """
        location = without_dot_segments(absolute(path, self._root))
        real = self._resolve_links(location)
        if any(is_below(real, root) for root in self._real_roots):
            return location
        target = "" if real == location else f" (a link to {real[:_MAX_SHOWN_LENGTH]})"
        roots = ", ".join(self._roots)
        raise UnreadableFile(
            OUTSIDE,
            f"Its metadata refers to {location[:_MAX_SHOWN_LENGTH]}{target}, outside of {roots}, "
            "which is not opened. If the table is meant to use it, scan a folder above both",
        )

    def _resolve_links(self, location: str) -> str:
        if ADDRESS.match(location) or "\0" in location:
            return location
        folder, _, name = location.rstrip("/").rpartition("/")
        path = f"{self._real_folder(folder or '/').rstrip('/')}/{name}"
        return os.path.realpath(path) if os.path.islink(path) else path


def without_dot_segments(location: str) -> str:
    """A location with `.` and `..` resolved, as query engines do before they open a file.

    Object stores treat them as ordinary names, so the same path would mean different files.
    """
    if "/." not in location:
        return location
    scheme = ADDRESS.match(location)
    start = scheme[0] if scheme else ""
    first, *segments = location[len(start) :].split("/")
    resolved: list[str] = []
    for segment in segments:
        if segment == ".." and resolved:
            resolved.pop()
        elif segment not in (".", "..") and (segment or start):
            # Empty names are significant in object stores, but not on disks.
            resolved.append(segment)
    return f"{start}{'/'.join([first, *resolved])}"


def is_below(location: str, folder: str) -> bool:
    """Whether a location is a folder or lies below it."""
    return f"{location.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


class OwnedPaths:
    """Folders and files that belong to tables, so that no file in them becomes a dataset."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = frozenset(folders)
        # The last folder that was looked up, and the owned folder that contains it.
        self._last = ("", "")
        # The owned folders whose files `without` has skipped.
        self.skipping_folders: set[str] = set()

    def folder_of(self, path: str) -> str | None:
        """The innermost owned folder that contains a file, if there is one."""
        if path in self._folders:
            return path
        folder = path.rpartition("/")[0]
        # Files are sorted by path, so most are in the same folder as the previous file.
        if folder != self._last[0]:
            owned = folder
            while owned and owned not in self._folders:
                owned = owned.rpartition("/")[0]
            self._last = (folder, owned)
        return self._last[1] or None

    def without(self, files: Iterable[ListedFile]) -> Iterator[ListedFile]:
        """The files that belong to no table."""
        for file in files:
            folder = self.folder_of(file.path)
            if folder is None:
                yield file
            else:
                self.skipping_folders.add(folder)


def may_overlap(key_range: KeyRange, owned: str) -> bool:
    """Whether files of an owned folder, or an owned file, may be in a key range."""
    folder = key_range.folder.rstrip("/")
    if f"{folder}/".startswith(f"{owned}/"):
        return True
    if not owned.startswith(f"{folder}/"):
        return False
    if not key_range.deep:
        return owned.rpartition("/")[0] == folder
    is_before_end = not key_range.until or owned <= key_range.until
    return f"{owned}/{AFTER_ALL}" > key_range.after and is_before_end
