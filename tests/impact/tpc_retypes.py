"""Columns of TPC-H and TPC-DS that get another type: Lumos's verdict beside the engine's own.

For every query and every column that it names, the engine binds the query with the old and with
the new type of the column. Nothing is run, and there is no data.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, ClassVar, Protocol

import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lineage.gold import tpc
from lumos.impact.context import analyse_derivation
from lumos.impact.rules.graph import DatasetDerivation
from lumos.impact.rules.propagation import impact_of
from lumos.lineage.reported_lineage import TableName
from lumos.lineage.sql import analyse, report_script
from lumos.model.change import Verdict
from lumos.model.conversions.spark import schema_from_spark, schema_to_spark
from lumos.model.lineage import Edge
from lumos.model.schema import Field, Schema
from lumos.model.types import DataType, Decimal, Unknown, parse_type
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify

_AT = datetime(2024, 1, 1, tzinfo=UTC)
_TARGET = "answer"
# Types of columns by their names; the first that fits counts, and all others are texts.
_TYPES = {
    "tpc-h": {
        r"(linenumber|shippriority|size|availqty)$": "INT32",
        r"key$": "INT64",
        r"(quantity|price|discount|tax|acctbal|cost)$": "DECIMAL(15,2)",
        r"date$": "DATE",
    },
    "tpc-ds": {
        r"(gmt_offset|percentage|precentage)$": "DECIMAL(5,2)",
        r"p_cost$": "DECIMAL(15,2)",
        r"(order|ticket)_number$": "INT64",
        r"(price|cost|amt|amount|tax|paid|profit|ship|fee|cash|charge|credit|loss)$": "DECIMAL(7,2)",
        r"(d_date|rec_start_date|rec_end_date)$": "DATE",
        r"(_sk|quantity|on_hand|employees|sq_ft|division|company|count|birth_day|birth_month"
        r"|birth_year|estimate|_seq|d_year|dow|moy|dom|qoy|fy_year|same_day_l.|bound|target|space"
        r"|t_time|hour|minute|second|catalog_number|page_number"
        r"|(brand|class|category|manufact|manager|mkt|market|division|company)_id)$": "INT32",
    },
}  # fmt: skip
# What holds every value of the type, and what does not or is spelled differently.
_WIDER = {
    "INT32": ("INT64", "DECIMAL(10,0)", "DECIMAL(12,2)", "FLOAT64"),
    "INT64": ("DECIMAL(19,0)", "DECIMAL(22,2)"),
    "DATE": ("TIMESTAMP(us)",),
}
_OTHER = {
    "INT32": ("INT16", "STRING"),
    "INT64": ("INT32", "FLOAT64", "STRING"),
    "DATE": ("STRING",),
    "STRING": ("INT32", "DATE"),
}


def retypes(type: DataType, *, widening: bool) -> tuple[str, ...]:
    """The types that a column of one type gets."""
    if isinstance(type, Decimal) and type.precision is not None:
        precision, scale = type.precision, type.scale
        if widening:
            sizes = ((precision + 5, scale), (precision + 2, scale + 2), (precision + 12, scale))
            return tuple(f"DECIMAL({p},{s})" for p, s in sizes)
        return (f"DECIMAL({precision - 1},{scale})", "FLOAT64", "INT64", "STRING")
    return (_WIDER if widening else _OTHER).get(type.text, ())


@dataclass(frozen=True, kw_only=True)
class Retype:
    """A column that gets another type."""

    benchmark: str
    table: str
    column: str
    before: DataType
    after: DataType

    def __str__(self) -> str:
        return f"{self.table}.{self.column}: {self.before.text} -> {self.after.text}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What Lumos and the engine say of one query after one retype.

    `fails` says that the engine refuses the query; `changed` are the columns of its result that
    get another type, with both types.
    """

    retype: Retype
    query: str
    verdict: Verdict
    predicted: Mapping[str, tuple[DataType, DataType]]
    fails: bool
    changed: Mapping[str, tuple[DataType, DataType]]

    @property
    def is_unsafe(self) -> bool:
        """Whether the query fails, or its result changes, and Lumos says neither."""
        if self.verdict is not Verdict.COMPATIBLE:
            return False
        return self.fails or any(
            self.predicted.get(name) != types for name, types in self.changed.items()
        )

    @property
    def is_kept(self) -> bool:
        """Whether the engine accepts the query, and its result has the types that it had."""
        return not self.fails and not self.changed

    @property
    def is_false_alarm(self) -> bool:
        return self.is_kept and self.verdict is not Verdict.COMPATIBLE

    def __str__(self) -> str:
        def shown(columns: Mapping[str, tuple[DataType, DataType]]) -> str:
            return ", ".join(f"{name} {a.text} -> {b.text}" for name, (a, b) in columns.items())

        engine = "fails" if self.fails else shown(self.changed) or "the same types"
        return f"{self.query}, {self.retype}: {self.verdict}, {shown(self.predicted) or '-'}; engine: {engine}"


