"""Schemas of 100 collections of MongoDB, learnt on Spark and in one process, beside a plain loop.

All read the same 1,000 documents of each collection over the wire. `reading` decodes them with
pymongo and looks at nothing; `plain_loop` also collects the types of each path, no more. Lumos
counts, orders and unites types, asks for indexes and sizes, and makes datasets. `spark_start` is a
session up to its first result from Python's workers. Every way has its own process, and runs cold
and warm. Seconds of processors include those of the JVM and of Python's workers, and not those of
the server, which is a program of its own.
"""

import datetime as dt
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import bson
from pymongo import MongoClient

from benchmarks.consumption import processor_seconds
from benchmarks.servers import serving

COLLECTIONS = 100
DOCUMENTS = 1000
TIMES = 3
_DATABASE = "shop"
_BATCH = 500
_MEGABYTES = 1024
_KINDS = ("cold", "warm")


def measure() -> dict[str, Any]:
    """Medians of each way by turns, and how many times the plain loop each is."""
    with serving("servers.mongo", str(_MEGABYTES)) as address:
        _fill(address)
        taken: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(TIMES):
            for way, runs in taken.items():
                runs.append(_run(way, address))
                sys.stderr.write(f"  {way}: {_rounded(runs[-1])}\n")
    ways = {
        way: {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        for way, runs in taken.items()
    }
    loop, start, spark = ways["plain_loop"], ways["spark_start"], ways["spark"]
    beyond_start = {
        name: round((spark[name] - start[name]) / loop[name], 2)
        for name in ("cold_seconds", "cold_processor_seconds")
    }
    return {
        "collections": COLLECTIONS,
        "documents_each": DOCUMENTS,
        **{way: _rounded(told) for way, told in ways.items()},
        "times_plain_loop": {
            **{
                way: {name: round(ways[way][name] / loop[name], 2) for name in loop}
                for way in ("lumos", "spark")
            },
            "spark_without_its_start": beyond_start,
        },
    }


def _rounded(told: Mapping[str, float]) -> dict[str, float]:
    return {name: round(each, 2) for name, each in told.items()}


def _fill(address: str) -> None:
    with MongoClient[dict[str, Any]](address) as client:
        for number in range(COLLECTIONS):
            chance = random.Random(number)
            client[_DATABASE][f"orders_{number:03}"].insert_many(
                [_document(chance, number) for _ in range(DOCUMENTS)]
            )


def _document(chance: random.Random, collection: int) -> dict[str, Any]:
    """An order: three levels of objects and lists, keys that some lack, values of several types."""
    document: dict[str, Any] = {
        "_id": bson.ObjectId(chance.randbytes(12)),
        "placed": dt.datetime(2024, 1, 1) + dt.timedelta(seconds=chance.randrange(30_000_000)),
        "number": chance.choice((chance.randrange(10_000), f"N{chance.randrange(10_000)}")),
        "total": chance.choice((bson.Decimal128("12.50"), chance.random() * 100, None)),
        "is_paid": chance.random() < 0.9,
        "customer": {
            "name": f"name {chance.randrange(1000)}",
            "address": {
                "street": "Long Street",
                "zip": chance.choice((chance.randrange(99_999), "01234")),
                "place": {"type": "Point", "coordinates": [chance.random(), chance.random()]},
            },
            "tags": ["new", "loyal"][: chance.randrange(3)],
        },
        "lines": [
            {
                "sku": f"sku-{chance.randrange(5000)}",
                "count": bson.Int64(chance.randrange(10)),
                "price": chance.choice((1, 2.5)),
                "options": {"colour": "red", "size": chance.choice((42, "L"))},
            }
            for _ in range(chance.randrange(1, 5))
        ],
        f"note_{collection % 10}": "as before",
    }
    if chance.random() < 0.2:
        document["discount"] = {"code": "SPRING", "percent": chance.choice((5, 7.5))}
    return document


def _run(way: str, address: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.mongodb", way, address],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def _reading(address: str) -> Iterator[int]:
    for _ in _KINDS:
        yield len({name: sum(1 for _ in documents) for name, documents in _decoded(address)})


def _plain_loop(address: str) -> Iterator[int]:
    for _ in _KINDS:
        yield len({name: _types(documents) for name, documents in _decoded(address)})


def _decoded(address: str) -> Iterator[tuple[str, Iterable[dict[str, Any]]]]:
    with MongoClient[dict[str, Any]](address) as client:
        database = client[_DATABASE]
        for name in database.list_collection_names():
            yield name, database[name].find(limit=DOCUMENTS, batch_size=_BATCH)


def _types(documents: Iterable[dict[str, Any]]) -> dict[str, set[str]]:
    paths: dict[str, set[str]] = {}
    for document in documents:
        _collect(paths, "", document)
    return paths


def _collect(paths: dict[str, set[str]], path: str, value: object) -> None:
    paths.setdefault(path, set()).add(type(value).__name__)
    if isinstance(value, dict):
        for key, each in value.items():
            _collect(paths, f"{path}.{key}", each)
    elif isinstance(value, list):
        for each in value:
            _collect(paths, f"{path}[]", each)


def _lumos(address: str) -> Iterator[int]:
    source = _source(address)
    for _ in _KINDS:
        yield len(source.read(lambda _share: None).datasets)


def _spark_start(address: str) -> Iterator[int]:
    del address
    with _session() as spark:
        numbers = spark.range(COLLECTIONS)
        for _ in _KINDS:
            yield numbers.mapInArrow(lambda rows: rows, "id long").toArrow().num_rows


def _spark(address: str) -> Iterator[int]:
    source = _source(address)
    with _session() as spark:
        from lumos.discovery.sampling_job import run_samples

        for _ in _KINDS:
            yield len(source.sampled(partial(run_samples, spark), lambda _path: None).datasets)


def _source(address: str) -> Any:
    from lumos.config.secret import ConnectionString
    from lumos.config.sources import MongodbSourceSettings as Settings
    from lumos.sources.mongodb.source import MongodbSource

    string = ConnectionString(f"{address}/{_DATABASE}")
    return MongodbSource(Settings(connection_string=string, sample_size=DOCUMENTS))


@contextmanager
def _session() -> Iterator[Any]:
    from lumos.spark.session import spark_session

    with spark_session(master="local[*]", settings={}) as session:
        yield session


WAYS: dict[str, Callable[[str], Iterator[int]]] = {
    "reading": _reading,
    "plain_loop": _plain_loop,
    "lumos": _lumos,
    "spark_start": _spark_start,
    "spark": _spark,
}


def _timed(way: str, address: str) -> None:
    """Does it twice, and writes down what each time took; the first has all starts in it."""
    told: dict[str, float] = {}
    started, used = time.perf_counter(), processor_seconds()
    for kind, found in zip(_KINDS, WAYS[way](address), strict=True):
        if found != COLLECTIONS:
            raise RuntimeError(f"{found} collections were found instead of {COLLECTIONS}")
        ended, used_by_now = time.perf_counter(), processor_seconds()
        told[f"{kind}_seconds"] = ended - started
        told[f"{kind}_processor_seconds"] = used_by_now - used
        started, used = ended, used_by_now
    sys.stdout.write(f"{json.dumps(told)}\n")


if __name__ == "__main__":
    _timed(sys.argv[1], sys.argv[2])
