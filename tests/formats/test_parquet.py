"""Parquet: footers alone."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.formats import FileFacts, UnreadableFile, identify, read_file
from lumos.storage import LocalStorage


def read(file: Path) -> FileFacts:
    with LocalStorage().open(str(file)) as opened:
        found = read_file(file.name, opened)
    assert found is not None
    return found[1]


def test_schema_and_rows_come_from_the_footer(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("price", pa.decimal128(10, 2)),
            ("at", pa.timestamp("ms", tz="UTC")),
            ("items", pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int32())]))),
        ]
    )
    file = tmp_path / "data.parquet"
    pq.write_table(schema.empty_table(), file)
    facts = read(file)
    assert str(facts.schema) == (
        "id INT64 NOT NULL\nprice DECIMAL(10,2)\nat TIMESTAMPTZ(ms)\n"
        "items ARRAY<STRUCT<sku: STRING, n: INT32>>"
    )
    assert (facts.row_count, facts.row_count_exact) == (0, True)


def test_a_footer_longer_than_the_first_read_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "wide.parquet"
    pq.write_table(pa.table({f"column_{n}": [n] for n in range(3000)}), file)
    assert len(read(file).schema.fields) == 3000


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"PAR1", "not_parquet", id="only the first four bytes"),
        pytest.param(b"PAR1 cut off in the middle", "not_parquet", id="cut off"),
        pytest.param(b"hello", "not_parquet", id="text that says it is Parquet"),
        pytest.param(b"PAR1" + b"\xff" * 20 + b"\x14\x00\x00\x00PAR1", "corrupt_file", id="nonsense"),
        pytest.param(b"PAR1" + b"\xff" * 20 + b"\xff\xff\x00\x00PAR1", "corrupt_file", id="too long"),
        pytest.param(b"PARE" + b"\xff" * 20 + b"\x14\x00\x00\x00PARE", "encrypted_file", id="encrypted"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_with_a_code(tmp_path: Path, data: bytes, code: str) -> None:
    file = tmp_path / "data.parquet"
    file.write_bytes(data)
    with pytest.raises(UnreadableFile) as problem:
        read(file)
    assert problem.value.code == code


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        pytest.param("a.csv", b"PAR1\x15\x04", "parquet", id="magic bytes win over the name"),
        pytest.param("part-0", b"PAR1\x15\x04", "parquet", id="no ending"),
        pytest.param("A.CSV", b"a,b", "csv", id="upper case"),
        pytest.param("x.png", b"\x89PNG", None, id="a picture"),
        pytest.param("README", b"read me", None, id="a text without ending"),
    ],
)
def test_a_format_is_known_by_first_bytes_then_by_name(
    name: str, head: bytes, format: str | None
) -> None:
    found = identify(name, head)
    assert (found.name if found else None) == format