Types = Mapping[str, DataType]


class Engine(Protocol):
    """Binds queries over empty tables."""

    dialect: str

    def table(self, name: str, schema: Schema) -> None: ...

    def types(self, query: str) -> Types | None:
        """The columns of a query's result, or None if the engine refuses it."""
        ...


class SparkEngine:
    dialect = "spark"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def table(self, name: str, schema: Schema) -> None:
        fields = StructType.fromJson(schema_to_spark(schema))
        self._session.createDataFrame([], fields).createOrReplaceTempView(name)

    def types(self, query: str) -> Types | None:
        try:
            found = self._session.sql(query).schema
        except PySparkException:
            return None
        return _by_name(
            (each.name, each.type) for each in schema_from_spark(found.jsonValue()).fields
        )


class DuckdbEngine:
    dialect = "duckdb"
    _names: ClassVar = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INTEGER", "INT64": "BIGINT", "FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "STRING": "VARCHAR", "TIMESTAMP(us)": "TIMESTAMP"}  # fmt: skip

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._types = {name: type for type, name in self._names.items()} | {
            "HUGEINT": "DECIMAL(39,0)"
        }

    def table(self, name: str, schema: Schema) -> None:
        columns = (
            f"{_quoted(each.name)} {self._names.get(each.type.text, each.type.text)}"
            for each in schema.fields
        )
        self._connection.execute(f"create or replace table {_quoted(name)} ({', '.join(columns)})")

    def types(self, query: str) -> Types | None:
        import duckdb

        try:
            bound = self._connection.sql(query)
        except duckdb.Error:
            return None
        types = (parse_type(self._types.get(str(each), str(each))) for each in bound.types)
        return _by_name(zip(bound.columns, types, strict=True))


def _quoted(name: str) -> str:
    return sqlglot.exp.to_identifier(name, quoted=True).sql("duckdb")


def _by_name(columns: Iterator[tuple[str, DataType]]) -> dict[str, DataType]:
    return {name.lower(): type for name, type in columns}


@dataclass(frozen=True, kw_only=True)
class Query:
    name: str
    benchmark: str
    sql: str
    derivation: DatasetDerivation
    words: frozenset[str]


@cache
def tables(benchmark: str) -> Mapping[str, Schema]:
    """The tables of a benchmark with the types that its specification gives them."""
    rules = _TYPES[benchmark]
    return {
        table: Schema(fields=tuple(Field(name=name, type=_type_of(name, rules)) for name in names))
        for table, names in tpc.load(benchmark).tables.items()
    }


def _type_of(name: str, rules: Mapping[str, str]) -> DataType:
    return parse_type(next((type for end, type in rules.items() if re.search(end, name)), "STRING"))


@cache
def queries(benchmark: str, dialect: str) -> Sequence[Query]:
    """The queries of a benchmark in a dialect, each as the statement that makes a table."""
    found = []
    for number, text in tpc.load(benchmark).queries.items():
        (sql,) = sqlglot.transpile(text, write=dialect)
        derivation = derivation_of(sql, dialect, tables(benchmark))
        found.append(Query(name=f"{benchmark} {number}", benchmark=benchmark, sql=sql, derivation=derivation,
                           words=frozenset(re.findall(r"\w+", sql.lower()))))  # fmt: skip
    return found


