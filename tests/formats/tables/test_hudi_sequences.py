"""Hudi tables after any sequence of writes: what is remembered agrees with what is read anew."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.formats.tables.hudi.reader import HudiReader

from .folder import MemoryFolder
from .hudi_tables import COLUMNS, HudiTable, avro_schema
from .test_hudi_facts import facts_as_judged

READER = HudiReader()
STEPS = ("insert", "update", "log", "replace", "begin", "take back", "column", "archive", "clean")


class Grown:
    """A table that steps change, and what it takes to choose the next one."""

    def __init__(self, version: int, *, merged_on_read: bool) -> None:
        self.table = HudiTable(version, merged_on_read=merged_on_read)
        # The newest base of each group that counts, and the writes that are not archived.
        self.groups: dict[str, str] = {}
        self.ended: list[str] = []
        self.pending: list[str] = []
        self._made = 0
        self._columns = dict(COLUMNS)

    def take(self, step: str, choice: int) -> None:
        table, groups = self.table, sorted(self.groups)
        group = groups[choice % len(groups)] if groups else self._new_group()
        match step:
            case "update":
                self._wrote(group, table.write({group: choice + 1}))
            case "log" if table.merged_on_read and groups:
                base = self.groups[group]
                self.ended.append(table.write({group: 1}, logs=True, base_instant=base))
            case "replace" if groups:
                fresh = self._new_group()
                instant = table.write({fresh: 2}, action="replacecommit", replaces={"de": [group]})
                del self.groups[group]
                self._wrote(fresh, instant)
            case "begin":
                self.pending.append(table.write({group: 1}, ends=False))
            case "take back" if self.pending:
                table.roll_back(self.pending.pop())
            case "column":
                self._columns[f"c{len(self._columns)}"] = "int"
                table.schema = avro_schema(self._columns)
            case "archive" if len(self.ended) > 2 and not self.pending:
                first, self.ended = self.ended[0], self.ended[1:]
                self._forget_replaced()
                table.archive(first)
            case "clean":
                table.clean(*((name, "no such instant") for name in groups))
            case _:
                fresh = self._new_group()
                self._wrote(fresh, table.write({fresh: 1}))

    def _wrote(self, group: str, instant: str) -> None:
        self.groups[group] = instant
        self.ended.append(instant)

    def _new_group(self) -> str:
        self._made += 1
        return f"g{self._made}"

    def _forget_replaced(self) -> None:
        """Hudi removes what was replaced before it archives the write that said so."""
        place = self.table.place(None)
        for path in list(self.table.files):
            name = path.removeprefix(place).lstrip(".")
            is_data = path.startswith(place) and name.startswith("g")
            if is_data and name.partition("_")[0] not in self.groups and not self.pending:
                del self.table.files[path]


def run(version: int, merged_on_read: bool, steps: list[tuple[str, int]]) -> None:
    grown = Grown(version, merged_on_read=merged_on_read)
    grown.take("insert", 0)
    memory: bytes | None = None
    for step, choice in steps:
        grown.take(step, choice)
        folder = MemoryFolder(grown.table.files)
        facts, memory = READER.read(folder, memory, max_commits=1000)
        fresh, _ = READER.read(folder, None, max_commits=1000)
        assert (facts.version, facts.schema, facts.content) == (
            fresh.version,
            fresh.schema,
            fresh.content,
        )
        # Who has read all along knows at least as much.
        assert facts.rows is not None
        assert len(facts.past) >= len(fresh.past)
        if version >= 8:
            assert facts.past == fresh.past
            assert facts.rows == fresh.rows
    with tempfile.TemporaryDirectory() as place:
        facts_as_judged(grown.table.save(Path(place)))


sequences = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), min_size=1, max_size=12)
given_tables = given(st.sampled_from([6, 8, 9]), st.booleans(), sequences)


@settings(max_examples=examples(20))
@given_tables
def test_a_table_is_read_right_after_any_sequence_of_writes(
    version: int, merged_on_read: bool, steps: list[tuple[str, int]]
) -> None:
    run(version, merged_on_read, steps)


@pytest.mark.slow
@settings(max_examples=examples(500))
@given_tables
def test_a_table_is_read_right_after_any_of_many_sequences(
    version: int, merged_on_read: bool, steps: list[tuple[str, int]]
) -> None:
    run(version, merged_on_read, steps)
