"""A list that keeps most of its values compressed."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from types import GenericAlias
from typing import Any, ClassVar, Final, TypeVar, overload

from lumos.model.json_codec import from_json, to_json

Value = TypeVar("Value")

_BLOCK: Final = 50
# The fastest level. Tables of one source resemble each other, so it takes most of their size.
_LEVEL: Final = 1


class CompressedList(Sequence[Value]):
    """Values of one type; those after the first `max_plain` are compressed as JSON in blocks.

    With it, the memory of a scan hardly depends on the number of tables. Values are only added, and
    usually read in order.
    """

    # Compressing takes time, which short lists need not spend.
    max_plain: ClassVar[int] = 1_000

    def __init__(self, type: type[Value], values: Iterable[Value] = ()) -> None:
        self._type = type
        self._block_type: Any = GenericAlias(list, (type,))
        self._plain: list[Value] = []
        self._blocks: list[bytes] = []
        # The values after the last complete block.
        self._rest: list[Value] = []
        for value in values:
            self.append(value)

    def append(self, value: Value) -> None:
        """Add a value at the end."""
        if len(self._plain) < self.max_plain:
            self._plain.append(value)
            return
        self._rest.append(value)
        if len(self._rest) == _BLOCK:
            self._blocks.append(zlib.compress(to_json(self._rest), _LEVEL))
            self._rest = []

    def __len__(self) -> int:
        return len(self._plain) + len(self._blocks) * _BLOCK + len(self._rest)

    def __iter__(self) -> Iterator[Value]:
        yield from self._plain
        for block in self._blocks:
            yield from self._values_of(block)
        yield from self._rest

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> list[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | list[Value]:
        if isinstance(index, slice):
            return list(self)[index]
        number = range(len(self))[index] - len(self._plain)
        if number < 0:
            return self._plain[number]
        block, position = divmod(number, _BLOCK)
        values = self._rest if block == len(self._blocks) else self._values_of(self._blocks[block])
        return values[position]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(
            one == another for one, another in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self):,} values of {self._type.__name__}>"

    def json_parts(self) -> Iterator[bytes]:
        """The list as JSON, in parts."""
        blocks = map(zlib.decompress, self._blocks)
        separator = b""
        yield b"["
        for part in chain([to_json(self._plain)], blocks, [to_json(self._rest)]):
            # Without the brackets.
            if values := part[1:-1]:
                yield separator + values
                separator = b","
        yield b"]"

    def _values_of(self, block: bytes) -> list[Value]:
        values: list[Value] = from_json(zlib.decompress(block), self._block_type)
        return values


def json_parts(value: Any) -> Iterator[bytes]:
    """The JSON of a struct in parts, since its compressed lists may be large."""
    names: tuple[str, ...] = getattr(value, "__struct_fields__", ())
    if not any(isinstance(getattr(value, name), CompressedList) for name in names):
        yield to_json(value)
        return
    start = b"{"
    for name in names:
        yield start + to_json(name) + b":"
        each = getattr(value, name)
        if isinstance(each, CompressedList):
            yield from each.json_parts()
        else:
            yield to_json(each)
        start = b","
    yield b"}"
