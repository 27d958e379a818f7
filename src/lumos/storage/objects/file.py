"""Ranged reads of one object, none of them made twice."""

from typing import Final, Protocol

from lumos.storage.errors import StorageFault
from lumos.storage.objects.bucket import Piece, Range

# One request costs more time than this many bytes, so smaller objects are fetched whole.
_WHOLE: Final = 64 * 1024
_RANGE_NOT_SATISFIABLE: Final = 416


class Ranged(Protocol):
    """Whatever gives ranges of the bytes below a key."""

    @property
    def serves_ends(self) -> bool: ...

    def get(self, key: str, wanted: Range | None = None, *, etag: str = "") -> Piece: ...


class ObjectFile:
    """An object; what was fetched of its beginning and its end is kept while it is open."""

    def __init__(self, bucket: Ranged, key: str, size: int | None) -> None:
        self._bucket = bucket
        self._key = key
        self._size = size
        self._etag = ""
        self._head = b""
        self._tail = b""

    @property
    def size(self) -> int:
        if self._size is None:
            self.head(1)
        assert self._size is not None, "every answer tells the size"
        return self._size

    def head(self, length: int) -> bytes:
        if not self._is_whole() and len(self._head) < length:
            self._fetch_head(length)
        return (self._tail if self._is_whole() else self._head)[:length]

    def tail(self, length: int) -> bytes:
        if not self._is_whole() and len(self._tail) < length:
            self._fetch_tail(length)
            # What was fetched may meet the beginning that is here already.
            self._is_whole()
        kept = self._tail
        return kept[max(0, len(kept) - length) :]

    def part(self, start: int, length: int) -> bytes:
        end = min(start + length, self.size)
        if start >= end:
            return b""
        return self._tail[start:end] if self._is_whole() else self._got(Range(start, end))

    def _is_whole(self) -> bool:
        """Whether all bytes are here, which then stand in the tail."""
        if self._size is not None and len(self._head) + len(self._tail) >= self._size:
            overlap = len(self._head) + len(self._tail) - self._size
            self._tail = self._head + self._tail[overlap:]
            self._head = b""
        return self._size is not None and len(self._tail) >= self._size

    def _fetch_head(self, length: int) -> None:
        if self._size is not None and self._size <= max(_WHOLE, length):
            self._fetch_rest()
            return
        self._head += self._got(Range(len(self._head), length))

    def _fetch_tail(self, length: int) -> None:
        if self._size is not None and self._size <= max(_WHOLE, length):
            self._fetch_rest()
        elif self._tail:
            end = self.size - len(self._tail)
            self._tail = self._got(Range(max(0, self.size - length), end)) + self._tail
        else:
            self._tail = self._last(length)

    def _last(self, length: int) -> bytes:
        if self._bucket.serves_ends:
            return self._got(Range(-length))
        while True:
            size = self.size
            try:
                found = self._got(Range(max(0, size - length), size)) if size else b""
            except StorageFault as problem:
                if problem.status != _RANGE_NOT_SATISFIABLE or self._etag:
                    raise
                # It is shorter than it was when it was listed.
                self._size = None
                continue
            if self._size == size:
                return found

    def _fetch_rest(self) -> None:
        """All that is missing between head and tail."""
        if not self._head and not self._tail:
            self._tail = self._got(None)
            return
        end = self.size - len(self._tail)
        self._tail = self._got(Range(len(self._head), end)) + self._tail

    def _got(self, wanted: Range | None) -> bytes:
        try:
            # Later pieces must be of the same object as the first one.
            piece = self._bucket.get(self._key, wanted, etag=self._etag)
        except StorageFault as problem:
            is_elsewhere = wanted is None or wanted.start > 0
            if problem.status != _RANGE_NOT_SATISFIABLE or self._etag or is_elsewhere:
                raise
            # An object without bytes has no range at all.
            self._size = 0
            return b""
        # It may have been replaced since it was listed, and then has another size.
        self._size, self._etag = piece.size, piece.etag
        return piece.data
