"""Rehearsal of 50 queries on Spark, against EXPLAIN of each of them in the same session.

The queries stand in three layers, all of them downstream of the table that changes; a fifth is
written in PostgreSQL's dialect, and no two give the same columns. A rehearsal reads their texts,
writes them for Spark, makes and drops the empty tables, and has each query analysed with the
present and the proposed schema. EXPLAIN is given the same queries as Spark's own text, over tables
that are there already. Beside seconds, the time of the processor is told, Python's and the JVM's,
since other work may go on.
"""

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lumos.impact.context import analyse_derivation
from lumos.impact.job import spark_analyzer
from lumos.impact.rules.graph import DatasetDerivation
from lumos.impact.rules.propagation import impact_of
from lumos.impact.rules.results import Impact
from lumos.impact.spark_check import SchemaPair, SparkCheck
from lumos.model.conversions.spark import schema_to_spark
from lumos.model.lineage import Edge
from lumos.model.schema import Schema, parse_schema
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from lumos.spark.session import spark_session

ROUNDS = 7
_AT = datetime(2024, 1, 1, tzinfo=UTC)
_START = "orders"
_PRESENT = parse_schema(
    """
    id INT64 NOT NULL
    customer_id INT64 NOT NULL
    status STRING
    ordered_at TIMESTAMPTZ(us)
    day DATE
    amount DECIMAL(12,2)
    discount DECIMAL(12,2)
    quantity INT32
    country STRING
    channel STRING
    note STRING
    address STRUCT<zip: STRING, city: STRING>
    """
)
_PROPOSED = parse_schema(
    str(_PRESENT).replace("quantity INT32", "quantity INT64").replace("note STRING\n", "")
)
_CUSTOMERS = parse_schema("customer_id INT64 NOT NULL\nname STRING\nsegment STRING\nsince DATE")
_STAGED = """
SELECT o.id, o.customer_id, upper(o.status) AS status, o.ordered_at, o.day, o.amount,
  coalesce(o.discount, 0) AS discount, o.quantity, o.country, o.address.zip AS zip,
  o.amount * o.quantity AS total, o.quantity AS quantity_{number}
FROM orders AS o WHERE o.status <> 'cancelled' AND o.quantity > {number}
"""
_NOTED = "SELECT o.id, o.note, length(o.note) AS letters FROM orders AS o WHERE o.id > {number}"
_JOINED = """
SELECT c.segment, s.country, s.day, count(*) AS orders_{number}, sum(s.total) AS total,
  max(s.discount) AS discount
FROM {parent} AS s JOIN customers AS c ON c.customer_id = s.customer_id
WHERE s.status IN ('NEW', 'PAID') GROUP BY c.segment, s.country, s.day
"""
_RANKED = """
WITH ranked AS (
  SELECT segment, country, total,
    row_number() OVER (PARTITION BY segment ORDER BY total DESC) AS place
  FROM {parent}
)
SELECT r.segment, r.country, r.total, CASE WHEN r.place = 1 THEN 'first' ELSE 'other' END AS rank
FROM ranked AS r LEFT JOIN (SELECT segment, avg(total) AS mean FROM {parent} GROUP BY segment) AS m
  ON m.segment = r.segment WHERE r.place <= 10 AND r.total > m.mean
"""


