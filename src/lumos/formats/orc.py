"""ORC: the end of the file tells schema, rows and statistics.

The footer is read here and not by the usual library, which dies of damaged files.
"""

from typing import ClassVar, Final

from lumos.formats.interface import BinaryFormat, FileFacts, RangedBytes, UnreadableFile
from lumos.formats.orc_columns import read_columns
from lumos.formats.orc_compression import unpacked
from lumos.formats.orc_types import read_types
from lumos.formats.protobuf import fields
from lumos.formats.varints import Malformed

_MAGIC: Final = b"ORC"
# Nearly every footer fits; a longer one costs one more read.
_FIRST_READ: Final = 64 * 1024
_LARGEST_FOOTER: Final = 64 * 1024 * 1024
# Field numbers of the postscript and of the footer.
_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE = 1, 2, 3
_STRIPES, _TYPES, _ROWS, _STATISTICS = 3, 4, 6, 7
# In what is said of a stripe.
_STRIPE_ROWS: Final = 5


class Orc(BinaryFormat):
    name: ClassVar[str] = "orc"
    title: ClassVar[str] = "ORC"
    suffixes: ClassVar[tuple[str, ...]] = (".orc",)

    def claims_head(self, head: bytes) -> bool:
        return head.startswith(_MAGIC)

    def claims(self, file: RangedBytes) -> bool:
        return file.tail(_FIRST_READ)[-4:-1] == _MAGIC

    def read(self, file: RangedBytes, *, column_stats: bool = False) -> FileFacts:
        if not self.claims(file):
            raise UnreadableFile(
                "not_orc", "The file does not end as ORC does: cut off, or something else."
            )
        try:
            types, rows, statistics = _parts(_footer(file), with_statistics=column_stats)
            schema = read_types(types)
            columns = read_columns(schema.columns, rows, statistics) if column_stats else ()
        except Malformed as problem:
            reason = f"The ORC footer is damaged: {problem}"
            raise UnreadableFile("corrupt_file", reason) from None
        return FileFacts(schema.known, rows, row_count_exact=True, columns=columns)


def _footer(file: RangedBytes) -> bytes:
    tail = file.tail(_FIRST_READ)
    postscript_length = tail[-1]
    facts = dict(fields(tail[-1 - postscript_length : -1]))
    length, codec, block_size = (
        value if isinstance(value := facts.get(id, 0), int) else 0
        for id in (_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE)
    )
    needed = length + postscript_length + 1
    if needed > min(file.size, _LARGEST_FOOTER):
        raise Malformed("It claims more bytes than there are.")
    if needed > len(tail):
        tail = file.tail(needed)
    stored = tail[-needed : -1 - postscript_length]
    return unpacked(stored, codec, block_size)


def _parts(footer: bytes, *, with_statistics: bool) -> tuple[tuple[bytes, ...], int, list[bytes]]:
    """The messages of types, the number of rows and the messages of statistics."""
    types: list[bytes] = []
    statistics: list[bytes] = []
    rows = 0
    for id, value in fields(footer):
        if isinstance(value, int):
            if id == _ROWS:
                rows = value
                if types and not with_statistics:
                    break
        elif id == _TYPES:
            types.append(value)
        elif id == _STATISTICS:
            statistics.append(value)
    if rows >= 2**63:
        raise Malformed("It tells of less than no rows.")
    return tuple(types), rows, statistics


def rows_of_stripes(footer: bytes) -> list[int]:
    """How many rows each stripe of a file has, by its footer; raises Malformed."""
    found = []
    for id, stripe in fields(footer):
        if id == _STRIPES and isinstance(stripe, bytes):
            rows = dict(fields(stripe)).get(_STRIPE_ROWS, 0)
            found.append(rows if isinstance(rows, int) else 0)
    return found
