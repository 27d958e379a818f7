"""The folder of a site: which files belong to it, and the format of its data files.

Data files are scripts that pass one JSON text to the page. Browsers load scripts from a web server
and from disk alike, while they refuse to fetch other files from disk.
"""

import hashlib
import shutil
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from lumos.errors import LumosError, MisuseError
from lumos.model.json_codec import to_json
from lumos.model.report import FORMAT_VERSION

_MARKER: Final = "lumos-site.json"
_NEW_DATA: Final = "data/new"
# Characters that a JavaScript string in single quotes cannot contain.
_STRING_ESCAPES: Final = ((b"\\", b"\\\\"), (b"'", b"\\'"))


class _Marker(msgspec.Struct, frozen=True, kw_only=True):
    """The list of the files of a site: the next site in the folder may replace only these."""

    format_version: str = FORMAT_VERSION
    files: tuple[str, ...]


class SiteSize(NamedTuple):
    """The number of files of a site, and their bytes."""

    files: int
    size_bytes: int


class SiteFolder:
    """A folder to write a site to: new, empty, or with an earlier site.

    Files that only the earlier site had are deleted at the end. Other files in the folder are never
    changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._earlier_files = self._files_of_earlier_site()
        self._written: dict[str, int] = {}
        self._digest = hashlib.sha256()
        # Save it before other files, so that a run after an interrupted one accepts the folder.
        self._save_marker(self._earlier_files)

    def _files_of_earlier_site(self) -> tuple[str, ...]:
        if self._path.is_file():
            raise MisuseError(f"{self._path} is a file. Name a folder: lumos site DIR")
        marker = self._path / _MARKER
        if marker.is_file():
            try:
                return msgspec.json.decode(marker.read_bytes(), type=_Marker).files
            except msgspec.MsgspecError as problem:
                raise MisuseError(
                    f"{marker} is damaged ({problem}). Delete the folder or choose another one."
                ) from None
        if self._path.is_dir() and any(self._path.iterdir()):
            raise MisuseError(
                f"{self._path} has files that do not belong to a site. Choose an empty folder."
            )
        return ()

    def write_data(self, name: str, value: object) -> None:
        """Write a data file; the page loads it by its name."""
        body = _script(name, to_json(value))
        self._digest.update(body)
        self.write(f"{_NEW_DATA}/{name}.js", body)

    def publish_data(self) -> str:
        """Move the data files to a folder named after a hash of their content; return its name.

        A browser with an earlier site in its cache thus never mixes the data of both.
        """
        folder = f"data/{self._digest.hexdigest()[:16]}"
        target = self._path / folder
        if target.exists():
            shutil.rmtree(target)
        (self._path / _NEW_DATA).rename(target)
        self._written = {
            f"{folder}{name.removeprefix(_NEW_DATA)}" if name.startswith(_NEW_DATA) else name: size
            for name, size in self._written.items()
        }
        return folder

    def write(self, name: str, body: bytes) -> None:
        """Write one file of the site."""
        file = self._path / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
        except OSError as problem:
            raise SiteNotWritten(file, problem) from None
        self._written[name] = len(body)

    def finish(self) -> SiteSize:
        """Delete files that only the earlier site had; return the number and size of the files."""
        self._save_marker(tuple(sorted(self._written)))
        for name in set(self._earlier_files) - set(self._written):
            self._delete(name)
        return SiteSize(len(self._written), sum(self._written.values()))

    def _save_marker(self, files: tuple[str, ...]) -> None:
        marker = self._path / _MARKER
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            marker.write_bytes(to_json(_Marker(files=files)))
        except OSError as problem:
            raise SiteNotWritten(marker, problem) from None

    def _delete(self, name: str) -> None:
        root = self._path.resolve()
        file = (root / name).resolve()
        # The list of files may have been edited: never delete anything outside of the folder.
        if not file.is_relative_to(root) or not file.is_file():
            return
        file.unlink()
        for parent in file.parents:
            if parent == root or any(parent.iterdir()):
                return
            parent.rmdir()


class SiteNotWritten(LumosError):
    """A file of a site that could not be written."""

    def __init__(self, file: Path, problem: OSError) -> None:
        super().__init__(f"Could not write {file}: {problem.strerror or problem}.")


def _script(name: str, body: bytes) -> bytes:
    for character, escaped in _STRING_ESCAPES:
        body = body.replace(character, escaped)
    return b"lumosData('%s','%s')\n" % (name.encode(), body)
