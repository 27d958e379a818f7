"""Parquet: the footer alone tells schema and rows."""

from typing import ClassVar, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lumos.formats.interface import FileFacts, Format, RangedBytes, UnreadableFile
from lumos.formats.names import distinct_names
from lumos.model.conversions.arrow import schema_from_arrow
from lumos.model.schema import Schema

_MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
# Nearly every footer fits; a longer one costs one more read.
_FIRST_READ: Final = 64 * 1024
_LARGEST_FOOTER: Final = 256 * 1024 * 1024


class Parquet(Format):
    name: ClassVar[str] = "parquet"
    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".parq", ".pq")
    declares_schema: ClassVar[bool] = True

    def claims(self, head: bytes) -> bool:
        return head.startswith((_MAGIC, _ENCRYPTED))

    def read(self, file: RangedBytes) -> FileFacts:
        footer = _footer(file)
        try:
            metadata = pq.read_metadata(pa.BufferReader(footer))
            schema = schema_from_arrow(metadata.schema.to_arrow_schema())
        except (pa.ArrowException, OSError, ValueError) as problem:
            if "too deeply nested" in str(problem):
                reason = "The schema nests too deeply to be read."
                raise UnreadableFile("too_deep", reason) from None
            reason = f"The Parquet footer is damaged: {problem}"
            raise UnreadableFile("corrupt_file", reason) from None
        return FileFacts(_with_distinct_names(schema), metadata.num_rows, row_count_exact=True)


def _with_distinct_names(schema: Schema) -> Schema:
    names = [field.name for field in schema.fields]
    distinct = distinct_names(names)
    if names == distinct:
        return schema
    renamed = zip(schema.fields, distinct, strict=True)
    return Schema(
        fields=tuple(msgspec.structs.replace(field, name=name) for field, name in renamed)
    )


def _footer(file: RangedBytes) -> bytes:
    tail = file.tail(_FIRST_READ)
    if tail.endswith(_ENCRYPTED):
        raise UnreadableFile("encrypted_file", "The Parquet footer is encrypted.")
    if len(tail) < 12 or not tail.endswith(_MAGIC):
        raise UnreadableFile(
            "not_parquet", "The file does not end as Parquet does: cut off, or something else."
        )
    needed = int.from_bytes(tail[-8:-4], "little") + 8
    if needed > min(file.size, _LARGEST_FOOTER):
        raise UnreadableFile("corrupt_file", "The Parquet footer claims more bytes than there are.")
    return tail if needed <= len(tail) else file.tail(needed)
