"""Changes to the sample estate and what each means to everything downstream, worked out by hand.

With all SQL unchanged, a downstream dataset is
- BREAKING if what makes it fails, may fail or go wrong on values that were not possible before, or
  if one of its own columns changes in a way that the rules call breaking;
- UNDETERMINED if a change reaches it and nobody can tell: no SQL, SQL that does not parse, a
  function of unknown type;
- COMPATIBLE otherwise.

Changes go from column to column. A table with a schema of its own (target of INSERT, UPDATE, MERGE)
keeps its types: the statement breaks instead. Whoever reads other columns of a broken dataset is
untouched, whoever reads one that can no longer be computed breaks as well.
"""

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from impact.sample_inventory import Model, SampleInventory, load_sample_inventory
from lumos.model.change import (
    AnySchemaChange,
    FieldAdded,
    FieldRemoved,
    NullabilityChanged,
    Reordered,
    TypeChanged,
)
from lumos.model.paths import column_of
from lumos.model.schema import Field, Schema, parse_schema
from lumos.model.types import Array, DataType, Struct, parse_type
from lumos.schemas.apply import apply
from lumos.schemas.comparison import compare

FOLDER = Path(__file__).parent / "expectations"
OPERATIONS = ("change", "drop", "rename", "add", "nullable", "required", "reorder")
# A column that cannot be made any more, one that is new, and a type that nobody can tell.
REMOVED = "removed"
ADDED = "added"
UNKNOWN = "?"


class Verdict(enum.StrEnum):
    """What a change means to a downstream dataset."""

    BREAKING = "BREAKING"
    COMPATIBLE = "COMPATIBLE"
    UNDETERMINED = "UNDETERMINED"


class Usage(enum.StrEnum):
    """How a dataset uses what changed, in the place that decides about the verdict."""

    VALUE = "value"
    JOIN = "join"
    GROUP = "group"
    FILTER = "filter"
    WINDOW = "window"
    # The branches of a CASE; a comparison with a literal; an argument of a function or operator.
    CONDITION = "condition"
    LITERAL = "literal"
    ARGUMENT = "argument"
    NOT_IN = "not_in"
    # Written into a column that keeps its type, or its NOT NULL; by position; a SELECT *.
    SINK = "sink"
    NOT_NULL_SINK = "not_null_sink"
    POSITIONAL = "positional"
    STAR = "star"
    UNION = "union"
    # A name that was unique and is no longer.
    AMBIGUOUS = "ambiguous"
    # What ends a change.
    CAST = "cast"
    COALESCE = "coalesce"
    UNUSED = "unused"
    # What nobody can tell.
    NO_SQL = "no_sql"
    UNPARSED = "unparsed"
    UNTYPED = "untyped"


