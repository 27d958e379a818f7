"""Rows of Hudi tables of the kind merge-on-read: a base file with logs laid over it."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from lumos.formats import UnreadableFile
from lumos.model.types import DataType
from lumos.pipeline.profiling.reading import Batch, FileTask, batch_rows


def read_slice(task: FileTask, wanted: Mapping[str, DataType]) -> Iterator[Batch]:
    """The wanted columns of a slice, merged by Hudi's own library."""
    try:
        from hudi import HudiFileGroupReader
    except ModuleNotFoundError:
        raise UnreadableFile(
            "missing_library",
            "Rows of merge-on-read tables need hudi: pip install 'lumos[hudi]'",
        ) from None
    reader: Any = HudiFileGroupReader(task.table)
    merged = reader.read_file_slice_from_paths(task.spelled, list(task.logs))
    table = pa.Table.from_batches([merged])
    names = [name for name in wanted if name in table.column_names]
    size = table.nbytes / max(1, table.num_rows)
    start = 0
    for batch in table.select(names).to_batches(max_chunksize=batch_rows(size)):
        columns = dict(zip(names, batch.columns, strict=True))
        yield Batch(start, batch.num_rows, columns, share=task.sample)
        start += batch.num_rows
