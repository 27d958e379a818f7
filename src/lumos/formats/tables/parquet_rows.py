"""Parquet files of logs, decoded within bounds: a few bytes may unpack to gigabytes.

The sums of a footer need not be true. Its pages tell what they unpack to, and that is what readers
allocate; dictionaries repeat their entries, which may be long, once for each row. Where rows are
long, few of them are decoded at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lumos.formats import thrift
from lumos.formats.varints import Malformed, signed

# The bytes are here already: whatever fails is the file's own fault.
FAULTS: Final = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, ArithmeticError)

# Writers make pages of one megabyte, or of one value that is longer.
_LONGEST_PAGE: Final = 64 * 1024 * 1024
_MOST_VALUES: Final = 100_000_000
# What is unpacked at a time, and of all lists of a column.
_LONGEST_BATCH: Final = 64 * 1024 * 1024
_LONGEST_LISTS: Final = 1024 * 1024 * 1024
_FEW: Final = 1_000

_DICTIONARY_PAGE: Final = 2
_KIND, _UNPACKED, _PACKED = 1, 2, 3
# Records of a page's header that begin with the number of its values.
_COUNTING: Final = frozenset({5, 7, 8})
_CODECS: Final = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd"}


class _Page(NamedTuple):
    kind: int
    unpacked: int
    content: bytes
    values: int


class ParquetRows:
    """The rows of a file; everything may raise Malformed, or one of FAULTS."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._file = pq.ParquetFile(pa.BufferReader(data), memory_map=False)
        self.schema: pa.Schema = self._file.schema_arrow
        leaves = self._file.schema
        self.columns = [leaves.column(number).path for number in range(len(leaves))]

    def batches(self, columns: Sequence[str], *, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some columns, at most so many of them at a time."""
        wanted = [
            number
            for number, path in enumerate(self.columns)
            if any(is_below(path, column) for column in columns)
        ]
        groups = range(self._file.metadata.num_row_groups)
        longest = max((sum(self._longest(each, at) for at in wanted) for each in groups), default=0)
        size = max(1, min(rows, _LONGEST_BATCH // max(1, longest)))
        yield from self._file.iter_batches(size, columns=list(columns), use_threads=False)

    def _longest(self, group: int, number: int) -> int:
        """How long a row of a column may be; refuses what is out of bounds."""
        told = self._file.metadata.row_group(group)
        chunk = told.column(number)
        values, unpacked, repeated, plain = 0, 0, 0, 0
        for page in self._pages(chunk):
            values += page.values
            unpacked += page.unpacked
            if page.kind == _DICTIONARY_PAGE and chunk.physical_type == "BYTE_ARRAY":
                repeated = _longest_entry(page, chunk.compression)
            elif page.values:
                plain = max(plain, page.unpacked // page.values)
        if values > _MOST_VALUES:
            raise Malformed("It holds more than can be.")
        if self._file.schema.column(number).max_repetition_level == 0:
            return max(repeated, plain)
        # The values of all rows may belong to a single one.
        lists = max(unpacked, values * repeated)
        if lists > _LONGEST_LISTS:
            lists = self._length_of_lists(group, self.columns[number])
        if lists > _LONGEST_LISTS:
            raise Malformed("It unpacks to more than can be.")
        return lists // max(1, int(told.num_rows))

    def _length_of_lists(self, group: int, column: str) -> int:
        """What the values of a column come to, without unpacking those that a dictionary holds."""
        file = pq.ParquetFile(pa.BufferReader(self._data), read_dictionary=[column])
        return sum(
            _length(leaf)
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


def _length(leaf: pa.Array) -> int:
    if not pa.types.is_dictionary(leaf.type):
        return int(leaf.nbytes)
    lengths = pc.binary_length(leaf.dictionary).take(leaf.indices)
    return pc.sum(lengths).as_py() or 0


def is_below(path: str, column: str) -> bool:
    """Whether a leaf is a column or a part of it."""
    return path == column or path.startswith(f"{column}.")


def _page(data: bytes, position: int) -> tuple[_Page, int]:
    """A page and the position behind it."""
    found = dict.fromkeys((_KIND, _UNPACKED, _PACKED), 0)
    values, id = 0, 0
    while True:
        id, type, position = thrift.field(data, position, id)
        if type == thrift.STOP:
            break
        if id in found:
            found[id], position = signed(data, position)
            continue
        if id in _COUNTING and type == thrift.STRUCT:
            _, _, first = thrift.field(data, position, 0)
            values, _ = signed(data, first)
        position = thrift.skip(data, position, type)
    end = position + found[_PACKED]
    if not 0 <= found[_UNPACKED] <= _LONGEST_PAGE or not position <= end <= len(data) or values < 0:
        raise Malformed("A page of it unpacks to more than can be, or is none.")
    return _Page(found[_KIND], found[_UNPACKED], data[position:end], values), end


def _longest_entry(page: _Page, compression: str) -> int:
    """The longest entry of a dictionary: each has its length before it."""
    content = page.content
    if compression in _CODECS:
        content = pa.Codec(_CODECS[compression]).decompress(content, page.unpacked).to_pybytes()
    elif compression != "UNCOMPRESSED":
        # A footer calls two kinds of LZ4 alike: such a dictionary is taken for one entry.
        return page.unpacked
    longest, position = 0, 0
    while position + 4 <= len(content):
        length = int.from_bytes(content[position : position + 4], "little")
        longest = max(longest, length)
        position += 4 + length
    return min(longest, page.unpacked)
