"""Which shape is the dataset's, over several scans."""

import pytest

from lumos.discovery.lake.dataset_schema import (
    PresentShape,
    ShapeMemory,
    choose_schema,
    complete_types,
)
from lumos.formats.interface import MAYBE_INTEGERS
from lumos.model.schema import Field, Schema, parse_schema
from lumos.model.types import FLOAT64, INT64

A = parse_schema("id INT64")
B = parse_schema("id INT64\nprice FLOAT64")
C = parse_schema("id INT64\nprice FLOAT64\nnote STRING")
NAMES = {"A": A, "B": B, "C": C}


class Lake:
    """Files by name, each with a shape, an age and perhaps a partition; scanned again and again."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[Schema, str, int]] = {}
        self.clock = 0
        self.memory: ShapeMemory | None = None
        self.reverted = False

    def write(self, name: str, shape: str, *, partition: str = "") -> None:
        self.clock += 1
        self.files[name] = (NAMES[shape], partition, self.clock)

    def scan(self) -> str:
        by_shape: dict[str, list[tuple[Schema, str, int]]] = {}
        for file in self.files.values():
            by_shape.setdefault(file[0].shape, []).append(file)
        present = [
            PresentShape(
                full=group[0][0].full,
                shape=shape,
                newest=max((partition, age) for _, partition, age in group),
                file_count=len(group),
                oldest=min(age for *_, age in group),
            )
            for shape, group in by_shape.items()
        ]
        choice = choose_schema(present, self.memory)
        self.memory, self.reverted = choice.memory, choice.reverted
        return next(name for name, schema in NAMES.items() if schema.full == choice.memory.full)


def test_a_new_shape_is_the_datasets_at_once_and_stays() -> None:
    lake = Lake()
    lake.write("1", "B")
    assert lake.scan() == "B"
    lake.write("2", "A")
    assert [lake.scan(), lake.scan()] == ["A", "A"]


@pytest.mark.parametrize("order", [("A", "B"), ("B", "A")])
def test_a_first_scan_that_meets_two_shapes_takes_the_newest_partition(
    order: tuple[str, str],
) -> None:
    lake = Lake()
    partitions = {"A": "2024-01-01", "B": "2024-01-02"}
    for shape in order:
        lake.write(shape, shape, partition=partitions[shape])
    assert [lake.scan(), lake.scan()] == ["B", "B"]


def test_a_backfill_with_an_old_shape_changes_nothing() -> None:
    lake = Lake()
    lake.write("1", "A", partition="2024-01-02")
    lake.scan()
    lake.write("2", "B", partition="2024-01-03")
    lake.scan()
    for day in ("2023-12-30", "2023-12-31", "2024-01-01"):
        lake.write(day, "A", partition=day)
        assert lake.scan() == "B"
    assert lake.memory is not None
    assert not lake.memory.alternating


def test_one_late_file_without_partitions_is_no_return_however_often_it_is_looked_at() -> None:
    lake = Lake()
    for name, shape in (("1", "A"), ("2", "B"), ("3", "A")):
        lake.write(name, shape)
        lake.scan()
    assert [lake.scan() for _ in range(4)] == ["B"] * 4


def test_a_return_counts_once_when_every_newer_file_has_it_over_two_scans() -> None:
    lake = Lake()
    seen = []
    for name, shape in enumerate("ABAAAA"):
        lake.write(str(name), shape)
        seen.append((lake.scan(), lake.reverted))
    assert seen == [
        ("A", False),
        ("B", False),
        ("B", False),
        ("A", True),
        ("A", False),
        ("A", False),
    ]


def test_files_overwritten_with_an_earlier_shape_return_after_two_scans() -> None:
    lake = Lake()
    for shape in "AB":
        lake.write("1", shape)
        lake.scan()
    lake.write("1", "A")
    assert (lake.scan(), lake.reverted) == ("B", False)
    assert (lake.scan(), lake.reverted) == ("A", True)
    assert (lake.scan(), lake.reverted) == ("A", False)


@pytest.mark.parametrize("overwriting", [False, True])
def test_writers_that_take_turns_are_flagged_and_change_nothing(overwriting: bool) -> None:
    lake = Lake()
    seen = []
    for number in range(10):
        lake.write("1" if overwriting else str(number), "AB"[number % 2])
        seen.append(lake.scan())
    assert seen == ["A", *["B"] * 9]
    assert lake.memory is not None
    assert lake.memory.alternating


def test_writers_that_write_at_the_same_time_are_flagged() -> None:
    lake = Lake()
    seen = []
    for number in range(6):
        lake.write(f"a{number}", "A")
        lake.write(f"b{number}", "B")
        seen.append(lake.scan())
    assert set(seen) == {"B"}
    assert lake.memory is not None
    assert lake.memory.alternating


def test_alternation_ends_when_one_writer_stays() -> None:
    lake = Lake()
    for number in range(6):
        lake.write("1", "AB"[number % 2])
        lake.scan()
    seen = []
    for _ in range(5):
        lake.write("1", "A")
        seen.append(lake.scan())
    assert seen == [*["B"] * 4, "A"]
    assert lake.memory is not None
    assert not lake.memory.alternating


def test_a_third_shape_is_a_change_even_among_writers_that_take_turns() -> None:
    lake = Lake()
    for number in range(6):
        lake.write("1", "AB"[number % 2])
        lake.scan()
    lake.write("1", "C")
    assert lake.scan() == "C"


def test_a_column_of_nulls_keeps_the_type_that_the_dataset_had() -> None:
    known = parse_schema("name STRING")
    assert complete_types([parse_schema("name NULL")], known) == [known]


def test_columns_of_nulls_take_their_type_from_files_that_know() -> None:
    old = parse_schema("id INT64\nname STRING\ntags ARRAY<STRING>\nat STRUCT<x: INT64, y: STRING>")
    new = parse_schema("id INT64\nname NULL\ntags ARRAY<NULL>\nat STRUCT<x: NULL, y: STRING>")
    assert complete_types([old, new], None) == [old, old]
    assert complete_types([new, old], None) == [old, old]


def test_doubles_that_may_be_integers_are_integers_where_a_file_says_so() -> None:
    sure = Schema(fields=(Field(name="count", type=INT64),))
    doubtful = Schema(fields=(Field(name="count", type=FLOAT64, tags=(MAYBE_INTEGERS,)),))
    doubles = Schema(fields=(Field(name="count", type=FLOAT64),))
    assert complete_types([sure, doubtful], None) == [sure, sure]
    assert complete_types([doubtful, sure], None) == [sure, sure]
    assert complete_types([doubtful], None) == [doubles]
    assert complete_types([doubtful], sure) == [sure]
    # The dataset was taken for doubles at first: integers beside them change nothing.
    assert complete_types([doubtful, sure], doubles) == [doubles, doubles]
    # Doubles without gaps are doubles.
    assert complete_types([sure, doubles], None) == [sure, doubles]
