"""Arrow arrays made from bytes."""

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.spark.arrays import arrow_array

KINDS = {
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    pa.binary(): st.binary(max_size=20),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.bool_(): st.booleans(),
}


@pytest.mark.parametrize("type", KINDS, ids=str)
@given(data=st.data())
def test_an_array_holds_what_arrow_itself_would_put_there(type: pa.DataType, data: Any) -> None:
    values = data.draw(st.lists(st.none() | KINDS[type], max_size=40))
    made = arrow_array(values, type)
    made.validate(full=True)
    assert made.equals(pa.array(values, type))


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="float"):
        arrow_array([1.0], pa.float32())


def test_pandas_is_not_imported() -> None:
    code = (
        "import sys, pyarrow as pa\nfrom lumos.spark.arrays import arrow_array\n"
        "arrow_array(['a', None], pa.string())\nassert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
