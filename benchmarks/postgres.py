"""A database of 5,000 tables: reading and recording it, against plain reads of its catalog."""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from lumos import Lumos
from lumos.config.secret import ConnectionString
from lumos.config.sources import PostgresSourceSettings as Section
from lumos.sources.postgres import PostgresSource

TABLES = 5000
VIEWS = 500
COLUMNS = 25
TIMES = 3
_SCRIPT = Path(__file__).parents[1] / "scripts" / "postgres"
_TYPES = (
    "bigint", "integer", "text", "varchar(40)", "numeric(12,2)", "timestamptz", "timestamp",
    "boolean", "uuid", "jsonb", "text[]", "date",
)  # fmt: skip
_INFORMATION_SCHEMA = ("tables", "columns", "views", "table_constraints", "key_column_usage")
_PG_CATALOG = (
    "pg_namespace", "pg_class", "pg_attribute", "pg_type", "pg_index", "pg_constraint",
    "pg_description", "pg_attrdef",
)  # fmt: skip
# As much of it as a schema needs.
_NARROW = {
    "tables": "table_schema, table_name, table_type",
    "columns": "table_schema, table_name, column_name, ordinal_position, column_default, "
    "is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, udt_name",
}


def measure() -> dict[str, Any]:
    """Median seconds of reads and scans in one process, by turns."""
    with _server() as url, tempfile.TemporaryDirectory() as folder:
        _fill(url)
        source = PostgresSource(Section(connection_string=ConnectionString(url)))

        def scan(store: str) -> None:
            place = str(Path(folder, store, "lumos.db"))
            report = Lumos(environment={}, overrides={"storage.path": place}).ingest(url)
            assert len(report.datasets) == TABLES + VIEWS

        works: dict[str, Callable[[int], object]] = {
            "plain_read": lambda _: _plain_read(url, {}),
            "plain_read_of_needed_columns": lambda _: _plain_read(url, _NARROW),
            "lumos_read": lambda _: source.read(lambda _share: None),
            "lumos_first_scan": lambda turn: scan(f"store-{turn}"),
            "lumos_scan_again": lambda turn: scan(f"store-{turn}"),
        }
        taken: dict[str, list[float]] = {name: [] for name in works}
        for turn in range(TIMES):
            for name, work in works.items():
                started = time.perf_counter()
                work(turn)
                taken[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    return {
        "tables": TABLES,
        "views": VIEWS,
        "columns_each": COLUMNS,
        **{
            name: {
                "seconds": round(seconds, 2),
                "times_plain_read": round(seconds / medians["plain_read"], 2),
            }
            for name, seconds in medians.items()
        },
        "runs": {name: [round(each, 2) for each in times] for name, times in taken.items()},
    }


@contextmanager
def _server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="lumos-postgres-") as folder:
        # The server's user must be able to reach the folder.
        Path(folder).chmod(0o755)
        place = f"{folder}/server"
        started = subprocess.run([_SCRIPT, "start", place], capture_output=True, check=True)
        try:
            yield started.stdout.decode().strip()
        finally:
            subprocess.run([_SCRIPT, "stop", place], check=True)


def _fill(url: str) -> None:
    with psycopg.connect(url) as connection:
        for number in range(20):
            connection.execute(f"CREATE SCHEMA s{number}")
        for number in range(TABLES):
            columns = [f"column_{at} {_TYPES[(number + at) % 12]}" for at in range(COLUMNS - 1)]
            table = f"s{number % 20}.table_{number}"
            connection.execute(
                f"CREATE TABLE {table} (id bigint PRIMARY KEY, {', '.join(columns)})"
            )
            connection.execute(f"COMMENT ON TABLE {table} IS 'Number {number}'")
            connection.execute(f"COMMENT ON COLUMN {table}.column_3 IS 'The third of {number}'")
            connection.execute(f"ALTER TABLE {table} ALTER column_0 SET NOT NULL")
            if number % 1000 == 999:
                connection.commit()
        for number in range(VIEWS):
            schema = f"s{number % 20}"
            connection.execute(
                f"CREATE VIEW {schema}.view_{number} AS SELECT t.*, t.id + 1 AS next "
                f"FROM {schema}.table_{number} t WHERE t.id > {number}"
            )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _plain_read(url: str, columns: dict[str, str]) -> None:
    with psycopg.connect(url) as connection:
        for name in _INFORMATION_SCHEMA:
            connection.execute(
                f"SELECT {columns.get(name, '*')} FROM information_schema.{name} "
                "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
            ).fetchall()
        for name in _PG_CATALOG:
            connection.execute(f"SELECT * FROM pg_catalog.{name}").fetchall()
