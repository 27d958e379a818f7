"""Parquet: footers alone, and schemas that were met before are not parsed again."""

import base64
import io
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.formats.columns import with_distinct_names
from lumos.formats.identification import FORMATS, read_file
from lumos.formats.interface import UnreadableFile
from lumos.formats.parquet import Parquet
from lumos.model.conversions.arrow import schema_from_arrow
from lumos.model.schema import Schema

from .material import TABLE, MemoryFile, facts_of, parquet_bytes


def fully_parsed(data: bytes) -> tuple[Schema, int]:
    """What pyarrow reads from the whole footer of a file without an Arrow schema in it."""
    file = pq.ParquetFile(
        io.BytesIO(data), coerce_int96_timestamp_unit="us", arrow_extensions_enabled=False
    )
    assert b"ARROW:schema" not in (file.metadata.metadata or {})
    schema = schema_from_arrow(file.schema_arrow)
    return with_distinct_names(schema), file.metadata.num_rows


def test_schema_and_rows_come_from_the_footer() -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("price", pa.decimal128(10, 2)),
            ("at", pa.timestamp("ms", tz="UTC")),
            ("items", pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int32())]))),
        ]
    )
    facts = facts_of("data.parquet", parquet_bytes(schema.empty_table()))
    assert str(facts.schema) == (
        "id INT64 NOT NULL\nprice DECIMAL(10,2)\nat TIMESTAMPTZ(ms)\n"
        "items ARRAY<STRUCT<sku: STRING, n: INT32>>"
    )
    assert (facts.row_count, facts.row_count_exact) == (0, True)


SCALARS = st.sampled_from(
    [
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(),
        pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
        pa.binary(7), pa.date32(), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
        pa.timestamp("ms"), pa.timestamp("us", tz="UTC"), pa.timestamp("ns"), pa.decimal128(9, 2),
        pa.decimal128(18, 0), pa.decimal128(38, 10), pa.decimal256(50, 5), pa.null(), pa.large_string(),
        pa.dictionary(pa.int32(), pa.string()), pa.duration("us"), pa.uuid(), pa.json_(),
    ]
)  # fmt: skip
NAMES = st.sampled_from(["id", "name", "größe", "a.b", "", " ", "list", "element", "x" * 300])


def fields(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.Field]:
    return st.builds(
        lambda name, type, nullable, id: pa.field(
            name,
            type,
            nullable=nullable or type == pa.null(),
            metadata=None if id is None else {b"PARQUET:field_id": str(id).encode()},
        ),
        NAMES,
        types,
        st.booleans(),
        st.none() | st.integers(0, 10**6),
    )


TYPES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        fields(inner).map(pa.list_),
        inner.map(lambda value: pa.map_(pa.string(), value)),
        st.lists(fields(inner), min_size=1, max_size=3).map(pa.struct),
    ),
    max_leaves=5,
)
SCHEMAS = st.lists(fields(TYPES), min_size=1, max_size=5).map(pa.schema)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "version": st.sampled_from(["1.0", "2.4", "2.6"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.booleans(),
        "compression": st.sampled_from(["none", "snappy", "zstd"]),
        "write_statistics": st.booleans(),
        "write_page_index": st.booleans(),
        "use_compliant_nested_type": st.booleans(),
        "row_group_size": st.integers(1, 3),
        "use_deprecated_int96_timestamps": st.booleans(),
        "store_decimal_as_integer": st.booleans(),
    },
)


def written(schema: pa.Schema, rows: int, options: dict[str, Any]) -> bytes | None:
    """A file of nulls, or nothing where pyarrow cannot write the like."""
    required = any(not field.nullable for field in schema)
    try:
        empty = required or rows == 0
        table = schema.empty_table() if empty else pa.Table.from_arrays(
            [pa.nulls(rows, field.type) for field in schema], schema=schema
        )  # fmt: skip
        return parquet_bytes(table, store_schema=False, **options)
    except (pa.ArrowException, OSError, ValueError):
        return None


@settings(max_examples=examples(200))
@given(schema=SCHEMAS, options=OPTIONS, rows=st.integers(0, 4), note=st.binary(max_size=5))
def test_a_schema_list_alone_says_as_much_as_the_whole_footer(
    schema: pa.Schema, options: dict[str, Any], rows: int, note: bytes
) -> None:
    data = written(schema.with_metadata({b"note": note}), rows, options)
    if data is None:
        return
    reader = Parquet()
    # The second time, the schema is known by its bytes.
    for _ in range(2):
        facts = reader.read(MemoryFile(data))
        assert (facts.schema, facts.row_count) == fully_parsed(data)
        assert facts.known.full == facts.schema.full
        assert facts.known.shape == facts.schema.shape


def test_the_arrow_schema_that_a_writer_adds_changes_nothing() -> None:
    table = pa.table(
        {"a": pa.array(["x"], pa.large_string()), "d": pa.array([1], pa.duration("s"))}
    )
    with_it, without = (parquet_bytes(table, store_schema=store) for store in (True, False))
    assert facts_of("a.parquet", with_it).schema == facts_of("a.parquet", without).schema


def test_times_of_spark_2_and_hive_are_reported_to_the_microsecond_as_engines_read_them() -> None:
    table = pa.table(
        {"at": pa.array([None], pa.timestamp("ns")), "in": [{"at": datetime(1, 1, 1)}]}
    )
    data = parquet_bytes(table, use_deprecated_int96_timestamps=True)
    schema = facts_of("a.parquet", data).schema
    assert str(schema) == "at TIMESTAMP(us)\nin STRUCT<at: TIMESTAMP(us)>"


