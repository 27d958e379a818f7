"""A query log of 1,000,000 statements of some thousand kinds, taken in on Spark.

The floor is Spark alone: it reads the same files and groups their rows by user and day. Beside it
stands the time that parsing one statement of each kind takes.
"""

import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lumos import Lumos
from lumos.model.schema import parse_schema
from lumos.store import KnownDataset, Store

STATEMENTS = 1_000_000
KINDS = 4_000
FILES = 20
TABLES = 300
USERS = 120
DAYS = 30
_START = datetime.now(UTC).replace(hour=0, minute=0, second=0) - timedelta(days=DAYS)
_COLUMNS = (
    "id",
    "day",
    "customer",
    "region",
    "amount",
    "tax",
    "status",
    "note",
    "a",
    "b",
    "c",
    "d",
)
_HEAD = (
    "QUERY_ID", "QUERY_TEXT", "DATABASE_NAME", "SCHEMA_NAME", "USER_NAME", "START_TIME",
    "EXECUTION_STATUS", "BYTES_SCANNED", "ROWS_PRODUCED",
)  # fmt: skip


def measure() -> dict[str, Any]:
    """Seconds of each way, from the start of its process to its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = folder / "logs"
        logs.mkdir()
        size = write_logs(logs)
        _fill(folder / "lumos.db")
        ways = {way: _run(way, folder) for way in ("floor", "parse", "ingest", "again", "unread")}
        (folder / "lumos.db").unlink()
        _fill(folder / "lumos.db")
        ways["one_process"] = _run("one_process", folder)
    floor, parse = ways["floor"]["seconds"], ways["parse"]["seconds"]
    return {
        "statements": STATEMENTS,
        "kinds": KINDS,
        "megabytes": round(size / 1e6),
        **ways,
        "ingest_times_floor": round(ways["ingest"]["seconds"] / floor, 2),
        "ingest_times_floor_and_parsing": round(ways["ingest"]["seconds"] / (floor + parse), 2),
    }


def write_logs(folder: Path, statements: int = STATEMENTS, kinds: int = KINDS) -> int:
    """Writes a history as Snowflake exports it, in several files; gives their bytes."""
    dice = random.Random(11)
    made = [_kind(dice, number) for number in range(kinds)]
    readers = [dice.sample(range(USERS), dice.choice((1, 1, 2, 5))) for _ in made]
    # A few dashboards ask most of the questions.
    weights = [1 / (1 + number) ** 0.7 for number in range(kinds)]
    numbers = iter(dice.choices(range(kinds), weights, k=statements))
    a_file = statements // FILES
    for number in range(FILES):
        with (folder / f"part-{number:03}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(_HEAD)
            writer.writerows(_rows(dice, made, readers, numbers, number * a_file, a_file))
    return sum(file.stat().st_size for file in folder.iterdir())


def _rows(
    dice: random.Random,
    made: list[Callable[[random.Random], str]],
    readers: list[list[int]],
    numbers: Iterator[int],
    first: int,
    many: int,
) -> Iterator[tuple[Any, ...]]:
    seconds = DAYS * 86_400
    for number in range(first, first + many):
        kind = next(numbers)
        at = _START + timedelta(seconds=seconds * number / STATEMENTS, milliseconds=number % 1000)
        yield (
            f"01b2c3d4-{number:012x}", made[kind](dice), "SHOP", "SALES",
            f"USER_{dice.choice(readers[kind])}", at.isoformat(), "SUCCESS",
            dice.randrange(10**9), dice.randrange(10**5),
        )  # fmt: skip


def _kind(dice: random.Random, number: int) -> Callable[[random.Random], str]:
    """A statement that differs from all others in more than literals."""
    tables = [f"table_{dice.randrange(TABLES)}" for _ in range(dice.choice((1, 1, 2, 3)))]
    chosen = [
        f"t{place}.{column}"
        for place in range(len(tables))
        for column in dice.sample(_COLUMNS, dice.randrange(1, 5))
    ]
    joins = "".join(
        f"\n  JOIN {table} AS t{place} ON t0.id = t{place}.id"
        for place, table in enumerate(tables[1:], start=1)
    )
    text = (
        f"SELECT {', '.join(chosen)}, SUM(t0.amount) AS total_{number}\n"
        f"FROM {tables[0]} AS t0{joins}\n"
        "WHERE t0.day >= '{}' AND t0.status IN ('{}', '{}') AND t0.amount > {}\n"
        f"GROUP BY {', '.join(chosen)}\nORDER BY total_{number} DESC LIMIT {{}}"
    )
    if number % 20 == 0:
        text = f"CREATE OR REPLACE TABLE mart_{number} AS\n{text}"
    return lambda dice: text.format(
        f"2024-03-{dice.randrange(1, 31):02}", dice.randrange(10**6), dice.randrange(10**6),
        dice.random() * 1000, dice.randrange(1, 1000),
    )  # fmt: skip


def _fill(file: Path) -> None:
    lumos = Lumos(environment={}, overrides={"storage.path": str(file)})
    store = Store.open(lumos.database, create=True)
    schema = parse_schema("\n".join(f"{name} INT64" for name in _COLUMNS))
    with store.transaction() as transaction:
        hash = transaction.save_schema(schema)
        for number in range(TABLES):
            name = f"table_{number}"
            transaction.save(
                KnownDataset(
                    urn=f"lumos://snowflake/shop/sales/{name}", name=name, platform="snowflake",
                    format="table", source="bench", state="live", cloud_version="S-1",
                    schema_version="1.0.0", schema_hash=hash, fingerprint=schema.full, content="1",
                    created_at=_START, updated_at=_START,
                )
            )  # fmt: skip


def _run(way: str, folder: Path) -> dict[str, Any]:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.query_log", way, str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return {"seconds": round(time.perf_counter() - started, 1), **json.loads(done.stdout)}


def _floor(logs: Path) -> dict[str, Any]:
    from pyspark.sql import functions as F

    from lumos.spark.session import spark_session

    with spark_session(master="local[*]", settings={}, short=False) as spark:
        rows = spark.read.csv(str(logs), header=True, multiLine=True, quote='"', escape='"')
        groups = rows.groupBy("USER_NAME", F.to_date("START_TIME").alias("day")).agg(
            F.count("*").alias("reads"), F.max("QUERY_TEXT").alias("one")
        )
        return {"groups": len(groups.toArrow())}


def _parse(lumos: Lumos, logs: Path) -> dict[str, Any]:
    """What reading one statement of each kind takes, on all cores of a session that is there."""
    from lumos.lineage.name_index import NameIndex
    from lumos.usage.query_log.files import chunks, recognise_log
    from lumos.usage.statements import StatementAnalyser, decode_example, statements_on_spark
    from lumos.usage.tables import LogTables

    store = Store.open(lumos.database)
    tables = LogTables(store, NameIndex(store.dataset_locations()))
    found = [log for file in sorted(logs.iterdir()) if (log := recognise_log(file)) is not None]
    with statements_on_spark(
        lumos.settings,
        [chunk for log in found for chunk in chunks(log)],
        {},
        state=str(logs.parent / "state"),
    ) as statements:
        samples = statements.frequent_queries(limit=50_000)
        columns = tables.columns(decode_example(each.example) for each in samples)
        started = time.perf_counter()
        analyses = statements.analyse(samples, StatementAnalyser(columns))
        return {"kinds": len(analyses), "seconds": round(time.perf_counter() - started, 1)}


def _way(way: str, folder: Path) -> dict[str, Any]:
    lumos = Lumos(environment={}, overrides={"storage.path": str(folder / "lumos.db")})
    logs = folder / "logs"
    if way == "floor":
        return _floor(logs)
    if way == "parse":
        return _parse(lumos, logs)
    if way == "unread":
        started = time.perf_counter()
        unread = lumos.usage.unread(since=_START.date(), columns=True)
        return {
            "datasets": len(unread.datasets),
            "seconds": round(time.perf_counter() - started, 2),
        }
    from lumos.usage.query_log.files import recognise_log

    found = [log for file in sorted(logs.iterdir()) if (log := recognise_log(file)) is not None]
    size = 2**60 if way == "one_process" else 0
    report = lumos.usage.ingest_logs(found, name="bench", spark_from_bytes=size)
    (counts,) = report.logs
    rows = lumos.store_status().rows["usage_reads"]
    return {
        "counted": counts.counted,
        "kinds": counts.queries,
        "edges": counts.edges,
        "rows": rows,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_way(sys.argv[1], Path(sys.argv[2]))))
