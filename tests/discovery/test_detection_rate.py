"""Random schema changes are written into a lake; the watcher finds every one of them, once."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos import Lumos
from lumos.model.change import EventType
from lumos.schemas.changes import EventReport

_THINGS = (
    "orders", "users", "clicks", "carts", "prices", "stock", "returns", "visits", "reviews", "taxes",
)  # fmt: skip
_PLACES = ("harbour", "airport", "factory", "office", "garden")
_TYPES = (
    pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32(),
    pa.timestamp("us"), pa.binary(), pa.decimal128(10, 2),
)  # fmt: skip


class Change(NamedTuple):
    """What was done to which field of which dataset."""

    dataset: str
    kind: str
    path: str


class Table:
    """A dataset whose schema changes by one step at a time, and never back to an earlier one."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self._chance = chance
        self._names = (f"{name}_{number}" for number in range(10_000))
        inner = pa.struct([self._field() for _ in range(3)])
        self.schema = pa.schema([*(self._field() for _ in range(5)), pa.field("details", inner)])
        self._earlier = {str(self.schema)}

    def _field(self) -> pa.Field:
        return pa.field(next(self._names), self._chance.choice(_TYPES))

    def step(self) -> Change:
        """Changes the schema at random; tells how."""
        while True:
            kind, path, fields = self._chance.choice(_STEPS)(self, list(self.schema))
            schema = pa.schema(fields)
            if str(schema) not in self._earlier and len(fields) > 2:
                self._earlier.add(str(schema))
                self.schema = schema
                return Change(self.name, kind, path)

    def _any(self, fields: list[pa.Field]) -> int:
        """The place of any column but the last, which holds fields itself."""
        return self._chance.choice(
            [place for place, field in enumerate(fields) if field.name != "details"]
        )

    def add(self, fields: list[pa.Field]) -> "Step":
        added = self._field()
        return "added", added.name, [*fields, added]

    def remove(self, fields: list[pa.Field]) -> "Step":
        place = self._any(fields)
        return "removed", fields[place].name, [*fields[:place], *fields[place + 1 :]]

    def retype(self, fields: list[pa.Field]) -> "Step":
        place = self._any(fields)
        before = fields[place]
        others = [type for type in _TYPES if type != before.type]
        fields[place] = before.with_type(self._chance.choice(others))
        return "type_changed", before.name, fields

    def require(self, fields: list[pa.Field]) -> "Step":
        place = self._any(fields)
        before = fields[place]
        fields[place] = before.with_nullable(not before.nullable)
        return "nullability", before.name, fields

    def reorder(self, fields: list[pa.Field]) -> "Step":
        place = self._any(fields)
        other = self._any(fields)
        fields[place], fields[other] = fields[other], fields[place]
        return "reordered", "", fields

    def add_inside(self, fields: list[pa.Field]) -> "Step":
        place = [field.name for field in fields].index("details")
        added = self._field()
        fields[place] = pa.field("details", pa.struct([*fields[place].type, added]))
        return "added", f"details.{added.name}", fields

    def retype_inside(self, fields: list[pa.Field]) -> "Step":
        place = [field.name for field in fields].index("details")
        inner = list(fields[place].type)
        chosen = self._chance.randrange(len(inner))
        others = [type for type in _TYPES if type != inner[chosen].type]
        inner[chosen] = inner[chosen].with_type(self._chance.choice(others))
        fields[place] = pa.field("details", pa.struct(inner))
        return "type_changed", f"details.{inner[chosen].name}", fields

    def write(self, lake: Path, day: int) -> None:
        """A file of one more day with the schema of now."""
        folder = lake / self.name / f"dt=2024-{1 + day // 28:02d}-{1 + day % 28:02d}"
        folder.mkdir(parents=True)
        columns = [_values(field.type) for field in self.schema]
        pq.write_table(pa.table(columns, schema=self.schema), folder / "part-0.parquet")


Step = tuple[str, str, list[pa.Field]]
_STEPS: tuple[Callable[[Table, list[pa.Field]], Step], ...] = (
    Table.add,
    Table.remove,
    Table.retype,
    Table.require,
    Table.reorder,
    Table.add_inside,
    Table.retype_inside,
)


def _values(type: pa.DataType) -> pa.Array:
    """One value, since a column may refuse to be empty."""
    if pa.types.is_struct(type):
        return pa.StructArray.from_arrays([_values(each.type) for each in type], fields=list(type))
    plain = pa.array(["1"]) if pa.types.is_decimal(type) else pa.array([1])
    if pa.types.is_boolean(type) or pa.types.is_binary(type):
        plain = pa.array([True]) if pa.types.is_boolean(type) else pa.array([b"1"])
    if pa.types.is_date(type):
        plain = pa.array([1], pa.int32())
    return plain.cast(type)


def tables(count: int, chance: random.Random) -> Iterator[Table]:
    for number in range(count):
        thing, place = _THINGS[number % 10], _PLACES[number // 10]
        yield Table(f"{thing}_of_{place}", chance)


@pytest.mark.parametrize(
    ("datasets", "rounds"),
    [(10, 5), pytest.param(50, 10, marks=pytest.mark.slow)],
    ids=["50 changes", "500 changes"],
)
@pytest.mark.usefixtures("spark")
def test_every_change_is_found_and_none_twice(workplace: Path, datasets: int, rounds: int) -> None:
    chance = random.Random(datasets)
    lake = workplace / "lake"
    changing = list(tables(datasets, chance))
    events: list[EventReport] = []
    (workplace / "lumos.yaml").write_text("sources: [{type: file, path: lake}]\n")
    lumos = Lumos()

    def look() -> list[EventReport]:
        events.clear()
        assert lumos.watch(once=True, on_event=events.append).failures == 0
        return [event for event in events if event.type is not EventType.CREATED]

    for table in changing:
        table.write(lake, 0)
    assert look() == []
    assert len(events) == datasets
    written: list[Change] = []
    found: list[Change] = []
    for day in range(1, rounds + 1):
        for table in changing:
            written.append(table.step())
            table.write(lake, day)
        for event in look():
            name = Path(event.urn).name
            found += (Change(name, row.kind, row.path) for row in event.changes)
        assert look() == []
    assert len(written) == datasets * rounds
    assert Counter(found) == Counter(written)
