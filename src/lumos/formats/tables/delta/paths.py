"""Paths of a Delta log: they are spelled as URIs, and may be relative, or addresses elsewhere."""

import posixpath
import re
from typing import Final
from urllib.parse import unquote

from lumos.formats.tables.interface import Folder

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|/")
_LOCAL: Final = re.compile(r"file:/+")
# s3://bucket/folder
_SLASHES_ABOVE_A_FOLDER: Final = 3


def resolved(path: str, folder: Folder) -> str:
    """A path below the table's root, or an address elsewhere."""
    plain = unquote(path) if "%" in path else path
    if not _is_address(plain):
        if ".." not in plain:
            return plain
        plain = posixpath.normpath(plain)
        if not plain.startswith("../"):
            return plain
        # Up and away: it is an address like any other.
        plain = _joined(folder.root, plain)
    if plain.startswith("file:"):
        plain = _LOCAL.sub("/", plain, count=1)
    return folder.inside(plain, folder.root) or plain


def _is_address(path: str) -> bool:
    return _ADDRESS.match(path) is not None


def _joined(root: str, path: str) -> str:
    scheme, separator, place = root.rpartition("://")
    return f"{scheme}{separator}{posixpath.normpath(posixpath.join(place, path))}"


def folder_elsewhere(path: str) -> str | None:
    """The folder of a file outside the table, without those of partitions; of others nothing."""
    if not _is_address(path):
        return None
    folder = path.rpartition("/")[0]
    while "=" in folder.rpartition("/")[2]:
        folder = folder.rpartition("/")[0]
    is_deep = folder.count("/") >= (1 if path.startswith("/") else _SLASHES_ABOVE_A_FOLDER)
    # Nobody owns a whole bucket because of one file in it.
    return folder if is_deep else path
