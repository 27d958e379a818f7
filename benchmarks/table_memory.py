"""What a scan of a database holds in memory, by the number of its tables; without a server.

The information schema of a database of MariaDB is made up here, a row at a time. Each scan is a
process of its own.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lumos.sources.mysql import queries
from lumos.sources.mysql.connection import MysqlConnector, MysqlServer

TABLES = tuple(map(int, os.environ.get("BENCH_TABLES", "100,1000,4000,10000").split(",")))
COLUMNS = 30
_TYPES = (
    "bigint(20)", "int(10) unsigned", "text", "varchar(40)", "decimal(12,2)", "timestamp",
    "datetime(3)", "tinyint(1)", "enum('a','b')", "binary(16)", "date",
)  # fmt: skip
_WORDS = (
    "account", "amount", "balance", "billing", "campaign", "carrier", "category", "channel",
    "city", "contract", "country", "currency", "customer", "delivery", "discount", "email",
    "employee", "event", "external", "gross", "invoice", "item", "language", "location", "margin",
    "modified", "number", "order", "owner", "partner", "payment", "phone", "plan", "price",
    "product", "quantity", "rate", "reason", "reference", "region", "request", "revenue",
    "segment", "session", "shipment", "status", "supplier", "tax", "ticket", "warehouse", "weight",
)  # fmt: skip


class _Connection:
    """Answers the queries of the source about one database with many tables."""

    server = MysqlServer("MariaDB", (10, 11))

    def __init__(self, tables: int) -> None:
        self._tables = [f"{_words(number)}_{number:05}" for number in range(tables)]

    def has_permission(self, _database: str) -> bool:
        return True

    def rows(self, query: str, *_parameters: object) -> list[tuple[Any, ...]]:
        match query:
            case queries.DATABASES:
                return [("shop",)]
            case queries.SERVER_ID:
                return [("server_uid", "3mOQ7qjUdpTkBPcbfUDcbG2yXyw=")]
            case queries.MARIADB_TABLE_IDS:
                return [("shop", name, number) for number, name in enumerate(self._tables)]
            case queries.TABLES:
                return [
                    (name, "BASE TABLE", "InnoDB", number, 16384 * number, 0, "utf8mb4_general_ci",
                     "", f"The {name} of the shop")
                    for number, name in enumerate(self._tables)
                ]  # fmt: skip
            case queries.KEY_COLUMNS:
                return [(name, "number", "number", None, None, None) for name in self._tables]
        return []

    def stream(self, query: str, *_parameters: object) -> Iterator[tuple[Any, ...]]:
        assert query == queries.COLUMNS
        for number, table in sorted(enumerate(self._tables), key=lambda each: each[1]):
            for position in range(COLUMNS):
                name = f"{_words(number * COLUMNS + position)}_{position}" if position else "id"
                comment = f"The {name} of the {table}" if position % 4 == 1 else ""
                yield (table, position + 1, name, None, "NO" if position < 3 else "YES",
                       _TYPES[(number + position) % len(_TYPES)], "PRI" if position == 0 else "",
                       "", comment, None)  # fmt: skip


def _words(seed: int) -> str:
    """Two words that differ from one number to the next."""
    first, second = seed * 7919 % len(_WORDS), seed * 104_729 // 13 % len(_WORDS)
    return f"{_WORDS[first]}_{_WORDS[second]}"


def measure() -> dict[str, Any]:
    """The peak of a first and a second scan for each number of tables, and what a table adds."""
    figures: dict[str, Any] = {"columns_each": COLUMNS}
    for tables in TABLES:
        with tempfile.TemporaryDirectory() as folder:
            figures[f"{tables} tables"] = {
                name: _scan_apart(tables, folder) for name in ("first_scan", "second_scan")
            }
    for fewer, more in pairwise(TABLES):
        few, many = figures[f"{fewer} tables"], figures[f"{more} tables"]
        figures[f"kb_for_each_table_from_{fewer}_to_{more}"] = {
            scan: {
                name: round((many[scan][name] - few[scan][name]) * 1000 / (more - fewer), 1)
                for name in ("peak_mb", "own_peak_mb")
            }
            for scan in few
        }
    return figures


def _scan_apart(tables: int, folder: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.table_memory", str(tables), folder],
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _scan(tables: int, folder: str) -> dict[str, Any]:
    from lumos import Lumos

    connection = _Connection(tables)

    @contextmanager
    def connect(_connector: MysqlConnector) -> Iterator[_Connection]:
        yield connection

    overrides = {"storage.path": str(Path(folder, "lumos.db"))}
    ended = threading.Event()
    own: list[int] = []

    def watch() -> None:
        while not ended.wait(0.02):
            own.append(_kilobytes("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    used = time.process_time()
    try:
        with patch.object(MysqlConnector, "connect", connect):
            report = Lumos(environment={}, overrides=overrides).ingest("mariadb://reader@shop")
    finally:
        ended.set()
        watcher.join()
    seconds = time.process_time() - used
    assert len(report.datasets) == tables, report.problems
    return {
        "peak_mb": round(_kilobytes("VmHWM") / 1000, 1),
        # Without the pages of the store's file, which is mapped into memory.
        "own_peak_mb": round(max(own) / 1000, 1),
        "cpu_seconds": round(seconds, 2),
    }


def _kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


if __name__ == "__main__":
    print(json.dumps(_scan(int(sys.argv[1]), sys.argv[2])))  # noqa: T201
