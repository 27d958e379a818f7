"""Random changes to the Spark part of the estate, and what they really do to the SQL downstream.

Small data is made for every raw table, before and after a change. Models run in one Spark session,
one after the other, and what one gave is kept as data, so that a failure is the model's own: Spark
would otherwise plan all SQL up to the raw tables as one query, and move a cast that fails from the
model that says it to one that reads it. Behind a model that failed nothing is run.

Data after a change is the data before in its new type; a type that became wider also has a value
that did not fit before, and a column that may be null has a null. What became a text says the same
as before, since the rules hold a text for compatible where it is cast; with `odd_texts` one says
something else.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal as Exact
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from impact.cases import Verdict, proposed_schema, type_at
from impact.sample_inventory import Model, SampleInventory
from lumos.model.conversions.arrow import schema_to_arrow
from lumos.model.conversions.spark import schema_from_spark, schema_to_spark
from lumos.model.schema import Field, Schema
from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    SIGNED,
    STRING,
    DataType,
    Decimal,
    String,
    Struct,
    Timestamp,
)

# Of a change, by the names of the datasets downstream.
Judge = Callable[["Mutation"], Mapping[str, Verdict]]

_ROWS = 5
# The rows in which a column shows what only its new type or its new freedom allows.
_NULL_ROW, _ODD_ROW, _LARGE_ROW = 4, 1, 2
_AFTER = "__after"
_NEW_TYPES = ("STRING", "INT32", "DATE NOT NULL")
_WEIGHTS = {
    "change": 50,
    "drop": 12,
    "rename": 8,
    "add": 12,
    "nullable": 9,
    "required": 4,
    "reorder": 5,
}
_OTHER_TYPES: dict[DataType, tuple[str, ...]] = {
    INT32: ("INT64", "INT16", "STRING", "FLOAT64", "DECIMAL(12,0)", "BOOLEAN"),
    INT64: ("INT32", "STRING", "FLOAT64", "DECIMAL(20,0)"),
    STRING: ("INT32", "INT64", "DATE", "BOOLEAN"),
    DATE: ("TIMESTAMP(us)", "TIMESTAMPTZ(us)", "STRING", "INT32"),
    FLOAT64: ("FLOAT32", "DECIMAL(12,2)", "STRING", "INT64"),
    BOOLEAN: ("INT32", "STRING"),
    Timestamp("us", zoned=True): ("DATE", "STRING", "INT64", "TIMESTAMP(us)"),
}


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A change of a raw table, worded as on the command line."""

    dataset: str
    operation: str
    argument: str
    proposed: Schema

    def __str__(self) -> str:
        return f"{self.dataset}: {self.operation} {self.argument}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one model after a change; `columns` are those whose type changed.

    `error` is what Spark says where the model fails, which it did not before.
    """

    mutation: Mutation
    dataset: str
    error: str | None
    columns: Mapping[str, str]

    @property
    def failed(self) -> bool:
        return self.error is not None


def mutations(sample: SampleInventory, *, count: int, seed: int) -> tuple[Mutation, ...]:
    """So many different changes, the same ones for the same seed."""
    chance = random.Random(seed)
    raw = [table for table in sorted(sample.tables) if _is_raw(table, sample)]
    found: dict[tuple[str, str, str], Mutation] = {}
    while len(found) < count:
        dataset = chance.choice(raw)
        schema = sample.tables[dataset].schema
        (operation,) = chance.choices([*_WEIGHTS], weights=[*_WEIGHTS.values()])
        argument = _argument(operation, schema, chance, sample)
        if argument is None:
            continue
        given = argument.split(", ") if operation == "reorder" else argument
        found[dataset, operation, argument] = Mutation(
            dataset=dataset,
            operation=operation,
            argument=argument,
            proposed=proposed_schema(schema, operation, given),
        )
    return tuple(found.values())


def misjudged(outcomes: Iterable[Outcome], judge: Judge) -> list[str]:
    """The models that really fail although they were called compatible, with what Spark says."""
    return [
        f"{outcome.mutation} -> {outcome.dataset}: {outcome.error}"
        for outcome in outcomes
        if outcome.failed and judge(outcome.mutation)[outcome.dataset] is Verdict.COMPATIBLE
    ]


class SparkInventory:
    """The Spark part of the estate in a session; `folder` holds the tables that are inserted into.

    Raw data and models are temporary views, whose names have no schema; hence other names.
    """

    def __init__(self, spark: SparkSession, sample: SampleInventory, folder: Path) -> None:
        self._spark = spark
        self._sample = sample
        self._models = {
            model.dataset: model for model in _in_order(sample) if model.dataset is not None
        }
        self._targets = [name for name in sample.tables if name in self._models]
        self._names = sorted((*sample.tables, *self._models), key=len, reverse=True)
        self._folder = folder
        self._prepare()
        self._before = {dataset: self._run(dataset, frozenset()) for dataset in self._models}

    def outcomes(self, mutation: Mutation, *, odd_texts: bool = False) -> Iterator[Outcome]:
        """What becomes of every model downstream that can be run."""
        reached = self._sample.downstream(mutation.dataset)
        frame = self._frame(mutation.dataset, mutation.proposed, odd_texts=odd_texts)
        frame.createOrReplaceTempView(_flat(mutation.dataset) + _AFTER)
        failed: set[str] = set()
        # Behind a result that is what it was before, everything is, and the old one is read.
        differing = {mutation.dataset}
        for dataset in [name for name in self._models if name in reached]:
            sources = _sources(self._models[dataset])
            error, columns = None, {}
            if failed & sources:
                failed.add(dataset)
                continue
            if differing & sources:
                try:
                    result = self._run(dataset, {*differing, dataset} - {*self._targets})
                except (PySparkException, Py4JJavaError) as problem:
                    error = _sentence(problem)
                    failed.add(dataset)
                else:
                    columns = _changed_types(self._before[dataset], result)
                    if result != self._before[dataset]:
                        differing.add(dataset)
            yield Outcome(mutation=mutation, dataset=dataset, error=error, columns=columns)

    def close(self) -> None:
        """Takes away the tables that were made; their files are the folder's business."""
        for target in self._targets:
            self._spark.sql(f"DROP TABLE IF EXISTS {_flat(target)}")

    def _prepare(self) -> None:
        for name in self._names:
            if _is_raw(name, self._sample):
                frame = self._frame(name, self._sample.tables[name].schema)
                frame.createOrReplaceTempView(_flat(name))
        for target in self._targets:
            columns = self._frame(target, self._sample.tables[target].schema).schema.toDDL()
            place = (self._folder / _flat(target)).as_uri()
            self._spark.sql(
                f"CREATE TABLE {_flat(target)} ({columns}) USING parquet LOCATION '{place}'"
            )

    def _frame(self, dataset: str, schema: Schema, *, odd_texts: bool = False) -> DataFrame:
        known = {field.name: field for field in self._sample.tables[dataset].schema.fields}
        rows = [
            {
                field.name: _value(field, known.get(field.name), number, odd_texts=odd_texts)
                for field in schema.fields
            }
            for number in range(_ROWS)
        ]
        # From Arrow it is a local relation, which Spark plans and runs far quicker than an RDD.
        table = pa.Table.from_pylist(rows, schema=schema_to_arrow(schema))
        return self._spark.createDataFrame(table, StructType.fromJson(schema_to_spark(schema)))

    def _run(self, dataset: str, changed: Set[str]) -> "_Result":
        self._spark.sql(self._sql(self._models[dataset], changed))
        if dataset in self._targets:
            return _Result(types={}, rows=())
        name = _name_of(dataset, changed)
        frame = self._spark.table(name)
        data = frame.toArrow()
        self._spark.createDataFrame(data, frame.schema).createOrReplaceTempView(name)
        schema = schema_from_spark(frame.schema.jsonValue())
        return _Result(
            types={field.name: field.type.text for field in schema.fields},
            rows=tuple(sorted(map(str, data.to_pylist()))),
        )

    def _sql(self, model: Model, changed: Set[str]) -> str:
        sql = re.sub(r"^--.*\n", "", model.text, flags=re.MULTILINE).rstrip().rstrip(";")
        for name in self._names:
            sql = re.sub(rf"\b{re.escape(name)}\b", _name_of(name, changed), sql)
        if sql.startswith("INSERT INTO"):
            return sql.replace("INSERT INTO", "INSERT OVERWRITE", 1)
        body = re.sub(r"^CREATE (?:TABLE|VIEW) \w+ AS\b", "", sql)
        assert model.dataset is not None
        return f"CREATE OR REPLACE TEMPORARY VIEW {_name_of(model.dataset, changed)} AS {body}"


