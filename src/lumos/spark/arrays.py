"""Builds Arrow arrays of Python values without `pa.array`.

`pa.array` imports pandas to check for its types, which takes longer than listing 10,000 files.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa


def arrow_array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """An array of texts, bytes, 64-bit integers or booleans; None is null."""
    present = [value is not None for value in values]
    valid = None if all(present) else _bits(present)
    if pa.types.is_boolean(type):
        buffers = [_bits(map(bool, values))]
    elif pa.types.is_int64(type):
        buffers = [pa.py_buffer(array("q", (value or 0 for value in values)))]
    elif pa.types.is_string(type):
        buffers = _join_buffers([(value or "").encode() for value in values])
    elif pa.types.is_binary(type):
        buffers = _join_buffers([value or b"" for value in values])
    else:
        raise TypeError(f"Arrays of {type} are not supported.")
    return pa.Array.from_buffers(type, len(values), [valid, *buffers])


def _join_buffers(values: Sequence[bytes]) -> list[pa.Buffer]:
    ends = array("i", accumulate(map(len, values), initial=0))
    return [pa.py_buffer(ends), pa.py_buffer(b"".join(values))]


def _bits(flags: Iterable[bool]) -> pa.Buffer:
    """One bit for each flag; the first flag is the lowest bit."""
    digits = "".join("1" if flag else "0" for flag in flags)
    size = (len(digits) + 7) // 8
    return pa.py_buffer(int(digits[::-1] or "0", 2).to_bytes(size, "little"))
