"""File tasks in files: what one Spark task is to read, written down in the state folder."""

import gzip
import io
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec

from lumos.profiles.rows import FileTask
from lumos.spark.spill import read_blocks, write_blocks
from lumos.storage import Access, storage_of

# msgpack tells text from bytes, but msgspec takes no union of both.
_UNTYPED: Final = {"constants": tuple[tuple[str, Any], ...]}
_TYPES: Final = tuple(
    _UNTYPED.get(name, type)
    for name, type in get_type_hints(FileTask).items()
    if name in FileTask._fields
)
# A task as it is written down: the values of its fields.
TASK_VALUES: Final[Any] = tuple[_TYPES]  # type: ignore[valid-type]

_decode_tasks: Final = msgspec.msgpack.Decoder(list[TASK_VALUES]).decode


class StoredPart(NamedTuple):
    """So many files of so many bytes, each a task; `path` is where the tasks are written down."""

    files: int
    bytes: int
    path: str


def store_part(path: str, access: Access, tasks: Collection[FileTask], *, size: int) -> StoredPart:
    """Writes down the files, `size` bytes in all, that one Spark task is to read."""
    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", compresslevel=1) as packed:
        write_blocks(packed, tasks)
    storage_of(path, access).write(path, data.getvalue())
    return StoredPart(len(tasks), size, path)


def stored_tasks(path: str, access: Access) -> Iterator[FileTask]:
    """The tasks of a part, one after the other."""
    data = io.BytesIO(storage_of(path, access).read(path))
    with gzip.GzipFile(fileobj=data) as packed:
        yield from map(FileTask._make, read_blocks(packed, _decode_tasks))
