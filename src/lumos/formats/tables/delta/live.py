"""The live files of a table, of which there may be millions: packed, and opened pile by pile."""

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from lumos.formats.tables.delta.paths import folder_elsewhere
from lumos.formats.tables.interface import Deletes

# One of ten million files is looked at in piles of 160,000.
_PILES: Final = 64
# So many files elsewhere are named one by one: beside them there may be those of other datasets.
_MOST_NAMED: Final = 10_000


class Live(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A live file; `partition` is its place in the list of partitions."""

    path: str
    size: int
    rows: int | None
    partition: int
    deletes: Deletes | None = None
    vector: str = ""

    @property
    def key(self) -> str:
        """A file with another deletion vector is another file."""
        return key_of(self.path, self.vector)


def key_of(path: str, vector: str) -> str:
    """What a file is known by in a table."""
    return f"{path}\n{vector}" if vector else path


class Pile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of the files, packed, and what they amount to; `rows` is nothing if one is unknown."""

    packed: bytes = b"\x90"
    files: int = 0
    size: int = 0
    rows: int | None = 0
    # Those that lie outside the table, if they are not too many, and their folders.
    outside: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


_encode: Final = msgspec.msgpack.Encoder().encode
_files: Final = msgspec.msgpack.Decoder(list[Live])
_steps: Final = msgspec.msgpack.Decoder(list[Live | str])


class LiveFiles:
    """Files that come and go; each step is packed at once, and all are added up in the end."""

    def __init__(self, piles: Sequence[Pile] = ()) -> None:
        self._piles = list(piles) or [Pile()] * _PILES
        # What came, or the key of what went, one after the other.
        self._later = [bytearray() for _ in self._piles]
        self._count = [0] * len(self._piles)

    def put(self, live: Live) -> None:
        """One more file, or the same one as it is now."""
        self._note(live.key, live)

    def drop(self, key: str) -> None:
        """One that is live no more, if it ever was."""
        self._note(key, key)

    def _note(self, key: str, step: Live | str) -> None:
        number = zlib.crc32(key.encode("utf-8", "surrogatepass")) % len(self._piles)
        self._later[number] += _encode(step)
        self._count[number] += 1

    def piles(self) -> list[Pile]:
        """All that is live now."""
        for number, count in enumerate(self._count):
            if count:
                self._piles[number] = self._added_up(number)
                self._later[number] = bytearray()
                self._count[number] = 0
        return self._piles

    def _added_up(self, number: int) -> Pile:
        live = {each.key: each for each in _files.decode(self._piles[number].packed)}
        for step in _steps.decode(_array(self._count[number]) + self._later[number]):
            if isinstance(step, str):
                live.pop(step, None)
            else:
                live[step.key] = step
        return _pile(list(live.values()))


def _array(length: int) -> bytes:
    """How an array of so many values begins in msgpack."""
    return b"\xdd" + length.to_bytes(4, "big")


def _pile(files: list[Live]) -> Pile:
    size, rows, unknown = 0, 0, False
    outside: dict[str, str] = {}
    for file in files:
        size += file.size
        deleted = 0 if file.deletes is None else file.deletes.count
        if file.rows is None or deleted is None:
            unknown = True
        else:
            rows += max(0, file.rows - deleted)
        if folder := folder_elsewhere(file.path):
            outside[file.path] = folder
    return Pile(
        packed=_encode(files),
        files=len(files),
        size=size,
        rows=None if unknown else rows,
        outside=tuple(sorted(outside)[: _MOST_NAMED + 1]),
        folders=tuple(sorted(set(outside.values()))),
    )


def in_piles(piles: Sequence[Pile]) -> Iterator[Live]:
    """The files themselves."""
    for pile in piles:
        yield from _files.decode(pile.packed)


class Totals(msgspec.Struct, frozen=True):
    """What all files of a table amount to."""

    files: int
    size: int
    rows: int | None
    # Files outside the table, or where they are very many their folders.
    elsewhere: tuple[str, ...]


def totals(piles: Sequence[Pile]) -> Totals:
    """What the piles amount to."""
    rows = [pile.rows for pile in piles]
    known = [count for count in rows if count is not None]
    outside = {path for pile in piles for path in pile.outside}
    if len(outside) > _MOST_NAMED:
        outside = {folder for pile in piles for folder in pile.folders}
    return Totals(
        files=sum(pile.files for pile in piles),
        size=sum(pile.size for pile in piles),
        rows=sum(known) if len(known) == len(rows) else None,
        elsewhere=tuple(sorted(outside)),
    )
