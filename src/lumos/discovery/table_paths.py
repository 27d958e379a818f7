"""Which files the metadata of a table may name: those below the roots that are scanned."""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from lumos.formats.interface import UnreadableFile
from lumos.storage.uris import ADDRESS, absolute

OUTSIDE: Final = "outside_path"
_LONGEST_SHOWN: Final = 200
_FOLDERS_KEPT: Final = 1024


class TablePaths:
    """Resolves the paths that a table's logs, properties and manifests name.

    Anyone with write access to a lake can write such a file, so a path is resolved before anything
    is opened, and refused unless it lies below one of `roots`. Links count by their target.
    """

    def __init__(self, root: str, roots: Sequence[str]) -> None:
        self._root = root
        self._roots = roots
        self._real_folder = lru_cache(maxsize=_FOLDERS_KEPT)(os.path.realpath)
        self._real_roots = [self._real(each) for each in roots]

    def resolve(self, path: str) -> str:
        """The location of a path from the table's root on, or of an address.

        Raises UnreadableFile where it lies outside of all roots.
        """
        location = without_dot_segments(absolute(path, self._root))
        real = self._real(location)
        if any(is_below(real, root) for root in self._real_roots):
            return location
        target = "" if real == location else f" (a link to {real[:_LONGEST_SHOWN]})"
        roots = ", ".join(self._roots)
        raise UnreadableFile(
            OUTSIDE,
            f"Its metadata leads to {location[:_LONGEST_SHOWN]}{target}, outside of {roots}; it is "
            "not opened. Scan a folder above both if the table is meant to use it",
        )

    def _real(self, location: str) -> str:
        if ADDRESS.match(location) or "\0" in location:
            return location
        folder, _, name = location.rstrip("/").rpartition("/")
        place = f"{self._real_folder(folder or '/').rstrip('/')}/{name}"
        return os.path.realpath(place) if os.path.islink(place) else place


def without_dot_segments(location: str) -> str:
    """A location in which `.` and `..` are resolved, as engines do before they open a file.

    Object stores take them for names, so that a path would mean different files to them and us.
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
            # An empty name is one in an object store, and none on a disk.
            resolved.append(segment)
    return f"{start}{'/'.join([first, *resolved])}"


def is_below(location: str, folder: str) -> bool:
    """Whether a location is a folder or lies in it."""
    return f"{location.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
