"""A registry of 1,000 subjects with 10 versions each: reading and recording, against bare HTTP.

BENCH_KAFKA_SUBJECTS and BENCH_KAFKA_TIMES set other numbers of subjects and rounds.
"""

import http.client
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from benchmarks.servers import serving
from lumos import Lumos
from lumos.config.sources import KafkaSourceSettings
from lumos.sources.kafka import source
from lumos.sources.kafka.cluster import (
    ConsumerGroup,
    PartitionRange,
    Topic,
    TopicFacts,
    TopicSample,
)

SUBJECTS = int(os.environ.get("BENCH_KAFKA_SUBJECTS", "1000"))
VERSIONS = 10
TIMES = int(os.environ.get("BENCH_KAFKA_TIMES", "3"))
_PARALLEL = 8


class _Brokers:
    """Stands in for the brokers, which are not measured."""

    address = "kafka://broker:9092"

    def __init__(self, topics: int) -> None:
        self._topics = topics

    def topics(self) -> list[Topic]:
        return [
            Topic(name=f"topic-{number}", partitions=1, replication_factor=1)
            for number in range(self._topics)
        ]

    def topic_ids(self, names: Sequence[str]) -> TopicFacts:
        return TopicFacts({name: name for name in names}, {})

    def configs(self, names: Sequence[str]) -> TopicFacts:
        return TopicFacts({name: {"cleanup.policy": "delete"} for name in names}, {})

    def ranges(self, topics: Sequence[Topic]) -> TopicFacts:
        return TopicFacts({each.name: [PartitionRange(0, 0, 1)] for each in topics}, {})

    def samples(
        self, _ranges: Mapping[str, Sequence[PartitionRange]], _count: int
    ) -> Iterator[tuple[str, TopicSample]]:
        return iter(())

    def groups(self) -> tuple[list[ConsumerGroup], bool]:
        return [], False

    def close(self) -> None:
        pass


def measure() -> dict[str, Any]:
    """Median seconds of bare requests, reads and scans in one process, by turns.

    A scan without topics comes first: it takes the imports. One in each round takes a new store.
    """
    topics = 0
    with (
        patch("lumos.sources.kafka.source.KafkaCluster", lambda _: _Brokers(topics)),
        serving("registry_stub", str(SUBJECTS), str(VERSIONS)) as url,
        tempfile.TemporaryDirectory() as folder,
    ):
        section = KafkaSourceSettings(bootstrap_servers=("broker:9092",), schema_registry_url=url)

        def scan(store: str) -> None:
            overrides = {
                "storage.path": str(Path(folder, store, "lumos.db")),
                "sources": [
                    {"type": "kafka", "bootstrap_servers": "b", "schema_registry_url": url}
                ],
            }
            report = Lumos(environment={}, overrides=overrides).ingest()
            assert len(report.datasets) == topics

        started, used = time.perf_counter(), time.process_time()
        scan("store-of-imports")
        imports = {
            "seconds": round(time.perf_counter() - started, 2),
            "cpu_seconds": round(time.process_time() - used, 2),
        }
        works: dict[str, Callable[[int], object]] = {
            "lumos_scan_of_no_topics": lambda turn: scan(f"empty-store-{turn}"),
            "bare_requests": lambda _: _bare_requests(url),
            "lumos_read": lambda _: source.KafkaSource(section).read(lambda _share: None),
            "lumos_first_scan": lambda turn: scan(f"store-{turn}"),
            "lumos_scan_again": lambda turn: scan(f"store-{turn}"),
        }
        wall: dict[str, list[float]] = {name: [] for name in works}
        cpu: dict[str, list[float]] = {name: [] for name in works}
        for turn in range(TIMES):
            for name, work in works.items():
                topics = 0 if name == "lumos_scan_of_no_topics" else SUBJECTS
                started, used = time.perf_counter(), time.process_time()
                work(turn)
                wall[name].append(time.perf_counter() - started)
                cpu[name].append(time.process_time() - used)
    walls = {name: statistics.median(times) for name, times in wall.items()}
    cpus = {name: statistics.median(times) for name, times in cpu.items()}
    return {
        "subjects": SUBJECTS,
        "versions_each": VERSIONS,
        "requests": 1 + SUBJECTS * (2 + VERSIONS),
        "first_scan_of_no_topics": imports,
        **{
            name: {
                "seconds": round(walls[name], 2),
                "cpu_seconds": round(cpus[name], 2),
                "times_bare_requests": round(walls[name] / walls["bare_requests"], 2),
                "times_cpu_of_bare_requests": round(cpus[name] / cpus["bare_requests"], 2),
            }
            for name in works
        },
    }


def _bare_requests(url: str) -> None:
    """The same requests over as many connections, with their answers decoded and dropped."""
    parts = urlsplit(url)
    state = local()

    def get(path: str) -> Any:
        if not hasattr(state, "connection"):
            state.connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        state.connection.request("GET", path)
        return json.loads(state.connection.getresponse().read())

    def read(subject: str) -> None:
        for version in get(f"/subjects/{subject}/versions"):
            get(f"/subjects/{subject}/versions/{version}")
        get(f"/config/{subject}?defaultToGlobal=true")

    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(read, get("/subjects")))
