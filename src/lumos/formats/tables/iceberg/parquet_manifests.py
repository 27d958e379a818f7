"""Manifests in Parquet, as version 4 of the format writes them; they tell the same as Avro ones."""

from collections.abc import Collection, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lumos.formats.tables.containers import LONGEST_CONTENT
from lumos.formats.varints import Malformed

MAGIC: Final = b"PAR1"
_BATCH: Final = 10_000
# The bytes are here already: whatever fails is the file's own fault.
_FAULTS: Final = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, ArithmeticError)


class ParquetManifest:
    """A manifest in Parquet; raises Malformed."""

    def __init__(self, data: bytes) -> None:
        try:
            self._file = pq.ParquetFile(pa.BufferReader(data), memory_map=False)
            told = self._file.metadata
            groups = (told.row_group(number) for number in range(told.num_row_groups))
            size = sum(group.total_byte_size for group in groups)
            schema = self._file.schema_arrow
        except _FAULTS as problem:
            raise Malformed(f"It is no Parquet ({type(problem).__name__}).") from None
        if size > LONGEST_CONTENT:
            raise Malformed("It is too large.")
        self.metadata: dict[str, bytes] = {
            key.decode("utf-8", "replace"): value for key, value in (schema.metadata or {}).items()
        }
        self._schema = schema

    @property
    def partition_fields(self) -> list[dict[str, Any]]:
        """The fields that hold partition values, as a manifest in Avro describes them."""
        record: Any = pa.struct(list(self._schema))
        for name in ("data_file", "partition"):
            record = record.field(name).type if record.get_field_index(name) >= 0 else None
            if not isinstance(record, pa.StructType):
                return []
        return [_described(record.field(place)) for place in range(record.num_fields)]

    def records(self, keep: Collection[str]) -> Iterator[dict[str, Any]]:
        """The records; of those and of the file inside, only the fields to keep."""
        leaves = self._file.schema
        paths = (leaves.column(place).path for place in range(len(leaves)))
        columns = [path for path in paths if all(part in keep for part in path.split(".")[:2])]
        try:
            for batch in self._file.iter_batches(_BATCH, columns=columns, use_threads=False):
                yield from batch.to_pylist()
        except _FAULTS as problem:
            raise Malformed(f"A record cannot be read ({type(problem).__name__}).") from None


def _described(field: pa.Field) -> dict[str, Any]:
    id = (field.metadata or {}).get(b"PARQUET:field_id", b"")
    return {"name": field.name, "field-id": int(id) if id.isdigit() else None}
