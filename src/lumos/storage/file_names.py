"""Stable names of files that do not depend on the working directory.

A file below the folder of the store is named by its relative path, since both move together. A file
of another repository is named by the URL of the repository and its path in it, which is the same in
all checkouts. Other files are named by their absolute path. Files that a client sent to a server
have the name that the client gave them.
"""

import os
import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser, Error
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

# Separates a repository from a path in it; does not occur in other names.
REPOSITORY_SEPARATOR: Final = "//"
_OWN_FOLDER: Final = ".lumos"
_SHORT_ADDRESS: Final = re.compile(r"(?:[^@/\s]+@)?([\w.-]+):(?!/)(\S+)")

# Files and folders of clients, as they lie here, with their names.
_UPLOADS: ContextVar[Mapping[Path, str]] = ContextVar("lumos_uploads", default=MappingProxyType({}))


@contextmanager
def uploads_named(names: Mapping[Path, str]) -> Iterator[None]:
    """Name files and folders that clients sent as the clients do."""
    token = _UPLOADS.set(names)
    try:
        yield
    finally:
        _UPLOADS.reset(token)


def upload_name(path: Path) -> str | None:
    """The name of a file that a client sent, or of a file in a folder that it sent."""
    for uploaded, name in _UPLOADS.get().items():
        if path == uploaded:
            return name
        if path.is_relative_to(uploaded):
            slash = "" if name.endswith("/") else "/"
            return f"{name}{slash}{path.relative_to(uploaded).as_posix()}"
    return None


class FileNames:
    """Names of files and folders; `store_folder` contains the store, if that is a file."""

    def __init__(self, store_folder: Path | None) -> None:
        self._base: Path | None = None
        if store_folder is not None:
            folder = Path(os.path.abspath(store_folder))
            self._base = folder.parent if folder.name == _OWN_FOLDER else folder

    def of(self, path: Path) -> str:
        """The name of a file or folder."""
        absolute = Path(os.path.abspath(path))
        if (name := upload_name(absolute)) is not None:
            return name
        for path, base in self._from_base(absolute):
            if path.is_relative_to(base):
                return path.relative_to(base).as_posix()
        for root in (absolute, *absolute.parents):
            if (repository := _address_of(root)) is not None:
                relative = absolute.relative_to(root).as_posix()
                return repository + REPOSITORY_SEPARATOR + ("" if relative == "." else relative)
        return absolute.as_posix()

    def _from_base(self, absolute: Path) -> list[tuple[Path, Path]]:
        if self._base is None:
            return []
        # Either may have been reached through a link.
        real = Path(os.path.realpath(absolute)), Path(os.path.realpath(self._base))
        return [(absolute, self._base), real]


def is_inside(name: str, folder: str) -> bool:
    """Whether a named file is in a named folder, at any depth."""
    if folder.endswith(REPOSITORY_SEPARATOR):
        return name.startswith(folder)
    if REPOSITORY_SEPARATOR in name and REPOSITORY_SEPARATOR not in folder:
        return False
    if folder == ".":
        return not name.startswith("/")
    return name.startswith(f"{folder.rstrip('/')}/")


@cache
def _address_of(root: Path) -> str | None:
    """The URL of the remote of a folder's repository, without the user."""
    config = _git_folder(root) / "config"
    if not config.is_file():
        return None
    parser = ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        lines = config.read_text(encoding="utf-8", errors="replace").splitlines()
        # Indented lines would continue the line before.
        parser.read_string("\n".join(map(str.strip, lines)))
    except (OSError, Error):
        # Without a readable config, no URL is common to all checkouts.
        return None
    return _address_in(parser.get('remote "origin"', "url", fallback="") or "")


def _git_folder(root: Path) -> Path:
    """The folder of git; in a linked work tree `.git` is a file with its path."""
    git = root / ".git"
    if not git.is_file():
        return git
    try:
        folder = root / git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
        common = folder / "commondir"
        return folder / common.read_text(encoding="utf-8").strip() if common.is_file() else folder
    except (OSError, UnicodeDecodeError):
        return git


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
    return f"{host.lower()}/{path}" if host and path and REPOSITORY_SEPARATOR not in path else None
