"""The archive of a timeline of Hudi 1.x: Parquet files of instants, and a list of which count."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.hudi.commits import Commit, commit_of
from lumos.formats.tables.hudi.instants import WRITES
from lumos.formats.tables.interface import Folder
from lumos.formats.tables.parquet_rows import FAULTS, ParquetRows

_VERSION: Final = "_version_"
_COLUMNS: Final = ["instantTime", "completionTime", "action", "metadata"]
_BATCH: Final = 64


class Archived(NamedTuple):
    """A write that moved to the archive."""

    begun: str
    ended: str
    action: str
    commit: Commit


class _ListedFile(msgspec.Struct):
    fileName: str


class _Manifest(msgspec.Struct):
    files: tuple[_ListedFile, ...] = ()


def archive_files(folder: Folder, place: str) -> list[str]:
    """The archive's files, the newest first; none where nothing was archived yet."""
    entries = {entry.name for entry in folder.entries(place)}
    if _VERSION not in entries:
        return []
    try:
        number = folder.read(f"{place}/{_VERSION}").decode("ascii").strip()
        manifest = msgspec.json.decode(folder.read(f"{place}/manifest_{number}"), type=_Manifest)
    except (FileNotFoundError, ValueError) as problem:
        reason = f"The list of the archive cannot be read: {problem}"
        raise UnreadableFile("broken_table", reason) from None
    # Names begin with the first instant in the file.
    return sorted((file.fileName for file in manifest.files), reverse=True)


def archived_writes(folder: Folder, path: str) -> Iterator[Archived]:
    """The writes in one file of the archive; raises UnreadableFile."""
    try:
        for batch in ParquetRows(folder.read(path)).batches(_COLUMNS, rows=_BATCH):
            for row in batch.to_pylist():
                yield from _write(row, path)
    except FileNotFoundError:
        raise UnreadableFile("broken_table", f"{path} is listed but gone") from None
    except FAULTS as problem:
        raise UnreadableFile("broken_table", f"{path} is damaged: {problem}"[:300]) from None


def _write(row: dict[str, object], path: str) -> Iterator[Archived]:
    begun, ended, action, data = (row[column] for column in _COLUMNS)
    if action in WRITES and isinstance(begun, str) and isinstance(data, bytes) and data:
        yield Archived(begun, str(ended or ""), str(action), commit_of(data, f"{begun} in {path}"))
