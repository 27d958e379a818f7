"""Reads rows of Parquet and ORC files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

from lumos.formats.columns import distinct_names
from lumos.formats.orc import stripe_row_counts
from lumos.model.types import DataType
from lumos.profiles.columns import KnownField
from lumos.profiles.tasks import FileTask, RowBatch, batch_rows, select_row_groups

_FIELD_ID: Final = b"PARQUET:field_id"


def read_parquet(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[RowBatch]:
    """Yield the wanted columns of the row groups in a task's portion."""
    parquet = pq.ParquetFile(file, pre_buffer=True, coerce_int96_timestamp_unit="us")
    footer = parquet.metadata
    fields = [each for each in task.fields or map(KnownField, wanted) if each.name in wanted]
    schema = _file_schema(parquet.schema_arrow)
    positions = field_positions(fields, schema.fields)
    names_in_file = [schema.fields[position].name for position in positions]
    groups, share = select_row_groups(footer.num_row_groups, task)
    row_counts = (footer.row_group(group).num_rows for group in range(footer.num_row_groups))
    starts = list(accumulate(row_counts, initial=0))
    for group in groups:
        start = starts[group]
        rows = starts[group + 1] - start
        if not rows:
            continue
        if not names_in_file:
            yield RowBatch(start, rows, {}, share=share)
            continue
        size = batch_rows(footer.row_group(group).total_byte_size / rows)
        names = names_in_file if schema.has_distinct_names else None
        for batch in parquet.iter_batches(size, row_groups=[group], columns=names):
            arrays = schema.arrays_by_name(batch)
            columns = {
                field.name: rename_members(arrays[name], field)
                for name, field in zip(names_in_file, positions.values(), strict=True)
            }
            yield RowBatch(start, batch.num_rows, columns, share=share)
            start += batch.num_rows


def read_orc(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[RowBatch]:
    """Yield the wanted columns of the stripes in a task's portion."""
    orc_file = orc.ORCFile(file)
    schema = _file_schema(orc_file.schema)
    names = [field.name for field in schema.fields]
    available = [name for name in wanted if name in names]
    stripes, share = select_row_groups(orc_file.nstripes, task)
    # pyarrow does not report the number of a stripe's first row.
    row_counts = stripe_row_counts(orc_file.reader.serialized_file_tail())
    starts = list(accumulate(row_counts, initial=0))
    for stripe in stripes:
        start = starts[stripe]
        # If no column was requested, pyarrow would return no rows.
        columns_read = available or orc_file.schema.names[:1]
        rows = orc_file.read_stripe(
            stripe, columns=columns_read if schema.has_distinct_names else None
        )
        table = pa.Table.from_batches([rows])
        size = table.nbytes / max(1, table.num_rows)
        for batch in table.to_batches(max_chunksize=batch_rows(size)):
            arrays = schema.arrays_by_name(batch)
            columns = {name: arrays[name] for name in available}
            yield RowBatch(start, batch.num_rows, columns, share=share)
            start += batch.num_rows


class _FileSchema(NamedTuple):
    """The columns of a file, with distinct names.

    Columns that share a name cannot be requested by name, so all columns of such a file are read.
    """

    fields: list[pa.Field]
    has_distinct_names: bool

    def arrays_by_name(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        if self.has_distinct_names:
            return dict(zip(batch.schema.names, batch.columns, strict=True))
        return dict(zip((each.name for each in self.fields), batch.columns, strict=True))


def _file_schema(schema: pa.Schema) -> _FileSchema:
    names = distinct_names(schema.names)
    fields = [field.with_name(name) for field, name in zip(schema, names, strict=True)]
    return _FileSchema(fields, names == schema.names)


def field_positions(
    known: Iterable[KnownField], fields: Sequence[pa.Field]
) -> dict[int, KnownField]:
    """The known fields by their position in a file, or in a struct in the file."""
    names = {field.name: number for number, field in enumerate(fields)}
    ids = {
        int(field.metadata[_FIELD_ID]): number
        for number, field in enumerate(fields)
        if field.metadata and field.metadata.get(_FIELD_ID, b"").isdigit()
    }
    positions: dict[int, KnownField] = {}
    for each in known:
        position = None if each.id is None else ids.get(each.id)
        # In a file with ids, a column of the same name may be another column.
        if position is None and (each.physical is not None or each.id is None or not ids):
            position = next((names[name] for name in each.names_in_files if name in names), None)
        if position is not None:
            positions[position] = each
    return positions


def rename_members(array: pa.Array, known: KnownField) -> pa.Array:
    """Rename the members of a struct to the names that they have in the table."""
    if not known.members or not pa.types.is_struct(array.type):
        return array
    positions = field_positions(known.members, list(array.type))
    children = [
        rename_members(pc.struct_field(array, [position]), each)
        for position, each in positions.items()
    ]
    names = [each.name for each in positions.values()]
    if not children:
        return pa.nulls(len(array))
    return pa.StructArray.from_arrays(children, names, mask=array.is_null())
