"""Files and folders on this machine, or on a disk mounted by all machines of a cluster."""

import os
from pathlib import Path
from shlex import quote
from typing import ClassVar

from lumos.config.sources import FileSourceSettings as FileSettings
from lumos.errors import MisuseError, nearest
from lumos.model.urn import Urn
from lumos.sources.interface import LakeSource, file_selection
from lumos.storage import FileSelection, UnknownStorage


class PathNotFound(MisuseError):
    """The path to scan does not exist or is not readable."""


class FileSource(LakeSource):
    kind: ClassVar[str] = "file"

    _settings: FileSettings

    def roots(self) -> tuple[FileSelection, ...]:
        settings = self._settings
        return tuple(file_selection(settings, _check_path(path)) for path in settings.paths)

    def urn(self, path: str, *, environment: str) -> Urn:
        return Urn.of(
            self.kind,
            [segment for segment in path.split("/") if segment],
            instance=self.instance,
            environment=environment,
        )


def _check_path(path: str) -> str:
    if "://" in path:
        raise UnknownStorage(path)
    # Links are not resolved, so that datasets keep the path that users know.
    if not path:
        raise PathNotFound("The path to scan is empty. Name a folder: lumos ingest PATH")
    absolute = os.path.abspath(path)
    try:
        absolute.encode()
    except UnicodeEncodeError:
        raise PathNotFound(
            f"The path {absolute!a} is not valid UTF-8. Rename its folders, then scan them."
        ) from None
    try:
        os.stat(absolute)
    except PermissionError:
        raise PathNotFound(
            f"No permission to access {absolute}. Grant access to its parent folders."
        ) from None
    except OSError:
        if os.path.islink(absolute):
            target = os.readlink(absolute)
            raise PathNotFound(f"{absolute} is a link to {target}, which does not exist.") from None
        parent = next(folder for folder in Path(absolute).parents if folder.exists())
        near = nearest(Path(absolute).relative_to(parent).parts[0], _names_in(parent))
        advice = (
            f"Did you mean {parent / near[0]}?"
            if near
            else f"The nearest folder that exists is {parent}; see what is in it with: "
            f"ls {quote(str(parent))}"
        )
        raise PathNotFound(f"There is nothing at {absolute}. {advice}") from None
    if not os.access(absolute, os.R_OK | (os.X_OK if os.path.isdir(absolute) else 0)):
        raise PathNotFound(f"No permission to read {absolute}. Grant read access to it.")
    return absolute


def _names_in(folder: Path) -> list[str]:
    """The names in a folder, for suggestions; empty if it is not readable."""
    try:
        return os.listdir(folder)
    except OSError:
        return []
