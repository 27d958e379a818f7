"""File formats: footers and headers become schemas, without reading the data."""

from lumos.formats.columns import (
    ColumnFacts,
    column_statistics,
    merge_columns,
    pack_columns,
    unpack_columns,
)
from lumos.formats.identification import identify, read_file
from lumos.formats.interface import (
    MAYBE_INTEGERS,
    FileFacts,
    Format,
    KnownSchema,
    Remark,
    UnreadableFile,
    check_width,
)
from lumos.formats.naming import FORMATS

__all__ = [
    "FORMATS",
    "MAYBE_INTEGERS",
    "ColumnFacts",
    "FileFacts",
    "Format",
    "KnownSchema",
    "Remark",
    "UnreadableFile",
    "check_width",
    "column_statistics",
    "identify",
    "merge_columns",
    "pack_columns",
    "read_file",
    "unpack_columns",
]
