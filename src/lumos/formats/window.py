"""A file whose every byte is fetched once, however often formats look at it."""

from lumos.formats.interface import RangedBytes


class Window:
    """Ranged reads that remember the longest beginning and end that were read."""

    __slots__ = ("_file", "_head", "_tail", "size")

    def __init__(self, file: RangedBytes) -> None:
        self._file = file
        self._head = b""
        self._tail = b""
        self.size = file.size

    def head(self, length: int) -> bytes:
        length = min(length, self.size)
        if len(self._head) < length:
            whole = len(self._tail) == self.size
            self._head = self._tail if whole else self._file.head(length)
        return self._head[:length]

    def tail(self, length: int) -> bytes:
        length = min(length, self.size)
        if len(self._tail) < length:
            whole = len(self._head) == self.size
            self._tail = self._head if whole else self._file.tail(length)
        return self._tail[-length:] if length < len(self._tail) else self._tail
