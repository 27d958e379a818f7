"""A registry of 1,000 subjects with 10 versions each: reading and recording, against bare HTTP."""

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import Any
from urllib.parse import urlsplit

from benchmarks.servers import TESTS
from lumos import Lumos
from lumos.config.sources import KafkaSourceSettings
from lumos.sources.kafka.source import KafkaSource

SUBJECTS = 1_000
VERSIONS = 10
COLUMNS = 20
TIMES = 3
_PARALLEL = 8
_TYPES = ("long", "string", "double", "boolean", ["null", "string"], {"type": "array", "items": "long"})


def measure() -> dict[str, Any]:
    """Median seconds of bare requests, reads and scans in one process, by turns."""
    sys.path.insert(0, str(TESTS))
    from fake_kafka import FakeCluster

    cluster = FakeCluster()
    for number in range(SUBJECTS):
        cluster.add(_topic(number), b"")
    # The brokers are not measured: a cluster in memory stands in for them.
    KafkaSource._cluster = lambda _: cluster  # type: ignore[assignment,method-assign,return-value]
    with _registry() as url, tempfile.TemporaryDirectory() as folder:
        section = KafkaSourceSettings(bootstrap_servers=("broker:9092",), schema_registry_url=url)

        def scan(store: str) -> None:
            overrides = {
                "storage.path": str(Path(folder, store, "lumos.db")),
                "sources": [
                    {"type": "kafka", "bootstrap_servers": "b", "schema_registry_url": url}
                ],
            }
            report = Lumos(environment={}, overrides=overrides).ingest()
            assert len(report.datasets) == SUBJECTS

        works: dict[str, Callable[[int], object]] = {
            "bare_requests": lambda _: _bare_requests(url),
            "lumos_read": lambda _: KafkaSource(section).read(lambda _share: None),
            "lumos_first_scan": lambda turn: scan(f"store-{turn}"),
            "lumos_scan_again": lambda turn: scan(f"store-{turn}"),
        }
        wall: dict[str, list[float]] = {name: [] for name in works}
        cpu: dict[str, list[float]] = {name: [] for name in works}
        for turn in range(TIMES):
            for name, work in works.items():
                started, used = time.perf_counter(), time.process_time()
                work(turn)
                wall[name].append(time.perf_counter() - started)
                cpu[name].append(time.process_time() - used)
    base = statistics.median(wall["bare_requests"])
    return {
        "subjects": SUBJECTS,
        "versions_each": VERSIONS,
        "requests": 1 + SUBJECTS * (2 + VERSIONS),
        **{
            name: {
                "seconds": round(statistics.median(wall[name]), 2),
                "cpu_seconds": round(statistics.median(cpu[name]), 2),
                "times_bare_requests": round(statistics.median(wall[name]) / base, 2),
            }
            for name in works
        },
    }


def _topic(number: int) -> str:
    return f"domain{number % 20}.topic-{number}"


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


@contextmanager
def _registry() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.kafka"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def _serve() -> None:
    """Serve the subjects from a process of its own, whose time is not counted."""
    sys.path.insert(0, str(TESTS))
    from registry_stub import RegistryStub

    with RegistryStub() as stub:
        for number in range(SUBJECTS):
            for version in range(VERSIONS):
                fields = [
                    {"name": f"column_{at}", "type": _TYPES[(number + at) % len(_TYPES)]}
                    for at in range(COLUMNS - VERSIONS + version + 1)
                ]
                schema = {"type": "record", "name": f"Record{number}", "fields": fields}
                stub.register(f"{_topic(number)}-value", schema)
            stub.compatibility[f"{_topic(number)}-value"] = "FULL"
        sys.stdout.write(f"{stub.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    _serve()