WITHOUT_PLACE = frozenset({Usage.UNUSED, Usage.NO_SQL, Usage.UNPARSED})


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The verdict on one downstream dataset, its main reason, and which columns change how.

    `columns` tells `before -> after` of a type, `required -> nullable` or the reverse, `removed`
    or `added`. `tolerated` are verdicts that can be defended, too; such rows count for nothing
    where an engine's precision and recall are measured. `text` is the reason word by word.
    """

    dataset: str
    verdict: Verdict
    tolerated: tuple[Verdict, ...] = ()
    usage: Usage
    file: str | None = None
    line: int | None = None
    clause: str | None = None
    text: str | None = None
    columns: Mapping[str, str]
    distance: int
    owner: str | None
    why: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """A change of one dataset, with what it means to everything within reach."""

    id: str
    file: str
    dataset: str
    dialect: str
    operation: str
    argument: str
    present: Schema
    proposed: Schema
    why: str
    expected: Mapping[str, Expected]
    recommendations: tuple[str, ...]

    @cached_property
    def changes(self) -> tuple[AnySchemaChange, ...]:
        """The difference as the analysis sees it; a rename is a removal and an addition."""
        return tuple(compare(self.present, self.proposed))

    @property
    def changed_paths(self) -> frozenset[str]:
        """The paths in the dataset that are no longer what they were."""
        return frozenset(change.path for change in self.changes if change.path)


@cache
def cases() -> tuple[Case, ...]:
    """All cases of all files, for the sample inventory."""
    sample = load_sample_inventory()
    return tuple(
        _case(file.name, entry, sample)
        for file in sorted(FOLDER.glob("*.yaml"))
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))
    )


def _case(file: str, entry: dict[str, Any], sample: SampleInventory) -> Case:
    table = sample.tables[entry["dataset"]]
    (operation,) = (name for name in OPERATIONS if name in entry)
    proposed = proposed_schema(table.schema, operation, entry[operation])
    rows = [*_rows(entry, sample)]
    if len({row.dataset for row in rows}) != len(rows):
        raise ValueError(f"{entry['id']} speaks twice of one dataset.")
    argument = entry[operation]
    return Case(
        id=entry["id"],
        file=file,
        dataset=table.name,
        dialect=table.dialect,
        operation=operation,
        argument=argument if isinstance(argument, str) else ", ".join(argument),
        present=table.schema,
        proposed=proposed,
        why=entry["why"],
        expected={row.dataset: row for row in rows},
        recommendations=tuple(entry.get("recommendations", ())),
    )


def _rows(entry: dict[str, Any], sample: SampleInventory) -> Iterator[Expected]:
    distances = sample.downstream(entry["dataset"])
    for name, row in entry.get("downstream", {}).items():
        clause = row.get("clause")
        model = _model(name, row, sample)
        yield Expected(
            dataset=name,
            verdict=Verdict(row["verdict"]),
            tolerated=tuple(map(Verdict, row.get("tolerated", ()))),
            usage=Usage(row["usage"]),
            file=model.file if model else None,
            line=model.line_of(clause) if model and clause else None,
            clause=clause,
            text=row.get("text"),
            columns=row.get("columns", {}),
            distance=distances[name],
            owner=sample.owner(name),
            why=row["why"],
        )
    for name in entry.get("untouched", ()):
        yield Expected(
            dataset=name,
            verdict=Verdict.COMPATIBLE,
            usage=Usage.UNUSED,
            columns={},
            distance=distances[name],
            owner=sample.owner(name),
            why="No column that changes is used.",
        )


def _model(dataset: str, row: dict[str, Any], sample: SampleInventory) -> Model | None:
    if "file" in row:
        return sample.model_by_file[row["file"]]
    models = sample.models_of.get(dataset, ())
    return models[0] if models else None


def proposed_schema(present: Schema, operation: str, argument: Any) -> Schema:
    """The schema after a change, as the command line words it.

    change: `path: TYPE -> TYPE`; drop, nullable, required: a path; rename: `old -> new`;
    add: `path TYPE`, behind its siblings; reorder: all names in their new order.
    """
    if operation == "reorder":
        before = tuple(field.name for field in present.fields)
        return apply([Reordered(path="", before=before, after=tuple(argument))], present)
    changes = [*_changes(present, operation, argument)]
    return apply(changes, present)


def _changes(present: Schema, operation: str, argument: str) -> Iterator[AnySchemaChange]:
    if operation == "change":
        path, types = argument.split(": ", 1)
        before, after = map(parse_type, types.split(" -> "))
        if type_at(present, path) != before:
            raise ValueError(f"{path} is {type_at(present, path)}, not {before}.")
        yield TypeChanged(path=path, before=before, after=after)
    elif operation == "drop":
        yield FieldRemoved(path=argument, before=_field(argument, type_at(present, argument)))
    elif operation in ("nullable", "required"):
        field = _column(present, argument)
        wanted = operation == "nullable"
        if field.nullable == wanted:
            raise ValueError(f"{argument} is {operation} already.")
        yield NullabilityChanged(path=argument, before=field.nullable, after=wanted)
    elif operation == "add":
        path, shape = argument.split(" ", 1)
        (added,) = parse_schema(f"{path.rpartition('.')[2]} {shape}").fields
        yield FieldAdded(path=path, after=added, position=len(_siblings(present, path)))
    elif operation == "rename":
        old, new = argument.split(" -> ")
        field = _column(present, old)
        yield FieldRemoved(path=old, before=field)
        renamed = Field(name=new, type=field.type, nullable=field.nullable, key=field.key)
        yield FieldAdded(path=new, after=renamed, position=present.fields.index(field))
    else:
        raise ValueError(f"No such operation: {operation}.")


def _field(path: str, type: DataType) -> Field:
    return Field(name=path.rpartition(".")[2], type=type)


def _column(schema: Schema, name: str) -> Field:
    return next(field for field in schema.fields if field.name == name)


def _siblings(schema: Schema, path: str) -> tuple[str, ...]:
    parent = path.rpartition(".")[0]
    if not parent:
        return tuple(field.name for field in schema.fields)
    holder = type_at(schema, parent)
    assert isinstance(holder, Struct)
    return tuple(member.name for member in holder.members)


def type_at(schema: Schema, path: str) -> DataType:
    """The type at a path such as `items[].price`."""
    steps = re.findall(r"\w+|\[\]", path)
    found = _column(schema, steps[0]).type
    for step in steps[1:]:
        if step == "[]":
            assert isinstance(found, Array)
            found = found.element
        else:
            assert isinstance(found, Struct)
            found = next(member.type for member in found.members if member.name == step)
    return found


def changed_columns(case: Case) -> frozenset[str]:
    """The columns of the dataset in which something changed."""
    return frozenset(map(column_of, case.changed_paths))