@dataclass(frozen=True, kw_only=True)
class _Result:
    """What a model gave: the types of its columns, and its rows in no order."""

    types: Mapping[str, str]
    rows: tuple[str, ...]


def _sentence(problem: Exception) -> str:
    """What Spark says itself; what fails in a thread of its own comes wrapped in Java's words."""
    lines = str(problem).splitlines()
    return next((line[line.index("[") :] for line in lines if "[" in line), lines[0])


def _changed_types(before: _Result, after: _Result) -> dict[str, str]:
    return {
        name: f"{type} -> {after.types[name]}"
        for name, type in before.types.items()
        if name in after.types and after.types[name] != type
    }


def _is_raw(dataset: str, sample: SampleInventory) -> bool:
    table = sample.tables.get(dataset)
    return table is not None and table.dialect == "spark" and dataset not in sample.models_of


def _in_order(sample: SampleInventory) -> list[Model]:
    """The models of Spark, each behind those that it reads."""
    waiting = [model for model in sample.models if model.dialect == "spark"]
    made = {name for name in sample.tables if _is_raw(name, sample)}
    ordered: list[Model] = []
    while waiting:
        ready = [model for model in waiting if _sources(model) <= made]
        ordered += ready
        made |= {model.dataset for model in ready if model.dataset is not None}
        waiting = [model for model in waiting if model not in ready]
    return ordered


