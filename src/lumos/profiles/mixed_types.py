"""Columns whose rows are of several types, as those of JSON may be."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


class Mixed(pa.ExtensionType):  # type: ignore[misc]
    """One member for each type; in a row, no more than one of them is there.

    A union would say the same, but Arrow cannot take one out of structs that may be null.
    """

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "lumos.mixed")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, _: bytes) -> "Mixed":
        return cls(storage)


def mixed(arrays: Sequence[pa.Array]) -> pa.Array:
    """One column of arrays, each of which has the rows of a type and nulls in all others."""
    if len(arrays) == 1:
        return arrays[0]
    rows = pa.StructArray.from_arrays(arrays, [str(number) for number in range(len(arrays))])
    return pa.ExtensionArray.from_storage(Mixed(rows.type), rows)


def parts_of(column: pa.Array) -> list[pa.Array]:
    """The arrays that such a column is made of."""
    rows = column.storage
    return [pc.struct_field(rows, [number]) for number in range(rows.type.num_fields)]
