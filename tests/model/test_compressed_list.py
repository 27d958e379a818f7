from datetime import UTC, datetime

import pytest

from lumos.model.compressed_list import CompressedList, json_parts
from lumos.model.dataset import Definition, Location, Statistics
from lumos.model.discovery import (
    Discovery,
    FoundDataset,
    PastSchema,
    SourceMetadata,
    TableState,
)
from lumos.model.json_codec import to_json, to_plain
from lumos.model.schema import parse_schema


def table(number: int) -> FoundDataset:
    schema = parse_schema(
        "id INT64 NOT NULL KEY COMMENT 'its number'\nsum DECIMAL(9,2)\nn STRUCT<a: DATE>"
    )
    past = PastSchema(schema=schema, at=datetime(2026, 1, 2, tzinfo=UTC), version="1")
    return FoundDataset(
        path=f"shop/table_{number}",
        format="table",
        location=Location(uri=f"mysql://shop/table_{number}", identity=f"id/{number}"),
        schema=schema,
        statistics=Statistics(row_count=number, total_size_bytes=10),
        drift=(),
        content=str(number),
        source_metadata=SourceMetadata(
            definition=Definition(sql="SELECT 1", dialect="mysql"), properties={"engine": "x"}
        ),
        table=TableState(version="1", at=datetime.max.replace(tzinfo=UTC), past=(past,)),
    )


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompressedList, "max_plain", 3)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 52, 53, 54, 160])
def test_a_compressed_list_is_like_a_tuple_of_its_values(count: int) -> None:
    values = tuple(map(table, range(count)))
    packed = CompressedList(FoundDataset, values)
    assert (len(packed), tuple(packed)) == (count, values)
    assert packed == values
    assert values == packed
    assert packed != (*values, table(count))
    assert bool(packed) is bool(values)
    assert [packed[number] for number in range(count)] == list(values)
    if values:
        assert packed[-1] == values[-1]
    assert packed[1:5] == list(values[1:5])
    with pytest.raises(IndexError):
        packed[count]


@pytest.mark.parametrize("count", [0, 2, 53, 160])
def test_a_compressed_list_is_written_as_json_like_a_tuple(count: int) -> None:
    values = tuple(map(table, range(count)))
    plain = Discovery(datasets=values, tables=3)
    packed = Discovery(datasets=CompressedList(FoundDataset, values), tables=3)
    assert to_json(packed) == to_json(plain)
    assert b"".join(json_parts(packed)) == to_json(plain)
    assert b"".join(json_parts(plain)) == to_json(plain)
    assert list(to_plain(packed)["datasets"]) == list(to_plain(plain)["datasets"])


def test_most_values_of_a_compressed_list_take_a_twentieth_of_their_memory() -> None:
    packed = CompressedList(FoundDataset, map(table, range(1_003)))
    assert sum(map(len, packed._blocks)) < 1_000 * 100
    assert len(packed._plain) == 3
    assert len(packed._rest) < 50
