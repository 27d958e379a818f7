"""Rows of Parquet and ORC files."""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from lumos.formats.names import distinct_names
from lumos.formats.orc import rows_of_stripes
from lumos.formats.protobuf import fields as protobuf_fields
from lumos.model.types import DataType
from lumos.profiles.column_names import KnownField, named, places_of
from lumos.profiles.rows import Batch, FileTask, batch_rows, chosen

# Where the footer stands in what the library tells of the end of an ORC file.
_FOOTER: Final = 2


def read_parquet(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[Batch]:
    """The wanted columns of a portion's row groups."""
    parquet = pq.ParquetFile(file, pre_buffer=True, coerce_int96_timestamp_unit="us")
    footer = parquet.metadata
    fields = [each for each in task.fields or map(KnownField, wanted) if each.name in wanted]
    own = _own_fields(parquet.schema_arrow)
    places = places_of(fields, own.fields)
    present = [own.fields[at].name for at in places]
    read = present if own.are_distinct else None
    groups, share = chosen(footer.num_row_groups, task)
    starts = [0]
    for group in range(footer.num_row_groups):
        starts.append(starts[-1] + footer.row_group(group).num_rows)
    for group in groups:
        start = starts[group]
        rows = starts[group + 1] - start
        if not rows:
            continue
        if not present:
            yield Batch(start, rows, {}, share=share)
            continue
        at_once = batch_rows(footer.row_group(group).total_byte_size / rows)
        for batch in parquet.iter_batches(at_once, row_groups=[group], columns=read):
            found = own.columns(batch)
            columns = {
                each.name: named(found[name], each)
                for name, each in zip(present, places.values(), strict=True)
            }
            yield Batch(start, batch.num_rows, columns, share=share)
            start += batch.num_rows


def read_orc(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[Batch]:
    """The wanted columns of a portion's stripes."""
    opened = orc.ORCFile(file)
    own = _own_fields(opened.schema)
    names = [field.name for field in own.fields]
    present = [name for name in wanted if name in names]
    stripes, share = chosen(opened.nstripes, task)
    starts = _starts(opened)
    for stripe in stripes:
        start = starts[stripe]
        # Without any column there are no rows either.
        some = present or opened.schema.names[:1]
        rows = opened.read_stripe(stripe, columns=some if own.are_distinct else None)
        table = pa.Table.from_batches([rows])
        size = table.nbytes / max(1, table.num_rows)
        for batch in table.to_batches(max_chunksize=batch_rows(size)):
            found = own.columns(batch)
            columns = {name: found[name] for name in present}
            yield Batch(start, batch.num_rows, columns, share=share)
            start += batch.num_rows


class _Fields(NamedTuple):
    """The columns of a file as its schema calls them, where it may have several of a name.

    Such columns cannot be asked for by name, so that all of them have to be read.
    """

    fields: list[pa.Field]
    are_distinct: bool

    def columns(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """The columns of some rows, by these names."""
        names = batch.schema.names if self.are_distinct else [each.name for each in self.fields]
        return dict(zip(names, batch.columns, strict=True))


def _own_fields(schema: pa.Schema) -> _Fields:
    names = distinct_names(schema.names)
    fields = [field.with_name(name) for field, name in zip(schema, names, strict=True)]
    return _Fields(fields, names == schema.names)


def _starts(file: orc.ORCFile) -> list[int]:
    """The number of each stripe's first row, which the library does not tell itself."""
    footer = dict(protobuf_fields(file.reader.serialized_file_tail()))[_FOOTER]
    assert isinstance(footer, bytes)
    return list(accumulate(rows_of_stripes(footer), initial=0))