def _queries() -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Fifty names, what each reads, and its query."""
    for number in range(15):
        text = (_NOTED if number % 5 == 4 else _STAGED).format(number=number)
        yield f"stg_{number}", (_START,), text
    for number in range(20):
        parent = f"stg_{number % 4}"
        yield f"mart_{number}", (parent, "customers"), _JOINED.format(parent=parent, number=number)
    for number in range(15):
        parent = f"mart_{number}"
        yield f"rep_{number}", (parent,), _RANKED.format(parent=parent)


class _World:
    """The queries as what makes datasets; only the tables that nobody makes have stored schemas."""

    def __init__(self) -> None:
        self.queries = [*_queries()]
        self._schemas = {_START: _PRESENT, "customers": _CUSTOMERS}
        self._makings = {
            name: DatasetDerivation(
                origin=name,
                edges=tuple(
                    Edge(upstream=each, downstream=name, origin=name, at=_AT) for each in reads
                ),
                sql=f"CREATE TABLE {name} AS {text}",
                dialect="postgres" if number % 5 == 1 and "address" not in text else "spark",
                tables=tuple(((each,), each) for each in (name, *reads)),
            )
            for number, (name, reads, text) in enumerate(self.queries)
        }

    def links(self, _: str) -> list[tuple[str, str]]:
        return [(each.upstream, each.downstream) for making in self._makings.values()
                for each in making.edges]  # fmt: skip

    def derivations(self, urn: str) -> Sequence[DatasetDerivation]:
        return [self._makings[urn]] if urn in self._makings else []

    def schema(self, urn: str) -> Schema | None:
        return self._schemas.get(urn)

    def owners(self, _: str) -> tuple[str, ...]:
        return ()


def measure() -> dict[str, Any]:
    """Medians of both by turns, and their ratios."""
    world = _World()
    impact = impact_of(_START, classify(compare(_PRESENT, _PROPOSED)), world, analyse_derivation)
    with spark_session(master="local[2]", settings={}) as session:
        _make_tables(session, world)
        states = _rehearse(session, world, impact)
        _explain(session, world)
        explain, rehearsal = _Clock(), _Clock()
        for _ in range(ROUNDS):
            with explain:
                _explain(session, world)
            with rehearsal:
                _rehearse(session, world, impact)
        for name in _tables(world):
            session.catalog.dropTempView(name)
    pairs = zip(rehearsal.seconds, explain.seconds, strict=True)
    return {
        "queries": len(world.queries),
        "states": {each: states.count(each) for each in sorted({*states})},
        "explain_seconds": round(explain.median, 2),
        "rehearsal_seconds": round(rehearsal.median, 2),
        "times_explain": round(statistics.median(one / other for one, other in pairs), 2),
        "explain_processor_seconds": round(explain.median_of_processor, 2),
        "rehearsal_processor_seconds": round(rehearsal.median_of_processor, 2),
        "times_explain_of_processor": round(
            rehearsal.median_of_processor / explain.median_of_processor, 2
        ),
    }


class _Clock:
    """Measures what is done within it, each time."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.processor: list[float] = []

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def median_of_processor(self) -> float:
        return statistics.median(self.processor)

    def __enter__(self) -> None:
        self._started = time.perf_counter(), _processor_seconds()

    def __exit__(self, *_: object) -> None:
        started, used = self._started
        self.seconds.append(time.perf_counter() - started)
        self.processor.append(_processor_seconds() - used)


def _processor_seconds() -> float:
    """Of this process and of those that it started, of which one is the JVM."""
    ticks = 0
    for tasks in Path("/proc/self/task").glob("*/children"):
        for child in tasks.read_text().split():
            # User and system time, the 14th and 15th fields; the second one is in brackets.
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def _make_tables(session: SparkSession, world: _World) -> None:
    for name, schema in ((_START, _PRESENT), ("customers", _CUSTOMERS)):
        fields = StructType.fromJson(schema_to_spark(schema))
        session.createDataFrame([], fields).createOrReplaceTempView(name)
    for name, _, text in world.queries:
        # A table, and not a view that would be planned again with all that it reads.
        fields = session.sql(text).schema
        session.createDataFrame([], fields).createOrReplaceTempView(name)


def _tables(world: _World) -> Iterator[str]:
    yield from (_START, "customers")
    yield from (name for name, _, _ in world.queries)


def _explain(session: SparkSession, world: _World) -> None:
    for _, _, text in world.queries:
        session.sql(f"EXPLAIN {text}").collect()


def _rehearse(session: SparkSession, world: _World, impact: Impact) -> list[str]:
    with spark_analyzer(session) as empty:
        rehearsal = SparkCheck(empty, world, impact, SchemaPair(_PRESENT, _PROPOSED))
        return [each.state for _, reports in rehearsal.reports() for each in reports]
