"""Manifests in Parquet, as version 4 of the format writes them; they tell the same as Avro ones."""

from collections.abc import Collection, Iterator
from typing import Any, Final

import pyarrow as pa

from lumos.formats.tables.parquet_rows import FAULTS, ParquetRows
from lumos.formats.varints import Malformed

MAGIC: Final = b"PAR1"
_BATCH: Final = 10_000


class ParquetManifest:
    """A manifest in Parquet; raises Malformed."""

    def __init__(self, data: bytes) -> None:
        try:
            self._rows = ParquetRows(data)
        except FAULTS as problem:
            raise Malformed(f"It is no Parquet ({type(problem).__name__}).") from None
        schema = self._rows.schema
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
        paths = self._rows.columns
        columns = [path for path in paths if all(part in keep for part in path.split(".")[:2])]
        try:
            for batch in self._rows.batches(columns, rows=_BATCH):
                yield from batch.to_pylist()
        except FAULTS as problem:
            raise Malformed(f"A record cannot be read ({type(problem).__name__}).") from None


def _described(field: pa.Field) -> dict[str, Any]:
    id = (field.metadata or {}).get(b"PARQUET:field_id", b"")
    return {"name": field.name, "field-id": int(id) if id.isdigit() else None}
