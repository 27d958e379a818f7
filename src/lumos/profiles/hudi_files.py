"""Reads rows of Hudi's merge-on-read tables, in which log files change the rows of base files.

Hudi's own library merges the files. It gets copies of them in a temporary folder, so that Lumos
controls which files are opened, with which credentials, and which version of the table is read.
"""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa

from lumos.discovery.lake.table_folder import StoredTableFolder
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.hudi.properties import PROPERTY_FILES
from lumos.formats.tables.hudi.reader import HudiReader, read_properties
from lumos.formats.tables.hudi.timeline import parse_timeline
from lumos.model.types import DataType
from lumos.profiles.tasks import FileTask, RowBatch, batch_rows
from lumos.storage import FileStorage, LocalStorage

_COPY_BYTES: Final = 8 * 1024 * 1024


def read_slice(
    task: FileTask, storage: FileStorage, wanted: Mapping[str, DataType]
) -> Iterator[RowBatch]:
    """Yield the wanted columns of a file slice, merged by Hudi's own library."""
    prefix = f"{task.table_root}/"
    files = (task.path, *task.logs)
    if not all(path.startswith(prefix) for path in files):
        raise UnreadableFile("outside_path", "It is outside of its table and was not opened")
    folder = StoredTableFolder(storage, task.table_root)
    metadata = _metadata_files(storage, task.table_root, HudiReader().signature(folder))
    with TemporaryDirectory(prefix="lumos-hudi-") as copy_folder:
        for path, content in metadata.items():
            _path_in(copy_folder, path).write_bytes(content)
        for path in files:
            _copy(storage, path, _path_in(copy_folder, path.removeprefix(prefix)))
        base, *logs = (path.removeprefix(prefix) for path in files)
        if base.rpartition("/")[2].startswith("."):
            # The slice has no base file, so its first file is a log file.
            base, logs = "", [base, *logs]
        reader = _open_table(copy_folder).create_file_group_reader_with_options()
        rows = pa.Table.from_batches([reader.read_file_slice_from_paths(base, logs)])
    names = [name for name in wanted if name in rows.column_names]
    size = rows.nbytes / max(1, rows.num_rows)
    start = 0
    for batch in rows.to_batches(max_chunksize=batch_rows(size)):
        columns = {name: batch.column(name) for name in names}
        yield RowBatch(start, batch.num_rows, columns, share=task.sample)
        start += batch.num_rows


# Consecutive slices usually belong to one table. The signature changes with every write to the
# table, and each storage has its own credentials.
@lru_cache(maxsize=1)
def _metadata_files(storage: FileStorage, root: str, signature: str) -> dict[str, bytes]:  # noqa: ARG001
    """The contents of the properties file and of the instants of a table, by path.

    The names of the instants are enough to show which writes completed. Only the newest instants
    are read, because they contain the table's schema; the others are empty.
    """
    folder = StoredTableFolder(storage, root)
    properties = read_properties(folder)
    entries = list(folder.entries(properties.timeline))
    files = {f"{properties.timeline}/{entry.name}": b"" for entry in entries}
    writes = parse_timeline(entries).writes
    newest = {max(writes, key=lambda write: write.instant), writes[-1]} if writes else set()
    for write in newest:
        path = f"{properties.timeline}/{write.entry.name}"
        files[path] = folder.read(path)
    files[PROPERTY_FILES[0]] = properties.data
    return files


def _path_in(folder: str, path: str) -> Path:
    """The path of a file in a folder; creates its parent folders."""
    file = Path(folder, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _copy(storage: FileStorage, path: str, to: Path) -> None:
    if isinstance(storage, LocalStorage):
        to.symlink_to(os.path.realpath(path, strict=True))
        return
    with storage.open(path) as source, to.open("wb") as target:
        for start in range(0, source.size, _COPY_BYTES):
            target.write(source.part(start, _COPY_BYTES))


def _open_table(folder: str) -> Any:
    try:
        from hudi import HudiTableBuilder
    except ModuleNotFoundError:
        raise UnreadableFile(
            "missing_library",
            "Rows of merge-on-read tables need hudi: pip install 'lumos[hudi]'",
        ) from None
    return HudiTableBuilder.from_base_uri(folder).build()
