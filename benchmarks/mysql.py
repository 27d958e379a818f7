"""A MariaDB server of 10,000 tables: reading and recording it, against a plain catalog read."""

import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pymysql

from lumos import Lumos
from lumos.config.secret import ConnectionString
from lumos.config.sources import MysqlSourceSettings as Section
from lumos.sources.mysql import MysqlSource

TABLES = int(os.environ.get("BENCH_MYSQL_TABLES", "10000"))
DATABASES = 20
COLUMNS = 30
TIMES = int(os.environ.get("BENCH_MYSQL_TIMES", "3"))
_SCRIPT = Path(__file__).parents[1] / "scripts" / "mariadb"
_TYPES = (
    "bigint", "int unsigned", "text", "varchar(40)", "decimal(12,2)", "timestamp", "datetime(3)",
    "boolean", "enum('a','b')", "json", "binary(16)", "date",
)  # fmt: skip
_INFORMATION_SCHEMA = ("TABLES", "COLUMNS", "VIEWS", "TABLE_CONSTRAINTS", "KEY_COLUMN_USAGE")


def measure() -> dict[str, Any]:
    """Median seconds of reads and scans in one process, by turns; CPU seconds with the server's."""
    with _server() as (url, server), tempfile.TemporaryDirectory() as folder:
        _fill(url)
        source = MysqlSource(Section(connection_string=ConnectionString(url)))

        def scan(store: str) -> None:
            place = str(Path(folder, store, "lumos.db"))
            report = Lumos(environment={}, overrides={"storage.path": place}).ingest(url)
            assert len(report.datasets) == TABLES

        works: dict[str, Callable[[int], object]] = {
            "plain_read": lambda _: _plain_read(url),
            "lumos_read": lambda _: source.read(lambda _share: None),
            "lumos_first_scan": lambda turn: scan(f"store-{turn}"),
            "lumos_scan_again": lambda turn: scan(f"store-{turn}"),
        }
        # The first read of a table opens it.
        _plain_read(url)
        wall: dict[str, list[float]] = {name: [] for name in works}
        cpu: dict[str, list[float]] = {name: [] for name in works}
        for turn in range(TIMES):
            for name, work in works.items():
                started, used = time.perf_counter(), _cpu_seconds(server)
                work(turn)
                wall[name].append(time.perf_counter() - started)
                cpu[name].append(_cpu_seconds(server) - used)
    walls = {name: statistics.median(times) for name, times in wall.items()}
    cpus = {name: statistics.median(times) for name, times in cpu.items()}
    return {
        "tables": TABLES,
        "columns_each": COLUMNS,
        **{
            name: {
                "seconds": round(walls[name], 2),
                "times_plain_read": round(walls[name] / walls["plain_read"], 2),
                "cpu_seconds": round(cpus[name], 2),
                "times_cpu_of_plain_read": round(cpus[name] / cpus["plain_read"], 2),
            }
            for name in works
        },
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "runs": {name: [round(each, 2) for each in times] for name, times in wall.items()},
    }


def _cpu_seconds(server: int) -> float:
    """The CPU seconds of this process and of the server."""
    fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _server() -> Iterator[tuple[str, int]]:
    with tempfile.TemporaryDirectory(prefix="lumos-mariadb-") as folder:
        place = f"{folder}/server"
        started = subprocess.run([_SCRIPT, "start", place], capture_output=True, check=True)
        try:
            yield started.stdout.decode().strip(), int(Path(place, "pid").read_text())
        finally:
            subprocess.run([_SCRIPT, "stop", place], check=True)


def _connect(url: str) -> "pymysql.Connection[Any]":
    parts = urlsplit(url)
    return pymysql.connect(
        host=str(parts.hostname), port=int(parts.port or 0), user="root", autocommit=True
    )


def _fill(url: str) -> None:
    with _connect(url) as connection, connection.cursor() as cursor:
        # MyISAM tables are three small files; InnoDB would need a gigabyte of table spaces.
        for number in range(DATABASES):
            cursor.execute(f"CREATE DATABASE s{number}")
        for number in range(TABLES):
            columns = [f"column_{at} {_TYPES[(number + at) % 12]}" for at in range(COLUMNS - 2)]
            engine = "InnoDB" if number % 10 == 0 else "MyISAM"
            cursor.execute(
                f"CREATE TABLE s{number % DATABASES}.table_{number} (id bigint PRIMARY KEY, "
                f"code varchar(20) NOT NULL DEFAULT 'x' COMMENT 'The code of {number}', "
                f"{', '.join(columns)}) ENGINE={engine} COMMENT 'Number {number}'"
            )


def _plain_read(url: str) -> None:
    with _connect(url) as connection, connection.cursor() as cursor:
        for name in _INFORMATION_SCHEMA:
            cursor.execute(
                f"SELECT * FROM information_schema.{name} WHERE table_schema NOT IN "
                "('information_schema', 'mysql', 'performance_schema', 'sys')"
            )
            cursor.fetchall()