def test_files_of_one_table_share_one_schema_and_have_their_own_rows() -> None:
    reader = Parquet()
    files = [parquet_bytes(TABLE.slice(0, rows), row_group_size=7) for rows in (1, 30, 50)]
    facts = [reader.read(MemoryFile(data)) for data in files]
    assert [each.row_count for each in facts] == [1, 30, 50]
    assert len({id(each.known) for each in facts}) == 1


def test_schemas_that_differ_only_at_their_end_are_distinguished() -> None:
    reader = Parquet()
    for _ in range(2):
        for last in range(200):
            names = [*(f"a_long_name_{number}" for number in range(20)), f"last_{last:03}"]
            data = parquet_bytes(pa.table({name: [1] for name in names}), store_schema=False)
            assert reader.read(MemoryFile(data)).schema.fields[-1].name == f"last_{last:03}"


def test_a_footer_longer_than_the_first_read_is_read_whole() -> None:
    data = parquet_bytes(pa.table({f"column_{n}": [n] for n in range(3000)}))
    file = MemoryFile(data)
    result = read_file("wide.parquet", file)
    assert result is not None
    assert len(result[1].schema.fields) == 3000
    assert [end for end, _ in file.reads] == ["tail", "tail"]


def test_columns_with_one_name_are_distinguished() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    assert str(facts_of("a.parquet", parquet_bytes(table)).schema) == "a INT64\na_2 STRING"


def thrift_footer(*parts: bytes) -> bytes:
    footer = b"".join(parts)
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_a_footer_whose_fields_stand_in_another_order_is_read() -> None:
    data = parquet_bytes(pa.table({"a": [1, 2, 3]}), store_schema=False)
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    end = footer.index(b"\x16\x06\x19")
    # Rows (field 3) in front of the schema (field 2), each with its full number.
    data = thrift_footer(b"\x36\x06", b"\x09\x04", footer[3:end], b"\x29\x0c\x00")
    assert facts_of("a.parquet", data)[1] == 3


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"PAR1", "not_parquet", id="only the first four bytes"),
        pytest.param(b"PAR1 cut off in the middle", "not_parquet", id="cut off"),
        pytest.param(b"hello", "not_parquet", id="text that says it is Parquet"),
        pytest.param(b"PAR1" + b"\xff" * 20 + b"\x14\x00\x00\x00PAR1", "corrupt_file", id="nonsense"),
        pytest.param(b"PAR1" + b"\xff" * 20 + b"\xff\xff\x00\x00PAR1", "corrupt_file", id="too long"),
        pytest.param(b"PARE" + b"\xff" * 20 + b"\x14\x00\x00\x00PARE", "encrypted_file", id="encrypted"),
        pytest.param(thrift_footer(b""), "corrupt_file", id="an empty footer"),
        pytest.param(thrift_footer(b"\x15\x02\x00"), "corrupt_file", id="no schema"),
        pytest.param(thrift_footer(b"\x15\x02\x19\xfc\xff\xff\xff\x7f"), "corrupt_file", id="a schema without end"),
        pytest.param(thrift_footer(b"\x15\x02" + b"\x1c" * 500), "corrupt_file", id="endless depth"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_with_a_code(data: bytes, code: str) -> None:
    with pytest.raises(UnreadableFile) as problem:
        facts_of("data.parquet", data)
    assert problem.value.code == code


def test_negative_rows_are_damage() -> None:
    data = parquet_bytes(pa.table({"a": [1]}), store_schema=False)
    assert data.count(b"\x16\x02\x19") == 1
    with pytest.raises(UnreadableFile, match="negative row count"):
        facts_of("a.parquet", data.replace(b"\x16\x02\x19", b"\x16\x01\x19"))


def vault(_: Any) -> Any:
    """Keeps keys by writing them in another alphabet; the writer asks for no more."""
    from pyarrow.parquet.encryption import KmsClient

    class Vault(KmsClient):  # type: ignore[misc]
        def wrap_key(self, key: bytes, name: str) -> bytes:
            return base64.b64encode(name.encode() + key)

        def unwrap_key(self, wrapped: bytes, name: str) -> bytes:
            return base64.b64decode(wrapped)[len(name) :]

    return Vault()


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_of_encrypted_files_those_with_a_plain_footer_are_read(plaintext_footer: bool) -> None:
    encryption = pytest.importorskip("pyarrow.parquet.encryption")
    keys = encryption.KmsConnectionConfig()
    properties = encryption.CryptoFactory(vault).file_encryption_properties(
        keys,
        encryption.EncryptionConfiguration(
            footer_key="footer", column_keys={"column": ["name"]}, plaintext_footer=plaintext_footer
        ),
    )
    data = parquet_bytes(TABLE, encryption_properties=properties, store_schema=False)
    if plaintext_footer:
        facts = facts_of("a.parquet", data, column_stats=True)
        assert facts.row_count == TABLE.num_rows
        assert [field.name for field in facts.schema.fields] == TABLE.column_names
        assert {column.path for column in facts.columns} >= {"id", "share"}
    else:
        with pytest.raises(UnreadableFile) as problem:
            facts_of("a.parquet", data)
        assert problem.value.code == "encrypted_file"


def test_parquet_says_that_it_carries_its_schema() -> None:
    assert [name for name, format in FORMATS.items() if format.declares_schema] == [
        "parquet",
        "avro",
        "orc",
    ]
