"""What files are called for good, from whichever folder somebody names them.

A file that lies beside the store, or deeper, is called by its path from there: both move together.
One of a repository elsewhere is called by the repository's address and its path in it, so that
every checkout says the same. All others are called by their whole path.
"""

import os
import re
from configparser import ConfigParser, Error
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

# Stands between a repository and a path in it, and in no other name.
INSIDE: Final = "//"
_OWN_FOLDER: Final = ".lumos"
_SHORT_ADDRESS: Final = re.compile(r"(?:[^@/\s]+@)?([\w.-]+):(?!/)(\S+)")


class FileNames:
    """Names of files and folders; `beside` is where the store's file lies, if it is one."""

    def __init__(self, beside: Path | None) -> None:
        self._base = None if beside is None else _base_of(Path(os.path.abspath(beside)))

    def of(self, path: Path) -> str:
        """What a file or folder is called."""
        absolute = Path(os.path.abspath(path))
        for place, base in self._from_base(absolute):
            if place.is_relative_to(base):
                return place.relative_to(base).as_posix()
        for root in (absolute, *absolute.parents):
            if (repository := _address_of(root)) is not None:
                inside = absolute.relative_to(root).as_posix()
                return repository + INSIDE + ("" if inside == "." else inside)
        return absolute.as_posix()

    def _from_base(self, absolute: Path) -> list[tuple[Path, Path]]:
        if self._base is None:
            return []
        # Either may have been reached through a link.
        real = Path(os.path.realpath(absolute)), Path(os.path.realpath(self._base))
        return [(absolute, self._base), real]


def lies_in(name: str, folder: str) -> bool:
    """Whether what is called so lies in a folder by its own name, however deep."""
    if folder.endswith(INSIDE):
        return name.startswith(folder)
    if INSIDE in name and INSIDE not in folder:
        return False
    if folder == ".":
        return not name.startswith("/")
    return name.startswith(f"{folder.rstrip('/')}/")


def _base_of(beside: Path) -> Path:
    return beside.parent if beside.name == _OWN_FOLDER else beside


@cache
def _address_of(root: Path) -> str | None:
    """The address that a folder's repository was fetched from, without who fetched it."""
    config = _git_folder(root) / "config"
    if not config.is_file():
        return None
    parser = ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(_without_indents(config.read_text(encoding="utf-8", errors="replace")))
    except (OSError, Error):
        # Whatever it is, no address stands there that all checkouts share.
        return None
    return _address_in(parser.get('remote "origin"', "url", fallback="") or "")


def _git_folder(root: Path) -> Path:
    """Where git keeps what it knows; a linked work tree only has a file that says where."""
    git = root / ".git"
    if not git.is_file():
        return git
    try:
        folder = root / git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
        common = folder / "commondir"
        return folder / common.read_text(encoding="utf-8").strip() if common.is_file() else folder
    except (OSError, UnicodeDecodeError):
        return git


def _without_indents(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def _address_in(url: str) -> str | None:
    short = _SHORT_ADDRESS.fullmatch(url)
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    elif short is not None:
        host, path = short.groups()
    else:
        return None
    path = path.strip("/").removesuffix(".git")
    return f"{host.lower()}/{path}" if host and path and INSIDE not in path else None
