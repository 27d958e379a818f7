"""What a column of a file is in the dataset's type."""

import pyarrow as pa
import pytest

from lumos.model.types import parse_type
from lumos.profiles.columns import ProfiledColumn
from lumos.profiles.values import column_values


@pytest.mark.parametrize(
    ("type", "misfits"),
    [
        pytest.param("UNION<INT64, STRING>", 0, id="as it is"),
        pytest.param("INT64", 3, id="when it was something else"),
    ],
)
def test_a_union_in_structs_that_may_be_null_is_there_or_not(type: str, misfits: int) -> None:
    children = [pa.array([1, 2, 3, 4]), pa.array(["a", "b", "c", "d"])]
    union = pa.UnionArray.from_sparse(pa.array([0, 1, 0, 1], pa.int8()), children)
    missing = pa.array([False, True, False, False])
    structs = pa.StructArray.from_arrays([union], ["u"], mask=missing)
    found = column_values(ProfiledColumn("s.u", ("s", "u"), parse_type(type)), structs, 4)
    assert (found.array.null_count - found.misfits, found.misfits) == (1, misfits)
