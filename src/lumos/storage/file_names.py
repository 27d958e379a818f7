"""Stable names of files, which do not depend on the working directory.

The name of a file below the folder of the store is its path relative to that folder, since both are
moved together. The name of a file in another git repository is the URL of the repository and the
path in it, which are the same in all checkouts. Other files have their absolute path as name. Files
that a client sent to a server have the name that the client gave them.
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
_LUMOS_FOLDER: Final = ".lumos"
# A git address such as `git@github.com:company/models.git`.
_SCP_ADDRESS: Final = re.compile(r"(?:[^@/\s]+@)?([\w.-]+):(?!/)(\S+)")

# The names that clients gave to their files and folders, by the path of the upload.
_UPLOADS: ContextVar[Mapping[Path, str]] = ContextVar("lumos_uploads", default=MappingProxyType({}))


@contextmanager
def uploads_named(names: Mapping[Path, str]) -> Iterator[None]:
    """Within the context, uploaded files and folders have the names that clients gave them."""
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
    """Names files and folders; `store_folder` contains the store, if the store is a file."""

    def __init__(self, store_folder: Path | None) -> None:
        self._base: Path | None = None
        if store_folder is not None:
            folder = Path(os.path.abspath(store_folder))
            self._base = folder.parent if folder.name == _LUMOS_FOLDER else folder

    def of(self, path: Path) -> str:
        """The name of a file or folder."""
        absolute = Path(os.path.abspath(path))
        if (name := upload_name(absolute)) is not None:
            return name
        for path, base in self._paths_and_bases(absolute):
            if path.is_relative_to(base):
                return path.relative_to(base).as_posix()
        for root in (absolute, *absolute.parents):
            if (repository := _address_of(root)) is not None:
                relative = absolute.relative_to(root).as_posix()
                return repository + REPOSITORY_SEPARATOR + ("" if relative == "." else relative)
        return absolute.as_posix()

    def _paths_and_bases(self, absolute: Path) -> list[tuple[Path, Path]]:
        if self._base is None:
            return []
        # Either path may contain a link, so compare the real paths, too.
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
        # ConfigParser would join indented lines with the previous line.
        parser.read_string("\n".join(map(str.strip, lines)))
    except (OSError, Error):
        # The URL is unknown, so the file is named by its absolute path.
        return None
    return _address_in(parser.get('remote "origin"', "url", fallback="") or "")


def _git_folder(root: Path) -> Path:
    """The git folder of a work tree; in a linked work tree, `.git` is a file with its path."""
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
    match = _SCP_ADDRESS.fullmatch(url)
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    elif match is not None:
        host, path = match.groups()
    else:
        return None
    path = path.strip("/").removesuffix(".git")
    return f"{host.lower()}/{path}" if host and path and REPOSITORY_SEPARATOR not in path else None
