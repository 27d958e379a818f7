"""Decodes Parquet files of table logs with a memory limit, since a few bytes may become gigabytes.

The totals in a footer may be wrong, so the pages are checked before they are decoded: Arrow
allocates as many bytes as the page headers declare, and copies a dictionary entry, which may be
long, into every row that refers to it. The longer the rows, the fewer are decoded at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lumos.formats import thrift
from lumos.formats.varints import MalformedData, read_signed

# The file is already in memory, so all of these errors mean that it is damaged.
READ_ERRORS: Final = (
    pa.ArrowException,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
)

# Writers make pages of one megabyte, or of one longer value.
_MAX_PAGE_BYTES: Final = 64 * 1024 * 1024
_MAX_VALUES: Final = 100_000_000
# The limits of the decoded bytes of a batch, and of all lists of a column in a row group.
_MAX_BATCH_BYTES: Final = 64 * 1024 * 1024
_MAX_LIST_BYTES: Final = 1024 * 1024 * 1024
_SMALL_BATCH_ROWS: Final = 1_000

_DICTIONARY_PAGE: Final = 2
# The ids of fields in a page header.
_TYPE_ID, _UNCOMPRESSED_SIZE_ID, _COMPRESSED_SIZE_ID = 1, 2, 3
# The ids of its structs that begin with the number of values.
_VALUE_COUNT_IDS: Final = frozenset({5, 7, 8})
_CODECS: Final = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd"}


class _Page(NamedTuple):
    type: int
    uncompressed_bytes: int
    content: bytes
    value_count: int


class ParquetRows:
    """The rows of a file; all methods may raise MalformedData, or one of READ_ERRORS."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._file = pq.ParquetFile(pa.BufferReader(data), memory_map=False)
        self.schema: pa.Schema = self._file.schema_arrow
        leaves = self._file.schema
        self.columns = [leaves.column(number).path for number in range(len(leaves))]

    def batches(self, columns: Sequence[str], *, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows with these columns, at most `rows` at a time."""
        selected = [
            number
            for number, path in enumerate(self.columns)
            if any(is_below(path, column) for column in columns)
        ]
        groups = range(self._file.metadata.num_row_groups)
        row_bytes = max(
            (sum(self._bytes_per_row(group, number) for number in selected) for group in groups),
            default=0,
        )
        batch_rows = max(1, min(rows, _MAX_BATCH_BYTES // max(1, row_bytes)))
        yield from self._file.iter_batches(batch_rows, columns=list(columns), use_threads=False)

    def _bytes_per_row(self, group: int, number: int) -> int:
        """The bytes to expect per row of a column: its largest value or, for lists, the average.

        Raises MalformedData above the limits.
        """
        row_group = self._file.metadata.row_group(group)
        chunk = row_group.column(number)
        value_count, page_bytes, longest_entry, value_bytes = 0, 0, 0, 0
        for page in self._pages(chunk):
            value_count += page.value_count
            page_bytes += page.uncompressed_bytes
            if page.type == _DICTIONARY_PAGE and chunk.physical_type == "BYTE_ARRAY":
                longest_entry = _longest_entry(page, chunk.compression)
            elif page.value_count:
                value_bytes = max(value_bytes, page.uncompressed_bytes // page.value_count)
        if value_count > _MAX_VALUES:
            raise MalformedData(f"It has more than {_MAX_VALUES:,} values.")
        if self._file.schema.column(number).max_repetition_level == 0:
            return max(longest_entry, value_bytes)
        # All values may be in the list of a single row, so limit their total.
        list_bytes = max(page_bytes, value_count * longest_entry)
        if list_bytes > _MAX_LIST_BYTES:
            list_bytes = self._measure_lists(group, self.columns[number])
        if list_bytes > _MAX_LIST_BYTES:
            raise MalformedData(f"It decompresses to more than {_MAX_LIST_BYTES:,} bytes.")
        return list_bytes // max(1, int(row_group.num_rows))

    def _measure_lists(self, group: int, column: str) -> int:
        """The bytes of a column's values, computed without expanding its dictionary."""
        file = pq.ParquetFile(pa.BufferReader(self._data), read_dictionary=[column])
        return sum(
            _decoded_bytes(leaf)
            for batch in file.iter_batches(_SMALL_BATCH_ROWS, [group], [column], use_threads=False)
            for leaf in _leaves(batch.to_struct_array())
        )

    def _pages(self, chunk: pq.ColumnChunkMetaData) -> Iterator[_Page]:
        starts = (chunk.dictionary_page_offset, chunk.data_page_offset)
        position = min(each for each in starts if each is not None)
        end = position + chunk.total_compressed_size
        while position < end:
            page, position = _page(self._data, position)
            yield page


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            yield from _leaves(child)
    elif pa.types.is_map(array.type):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_list(array.type):
        yield from _leaves(array.flatten())
    else:
        yield array


def _decoded_bytes(leaf: pa.Array) -> int:
    if not pa.types.is_dictionary(leaf.type):
        return int(leaf.nbytes)
    lengths = pc.binary_length(leaf.dictionary).take(leaf.indices)
    return pc.sum(lengths).as_py() or 0


def is_below(path: str, column: str) -> bool:
    """Whether the path of a leaf is the column, or nested in it."""
    return path == column or path.startswith(f"{column}.")


def _page(data: bytes, position: int) -> tuple[_Page, int]:
    """A page and the position after it."""
    fields = dict.fromkeys((_TYPE_ID, _UNCOMPRESSED_SIZE_ID, _COMPRESSED_SIZE_ID), 0)
    value_count, id = 0, 0
    while True:
        id, type, position = thrift.read_field_header(data, position, id)
        if type == thrift.STOP:
            break
        if id in fields:
            fields[id], position = read_signed(data, position)
            continue
        if id in _VALUE_COUNT_IDS and type == thrift.STRUCT:
            _, _, first = thrift.read_field_header(data, position, 0)
            value_count, _ = read_signed(data, first)
        position = thrift.skip(data, position, type)
    end = position + fields[_COMPRESSED_SIZE_ID]
    if (
        not 0 <= fields[_UNCOMPRESSED_SIZE_ID] <= _MAX_PAGE_BYTES
        or not position <= end <= len(data)
        or value_count < 0
    ):
        raise MalformedData(
            f"A page has an invalid header, or is larger than {_MAX_PAGE_BYTES:,} bytes."
        )
    content = data[position:end]
    return _Page(fields[_TYPE_ID], fields[_UNCOMPRESSED_SIZE_ID], content, value_count), end


def _longest_entry(page: _Page, compression: str) -> int:
    """The length of the longest entry in a dictionary page."""
    content = page.content
    if compression in _CODECS:
        content = (
            pa.Codec(_CODECS[compression]).decompress(content, page.uncompressed_bytes).to_pybytes()
        )
    elif compression != "UNCOMPRESSED":
        # Two variants of LZ4 have the same name in Parquet, so the dictionary is not decompressed;
        # an entry is at most as long as its page.
        return page.uncompressed_bytes
    longest, position = 0, 0
    while position + 4 <= len(content):
        length = int.from_bytes(content[position : position + 4], "little")
        longest = max(longest, length)
        position += 4 + length
    return min(longest, page.uncompressed_bytes)