def derivation_of(sql: str, dialect: str, schemas: Mapping[str, Schema]) -> DatasetDerivation:
    """The statement that makes a table of a query."""
    script = f"CREATE TABLE {_TARGET} AS {sql}"
    lineage = analyse(script, dialect=dialect, columns=lambda parts: _names(schemas, parts))
    assert lineage.unresolved == (), (sql, lineage.unresolved)
    edges = tuple(
        Edge(upstream=_name(each.upstream), downstream=_TARGET, origin="query", at=_AT,
             type=each.type, columns=each.columns, uses=each.uses)
        for each in report_script(lineage, reporter="query").edges
    )  # fmt: skip
    named = [((name,), name) for name in (_TARGET, *schemas)]
    return DatasetDerivation(
        origin="query", edges=edges, sql=script, dialect=dialect, tables=tuple(named)
    )


def _names(known: Mapping[str, Schema], parts: tuple[str, ...]) -> list[str] | None:
    schema = known.get(".".join(parts))
    return None if schema is None else [field.name for field in schema.fields]


def _name(table: object) -> str:
    assert isinstance(table, TableName)
    return ".".join(table.parts)


class OneQuery:
    """One query downstream of the tables that it reads."""

    def __init__(self, derivation: DatasetDerivation, schemas: Mapping[str, Schema]) -> None:
        self._derivation = derivation
        self._schemas = schemas

    def links(self, urn: str) -> Sequence[tuple[str, str]]:
        del urn
        return [(edge.upstream, edge.downstream) for edge in self._derivation.edges]

    def derivations(self, urn: str) -> Sequence[DatasetDerivation]:
        return [self._derivation] if urn == _TARGET else []

    def schema(self, urn: str) -> Schema | None:
        return self._schemas.get(urn)

    def owners(self, urn: str) -> tuple[str, ...]:
        del urn
        return ()


def all_retypes(benchmark: str, *, widening: bool) -> Iterator[Retype]:
    """Every column of a benchmark with every other type that it gets."""
    for table, schema in tables(benchmark).items():
        for field in schema.fields:
            for after in retypes(field.type, widening=widening):
                yield Retype(benchmark=benchmark, table=table, column=field.name,
                             before=field.type, after=parse_type(after))  # fmt: skip


def outcomes(engine: Engine, changes: Sequence[Retype]) -> Iterator[Outcome]:
    """What becomes of every query that names the column of a retype."""
    present: dict[str, Types] = {}
    for benchmark in dict.fromkeys(each.benchmark for each in changes):
        for name, schema in tables(benchmark).items():
            engine.table(name, schema)
        for query in queries(benchmark, engine.dialect):
            types = engine.types(query.sql)
            if types is not None:
                present[query.name] = types
        for change in changes:
            if change.benchmark == benchmark:
                yield from _outcomes(engine, change, present)


def _outcomes(engine: Engine, change: Retype, present: Mapping[str, Types]) -> Iterator[Outcome]:
    reading = [
        query
        for query in queries(change.benchmark, engine.dialect)
        if query.name in present and change.column in query.words
    ]
    if not reading:
        return
    schema = tables(change.benchmark)[change.table]
    fields = [Field(name=each.name, type=change.after if each.name == change.column else each.type)
              for each in schema.fields]  # fmt: skip
    proposed = Schema(fields=tuple(fields))
    findings = classify(compare(schema, proposed))
    engine.table(change.table, proposed)
    for query in reading:
        after = engine.types(query.sql)
        before = present[query.name]
        downstream = OneQuery(query.derivation, tables(change.benchmark))
        impact = impact_of(change.table, findings, downstream, analyse_derivation)
        found = impact.downstream[0] if impact.downstream else None
        yield Outcome(
            retype=change,
            query=query.name,
            verdict=found.verdict if found is not None else Verdict.COMPATIBLE,
            predicted={
                each.name.lower(): (each.before.type, each.after.type)
                for each in (found.columns if found is not None else ())
                if each.before is not None and each.after is not None
                and not isinstance(each.after.type, Unknown)
            },
            fails=after is None,
            changed={} if after is None else {
                name: (type, after[name]) for name, type in before.items() if after[name] != type
            },
        )  # fmt: skip
    engine.table(change.table, schema)
