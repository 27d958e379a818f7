"""Search over 200,000 datasets in process, on SQLite."""

import random
import statistics
import string
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from lumos.model.json_codec import to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING
from lumos.store import Database, Facets, Store, tables

DATASETS = 200_000
FIELDS = 25
QUERIES = 1000
_AT = datetime(2024, 1, 1, tzinfo=UTC)


def measure() -> dict[str, Any]:
    """Seconds to build the index, and the spread of query times over common and rare words."""
    chance = random.Random(1)
    vocabulary = _vocabulary(chance)
    with tempfile.TemporaryDirectory() as folder:
        database = Database.sqlite(Path(folder) / "lumos.db")
        store = Store.open(database, create=True)
        _fill(database, chance, vocabulary)
        started = time.perf_counter()
        store.rebuild_search()
        build = time.perf_counter() - started
        floor = _scan_seconds(database)
        taken = _query_times(store, chance, vocabulary)
        missed = _missed_times(store, chance)
    return {
        "datasets": DATASETS,
        "fields_each": FIELDS,
        "index_seconds": round(build, 2),
        "median_ms": round(statistics.median(taken) * 1000, 2),
        "p95_ms": round(taken[int(0.95 * len(taken))] * 1000, 1),
        "p99_ms": round(taken[int(0.99 * len(taken))] * 1000, 1),
        "largest_ms": round(taken[-1] * 1000, 1),
        "misspelt_median_ms": round(statistics.median(missed) * 1000, 1),
        "one_LIKE_over_all_names_ms": round(floor * 1000, 1),
    }


def _vocabulary(chance: random.Random) -> list[str]:
    letters = string.ascii_lowercase
    made = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(3000)]
    return [*made, "daily", "raw", "events", "clicks", "orders", "customer", "user"]


def _word(chance: random.Random, vocabulary: list[str]) -> str:
    """Some words are everywhere and most are rare, as in real estates."""
    return vocabulary[-1 - int(len(vocabulary) * chance.random() ** 3)]


def _fill(
    database: Database, chance: random.Random, vocabulary: list[str], *, datasets: int = DATASETS
) -> None:
    def word() -> str:
        return _word(chance, vocabulary)

    for start in range(0, datasets, 10_000):
        rows, schemas = [], []
        for number in range(start, min(datasets, start + 10_000)):
            fields = {f"{word()}_{word()}" for _ in range(FIELDS)}
            schema = Schema(
                fields=tuple(
                    Field(name=name, type=STRING if len(name) % 2 else INT64) for name in fields
                )
            )
            hash = f"{number:032x}"
            schemas.append({"hash": hash, "shape": "", "full": "", "body": to_json(schema)})
            name = f"{word()}_{word()}"
            rows.append(
                {
                    "urn": f"lumos://s3/lake/{word()}/{word()}/{name}_{number}",
                    "name": f"{name}_{number}",
                    "platform": "s3",
                    "format": "parquet",
                    "source": "s3:lake",
                    "state": "live",
                    "cloud_version": "S-1",
                    "schema_version": "1.0.0",
                    "schema_hash": hash,
                    "fingerprint": hash,
                    "content": "",
                    "created_at": _AT,
                    "updated_at": _AT,
                }
            )
        with database.writing() as connection:
            connection.execute(insert(tables.schema_body), schemas)
            connection.execute(insert(tables.dataset), rows)


def _query_times(store: Store, chance: random.Random, vocabulary: list[str]) -> list[float]:
    taken = []
    for _ in range(QUERIES):
        words = [_word(chance, vocabulary) for _ in range(chance.randint(1, 2))]
        query = " ".join(word if chance.random() < 0.7 else word[:3] for word in words)
        started = time.perf_counter()
        store.search(query, Facets(), limit=20)
        taken.append(time.perf_counter() - started)
    return sorted(taken)


def _missed_times(store: Store, chance: random.Random) -> list[float]:
    """The times of misspelt queries, which are compared with every word of the index."""
    taken = []
    for word in ("custmer", "clikcs", "evnets"):
        for _ in range(5):
            number = chance.randrange(DATASETS)
            started = time.perf_counter()
            _, hits = store.search(f"{word} {number}", Facets(), limit=20)
            taken.append(time.perf_counter() - started)
            assert not hits.urns
    return taken


def _scan_seconds(database: Database) -> float:
    started = time.perf_counter()
    with database.reading() as connection:
        table = tables.dataset.c
        connection.execute(
            tables.dataset.select().where(table.name.contains("clicks")).limit(20).offset(100_000)
        ).all()
    return time.perf_counter() - started
