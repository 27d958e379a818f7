"""Whatever deltalake does to a table, in whatever order: Lumos tells what deltalake tells."""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.formats.tables.delta.reader import DeltaReader
from lumos.model.conversions.arrow import schema_from_arrow

from .delta_judge import ALL, columns, described, theirs
from .folder import LocalFolder

VERBS = [
    "append",
    "overwrite",
    "replace",
    "delete",
    "update",
    "add_column",
    "merge_column",
    "configure",
    "optimize",
    "vacuum",
    "restore",
    "checkpoint",
    "compact_log",
    "tidy",
    "look",
]
STEPS = st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 5)), min_size=1, max_size=12)


def _rows(number: int, names: list[str]) -> pa.Table:
    more = {name: [number, number] for name in names if name not in ("id", "part")}
    return pa.table({"id": [number, number + 1], "part": [f"p{number % 2}", "p%"], **more})


class _Table:
    """A table that is changed step by step, read in between, and judged in the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.memory: bytes | None = None
        self.past: list[tuple[str, tuple[tuple[str, str, bool], ...]]] = []
        self.is_tidied = False
        write_deltalake(root, _rows(0, []), partition_by=["part"])
        self.note()

    def step(self, verb: str, number: int) -> None:
        table = DeltaTable(self.root)
        names = [field.name for field in table.schema().fields]
        match verb:
            case "append" | "overwrite":
                write_deltalake(table, _rows(number, names), mode=verb)
            case "replace":
                data = _rows(number, [f"n{number}"])
                write_deltalake(table, data, mode="overwrite", schema_mode="overwrite")
            case "delete":
                table.delete(f"id = {number}")
            case "update":
                table.update(updates={"id": "id + 1"}, predicate=f"id = {number}")
            case "add_column":
                if f"c{number}" not in names:
                    table.alter.add_columns([Field(f"c{number}", PrimitiveType("long"))])
            case "merge_column":
                data = _rows(number, [*names, f"m{number}"])
                write_deltalake(table, data, mode="append", schema_mode="merge")
            case "configure":
                table.alter.set_table_properties({"delta.checkpointInterval": str(number + 100)})
            case _:
                self._housekeeping(table, verb, number)

    def _housekeeping(self, table: DeltaTable, verb: str, number: int) -> None:
        match verb:
            case "optimize":
                table.optimize.compact()
            case "vacuum":
                table.vacuum(0, dry_run=False, enforce_retention_duration=False)
            case "restore":
                table.restore(max(0, table.version() - 1 - number), ignore_missing_files=True)
            case "checkpoint":
                table.create_checkpoint()
            case "compact_log":
                first = min(int(commit.stem) for commit in self._commits())
                if first < table.version():
                    table.compact_logs(starting_version=first, ending_version=table.version())
            case "tidy":
                table.create_checkpoint()
                self.is_tidied = True
                for commit in self._commits():
                    if int(commit.stem) < table.version() - number:
                        commit.unlink()
            case "look":
                self.memory = self.read()[1]

    def read(self, memory: bytes | None = None) -> Any:
        return DeltaReader().read(LocalFolder(self.root), memory, max_commits=ALL)

    def _log(self) -> Path:
        return self.root / "_delta_log"

    def _commits(self) -> list[Path]:
        return [path for path in self._log().glob("*.json") if path.stem.isdigit()]

    def note(self) -> None:
        """Remembers the schema if it is another one now; each step makes at most one."""
        table = DeltaTable(self.root)
        schema = columns(schema_from_arrow(pa.schema(table.schema())))
        if not self.past or self.past[-1][1] != schema:
            self.past.append((str(table.version()), schema))

    def judge(self) -> None:
        facts, memory = self.read()
        expected = theirs(self.root)
        assert described(facts, memory) == expected
        schemas = [schema for _, schema in self.past]
        reported = [columns(each.schema) for each in facts.past]
        assert reported == schemas[-len(reported) :]
        if not self.is_tidied:
            assert [(each.version, columns(each.schema)) for each in facts.past] == self.past
        later, kept = self.read(self.memory)
        assert described(later, kept) == expected
        # What was seen earlier may know more of the past, never less.
        remembered = [columns(each.schema) for each in later.past]
        assert remembered[-len(reported) :] == reported
        assert _is_among(remembered, schemas)


def _is_among(some: list[Any], all_of_them: list[Any]) -> bool:
    rest = iter(all_of_them)
    return all(each in rest for each in some)


def _play(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        table = _Table(Path(place))
        for verb, number in steps:
            # What the library refuses, it has not done.
            with suppress(DeltaError):
                table.step(verb, number)
            table.note()
        table.judge()


@settings(max_examples=examples(30))
@given(STEPS)
def test_any_sequence_of_changes_is_reported_as_its_library_does(
    steps: list[tuple[str, int]],
) -> None:
    _play(steps)


@pytest.mark.slow
@settings(max_examples=examples(500))
@given(STEPS)
def test_many_sequences_of_changes_are_reported_as_their_library_does(
    steps: list[tuple[str, int]],
) -> None:
    _play(steps)