def _sources(model: Model) -> set[str]:
    return {".".join(read.table) for read in model.script.reads}


def _flat(name: str) -> str:
    return name.replace(".", "__")


def _name_of(dataset: str, changed: Set[str]) -> str:
    return _flat(dataset) + _AFTER if dataset in changed else _flat(dataset)


def _argument(
    operation: str, schema: Schema, chance: random.Random, sample: SampleInventory
) -> str | None:
    """A change of this kind as the command line words it; None where there is none."""
    names = [field.name for field in schema.fields]
    paths = [*_paths(schema)]
    if operation == "change":
        path = chance.choice(paths)
        before = type_at(schema, path)
        after = chance.choice(_types_instead_of(before) or [""])
        return f"{path}: {before} -> {after}" if after else None
    if operation == "drop":
        return chance.choice(paths)
    if operation == "rename":
        return "{0} -> {0}_new".format(chance.choice(names))
    if operation == "add":
        # A name that another dataset has as well is more likely to do harm.
        others = {name for columns in _columns(sample) for name in columns} - {*names}
        return f"{chance.choice(sorted(others))} {chance.choice(_NEW_TYPES)}"
    if operation == "reorder":
        return ", ".join(chance.sample(names, len(names)))
    fitting = [field.name for field in schema.fields if field.nullable == (operation == "required")]
    return chance.choice(fitting) if fitting else None


def _columns(sample: SampleInventory) -> Iterator[tuple[str, ...]]:
    """The columns of the datasets that Spark's models read."""
    for model in _in_order(sample):
        yield from (sample.columns[source] for source in _sources(model))


def _paths(schema: Schema) -> Iterator[str]:
    for field in schema.fields:
        yield field.name
        if isinstance(field.type, Struct):
            yield from (f"{field.name}.{member.name}" for member in field.type.members)


def _types_instead_of(type: DataType) -> list[str]:
    if isinstance(type, Decimal) and type.precision is not None:
        digits, scale = type.precision, type.scale
        sizes = ((digits + 2, scale), (digits + 2, scale + 2), (digits - 2, scale))
        return [*(f"DECIMAL({p},{s})" for p, s in sizes), "FLOAT64", "STRING", "INT64"]
    return [*_OTHER_TYPES.get(type, ())]


def _value(field: Field, before: Field | None, number: int, *, odd_texts: bool) -> Any:
    """What stands in a row; a changed column also shows what was not possible before."""
    if field.nullable and number == _NULL_ROW:
        return None
    values = _Values(number, odd_texts=odd_texts)
    return values.of(field.type, field.name, before.type if before else field.type)


class _Values:
    """The values of one row, by type, name and what the type was before."""

    def __init__(self, number: int, *, odd_texts: bool) -> None:
        self._number = number
        self._is_odd = odd_texts and number == _ODD_ROW

    def of(self, type: DataType, name: str, before: DataType) -> Any:
        """The value of a column or member."""
        number = self._number
        if isinstance(type, Struct):
            return self._members(type, before)
        if isinstance(type, String):
            return self._text(name, before)
        if isinstance(type, Decimal):
            return self._exact(type, before)
        if isinstance(type, Timestamp):
            moment = datetime(2024, 1, 1 + number, 10, tzinfo=UTC)
            return moment if type.zoned else moment.replace(tzinfo=None)
        if type == DATE:
            return date(2024, 1, 1 + number)
        if type == BOOLEAN:
            return name != "closed"
        if type in (FLOAT32, FLOAT64):
            return number + 0.5
        is_wider = type in SIGNED and SIGNED.get(before, 64) < SIGNED[type]
        assert type in SIGNED, type
        return 2 ** (SIGNED[type] - 2) if is_wider and number == _LARGE_ROW else number + 1

    def _members(self, type: Struct, before: DataType) -> dict[str, Any]:
        old = before.members if isinstance(before, Struct) else ()
        types = {member.name: member.type for member in old}
        return {
            member.name: self.of(member.type, member.name, types.get(member.name, member.type))
            for member in type.members
        }

    def _text(self, name: str, before: DataType) -> str:
        if isinstance(before, String):
            return f"{name}-{self._number + 1}"
        return "n/a" if self._is_odd else str(self.of(before, name, before)).removesuffix("+00:00")

    def _exact(self, type: Decimal, before: DataType) -> Exact:
        assert type.precision is not None
        if self._number == _LARGE_ROW and _whole_digits(before) < _whole_digits(type):
            return Exact(10**type.precision - 1).scaleb(-type.scale)
        return Exact(self._number + 1).quantize(Exact(1).scaleb(-type.scale))


def _whole_digits(type: DataType) -> int:
    """How many digits a number can have before the point; other types have more than any."""
    if isinstance(type, Decimal) and type.precision is not None:
        return type.precision - type.scale
    return len(str(2 ** (SIGNED[type] - 1))) if type in SIGNED else 1000
