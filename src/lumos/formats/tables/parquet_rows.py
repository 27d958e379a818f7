"""Decodes Parquet files of table logs with a memory limit, since a few bytes may become gigabytes.

The totals in a footer may be wrong. Readers allocate the uncompressed sizes in the headers of
pages, and repeat the entries of dictionaries, which may be long, for each row. The longer the rows,
the fewer are decoded at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lumos.formats import thrift
from lumos.formats.varints import MalformedData, read_signed

# The bytes are already in memory, so all of these errors mean a damaged file.
FAULTS: Final = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, ArithmeticError)

# Writers make pages of one megabyte, or of one longer value.
_MAX_PAGE_BYTES: Final = 64 * 1024 * 1024
_MAX_VALUES: Final = 100_000_000
# The limits of a batch, and of all lists of a column.
_MAX_BATCH_BYTES: Final = 64 * 1024 * 1024
_MAX_LIST_BYTES: Final = 1024 * 1024 * 1024
_FEW: Final = 1_000

_DICTIONARY_PAGE: Final = 2
_KIND, _UNCOMPRESSED, _COMPRESSED = 1, 2, 3
# The structs in a page header that begin with the number of values.
_COUNTING: Final = frozenset({5, 7, 8})
_CODECS: Final = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd"}


class _Page(NamedTuple):
    kind: int
    uncompressed: int
    content: bytes
    values: int


class ParquetRows:
    """The rows of a file; all methods may raise MalformedData, or one of FAULTS."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._file = pq.ParquetFile(pa.BufferReader(data), memory_map=False)
        self.schema: pa.Schema = self._file.schema_arrow
        leaves = self._file.schema
        self.columns = [leaves.column(number).path for number in range(len(leaves))]

    def batches(self, columns: Sequence[str], *, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some columns, at most `rows` at a time."""
        wanted = [
            number
            for number, path in enumerate(self.columns)
            if any(is_below(path, column) for column in columns)
        ]
        groups = range(self._file.metadata.num_row_groups)
        longest = max(
            (sum(self._largest_value(each, at) for at in wanted) for each in groups), default=0
        )
        size = max(1, min(rows, _MAX_BATCH_BYTES // max(1, longest)))
        yield from self._file.iter_batches(size, columns=list(columns), use_threads=False)

    def _largest_value(self, group: int, number: int) -> int:
        """The largest size of a value of a column; raises MalformedData above the limits."""
        row_group = self._file.metadata.row_group(group)
        chunk = row_group.column(number)
        values, uncompressed, repeated, plain = 0, 0, 0, 0
        for page in self._pages(chunk):
            values += page.values
            uncompressed += page.uncompressed
            if page.kind == _DICTIONARY_PAGE and chunk.physical_type == "BYTE_ARRAY":
                repeated = _longest_entry(page, chunk.compression)
            elif page.values:
                plain = max(plain, page.uncompressed // page.values)
        if values > _MAX_VALUES:
            raise MalformedData(f"It has more than {_MAX_VALUES:,} values.")
        if self._file.schema.column(number).max_repetition_level == 0:
            return max(repeated, plain)
        # All values may belong to a single row.
        lists = max(uncompressed, values * repeated)
        if lists > _MAX_LIST_BYTES:
            lists = self._size_of_lists(group, self.columns[number])
        if lists > _MAX_LIST_BYTES:
            raise MalformedData(f"It decompresses to more than {_MAX_LIST_BYTES:,} bytes.")
        return lists // max(1, int(row_group.num_rows))

    def _size_of_lists(self, group: int, column: str) -> int:
        """The size of a column's values, without expanding dictionaries."""
        file = pq.ParquetFile(pa.BufferReader(self._data), read_dictionary=[column])
        return sum(
            _size(leaf)
            for batch in file.iter_batches(_FEW, [group], [column], use_threads=False)
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


def _size(leaf: pa.Array) -> int:
    if not pa.types.is_dictionary(leaf.type):
        return int(leaf.nbytes)
    lengths = pc.binary_length(leaf.dictionary).take(leaf.indices)
    return pc.sum(lengths).as_py() or 0


def is_below(path: str, column: str) -> bool:
    """Whether a leaf is the column or a part of it."""
    return path == column or path.startswith(f"{column}.")


def _page(data: bytes, position: int) -> tuple[_Page, int]:
    """A page and the position after it."""
    found = dict.fromkeys((_KIND, _UNCOMPRESSED, _COMPRESSED), 0)
    values, id = 0, 0
    while True:
        id, type, position = thrift.read_field_header(data, position, id)
        if type == thrift.STOP:
            break
        if id in found:
            found[id], position = read_signed(data, position)
            continue
        if id in _COUNTING and type == thrift.STRUCT:
            _, _, first = thrift.read_field_header(data, position, 0)
            values, _ = read_signed(data, first)
        position = thrift.skip(data, position, type)
    end = position + found[_COMPRESSED]
    if (
        not 0 <= found[_UNCOMPRESSED] <= _MAX_PAGE_BYTES
        or not position <= end <= len(data)
        or values < 0
    ):
        raise MalformedData(
            f"A page has an invalid header, or is larger than {_MAX_PAGE_BYTES:,} bytes."
        )
    return _Page(found[_KIND], found[_UNCOMPRESSED], data[position:end], values), end


def _longest_entry(page: _Page, compression: str) -> int:
    """The length of the longest entry in a dictionary page."""
    content = page.content
    if compression in _CODECS:
        content = pa.Codec(_CODECS[compression]).decompress(content, page.uncompressed).to_pybytes()
    elif compression != "UNCOMPRESSED":
        # Two variants of LZ4 share a name, so treat such a dictionary as a single entry.
        return page.uncompressed
    longest, position = 0, 0
    while position + 4 <= len(content):
        length = int.from_bytes(content[position : position + 4], "little")
        longest = max(longest, length)
        position += 4 + length
    return min(longest, page.uncompressed)
