"""Rows of Hudi tables of the kind merge-on-read: a base file with logs laid over it."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from lumos.formats import UnreadableFile
from lumos.model.types import DataType
from lumos.pipeline.profiling.reading import Batch, FileTask, batch_rows


class _Table(NamedTuple):
    """What Hudi's own library knows of a table: its slices by folder and file group."""

    reader: Any
    slices: dict[tuple[str, str], Any]


def read_slice(task: FileTask, wanted: Mapping[str, DataType]) -> Iterator[Batch]:
    """The wanted columns of a slice, merged by Hudi's own library."""
    folder, _, name = task.spelled.rpartition("/")
    table = _table(task.table)
    found = table.slices.get((folder, name.lstrip(".").partition("_")[0]))
    if found is None:
        raise UnreadableFile("vanished", "The file group is gone since the scan.")
    rows = pa.Table.from_batches([table.reader.read_file_slice(found)])
    names = [name for name in wanted if name in rows.column_names]
    size = rows.nbytes / max(1, rows.num_rows)
    start = 0
    for batch in rows.to_batches(max_chunksize=batch_rows(size)):
        columns = {name: batch.column(name) for name in names}
        yield Batch(start, batch.num_rows, columns, share=task.sample)
        start += batch.num_rows


@lru_cache(maxsize=4)
def _table(root: str) -> _Table:
    try:
        from hudi import HudiTableBuilder
    except ModuleNotFoundError:
        raise UnreadableFile(
            "missing_library",
            "Rows of merge-on-read tables need hudi: pip install 'lumos[hudi]'",
        ) from None
    table: Any = HudiTableBuilder.from_base_uri(root).build()
    slices = {(each.partition_path, each.file_id): each for each in table.get_file_slices()}
    return _Table(table.create_file_group_reader_with_options(), slices)
